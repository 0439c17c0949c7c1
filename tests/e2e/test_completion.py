"""TAB in real shells: names of the caller's own objects, and nothing else on the screen."""

from __future__ import annotations

import os
import pwd
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e import shells
from e2e.installation import PREFIX, ROOT, Call, Service, command
from e2e.surroundings import must

USER = "tse-alice"
HOSTILE = "odd $(touch made) `touch made`; it's"
Complete = Callable[[str], str]


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The completion of each shell, as the package has it."""
    folder = tmp_path_factory.mktemp("completion")
    subprocess.run([PREFIX / "bin/python3", ROOT / "packaging/completion", folder], check=True)
    shells.install(folder)
    for path in (folder, *folder.parents[:2]):
        path.chmod(0o755)
    return folder


@pytest.fixture
def around(service: Service) -> dict[str, str]:
    """The surroundings of a shell: `svc` is on its path."""
    return service.env | {"PATH": f"{PREFIX}/bin:{service.env['PATH']}"}


@pytest.fixture
def objects(alice: Call, bob: Call, template: str, service: Service) -> Iterator[None]:
    """Two workspaces and some files of Alice's, and a workspace of Bob's."""
    for name in ("tabbed-one", "other"):
        must(alice("ws", "create", "--template", template, "--name", name))
    must(alice("fs", "mkdir", "work/tabbed/deep", "--parents"))
    must(alice("fs", "upload", "-", f"work/tabbed/{HOSTILE}", stdin="read whole"))
    must(alice("fs", "upload", "-", "work/tabbed/two\nlines", stdin="x"))
    yield
    must(alice("ws", "delete", "tabbed-one", "other", "--yes"))
    must(alice("fs", "rm", "work/tabbed", "--recursive", "--yes"))


@pytest.fixture(params=["bash", "zsh"])
def shell(
    request: pytest.FixtureRequest, around: dict[str, str], scripts: Path
) -> Iterator[shells.Interactive]:
    """An interactive shell of Alice's."""
    started = shells.Interactive(request.param, USER, around, scripts)
    yield started
    started.close()


def made() -> bool:
    """Whether a name was run as a command."""
    return Path(pwd.getpwnam(USER).pw_dir, "made").exists()


def test_tab_completes_names(shell: shells.Interactive, objects: None, template: str) -> None:
    for typed, whole in (
        ("svc who", "svc whoami"),
        ("svc ws sta", "svc ws start"),
        ("svc ws start tab", "svc ws start tabbed-one"),
        ("svc ws start tabbed-one oth", "svc ws start tabbed-one other"),
        (f"svc ws create --template {template[:-1]}", f"svc ws create --template {template}"),
        ("svc image pull " + template[:-1], f"svc image pull {template}"),
        ("svc fs ls wo", "svc fs ls work/"),
        ("svc fs ls work/tabb", "svc fs ls work/tabbed/"),
        ("svc fs ls work/tabbed/d", "svc fs ls work/tabbed/deep/"),
        ("svc ws logs --fo", "svc ws logs --follow"),
    ):
        found = shell.completed(typed)
        assert found.rstrip(" ") == whole
        assert found.endswith(" ") != whole.endswith("/")  # a path goes on
        shell.forget()


def test_a_completed_name_is_that_file_and_no_command(shell: shells.Interactive, objects: None) -> None:
    for typed in (
        "svc fs read work/tabbed/o",
        "svc fs read 'work/tabbed/odd $",
        'svc fs read "work/tabbed/o',
    ):
        line = shell.completed(typed)
        assert len(line) > len(typed) + 20, line
        shell.type("\r")
        assert "read whole" in shell.until("read whole")
    assert not made()


def test_fish_offers_names(around: dict[str, str], scripts: Path, objects: None, template: str) -> None:
    def offered(typed: str) -> list[str]:
        return shells.fish_offers(USER, around, scripts, typed)

    assert offered("svc ws sta") == ["start"]
    assert sorted(offered("svc ws start ")) == ["other", "tabbed-one"]
    assert offered("svc ws start other tab") == ["tabbed-one"]
    assert template in offered("svc ws create --template ")
    assert offered("svc fs ls ") == ["work/"]
    assert sorted(offered("svc fs ls work/tabbed/")) == ["work/tabbed/deep/", f"work/tabbed/{HOSTILE}"]
    assert offered("svc fs ls work/tabbed/odd\\ ") == [f"work/tabbed/{HOSTILE}"]
    assert not made()


@pytest.mark.parametrize("name", ["bash", "zsh"])
def test_without_a_service_tab_does_nothing(
    name: str, around: dict[str, str], scripts: Path, objects: None
) -> None:
    nowhere = around | {"SVC_SOCKET": "/run/svc-e2e/none.sock"}
    shell = shells.Interactive(name, USER, nowhere, scripts)
    try:
        for typed in ("svc ws start tab", "svc fs ls work/t"):
            shell.completed("svc who")  # loads the script
            shell.forget()
            shell.screen = ""
            began = time.monotonic()
            assert shell.completed(typed) == typed
            assert time.monotonic() - began < 5
            assert "svc:" not in shell.screen
            assert "rror" not in shell.screen
            shell.forget()
    finally:
        shell.close()
    assert shells.fish_offers(USER, nowhere, scripts, "svc ws start ") == []


def test_only_ones_own_are_offered(objects: None, around: dict[str, str]) -> None:
    asked = [str(PREFIX / "bin/svc"), "__complete", "workspace", ""]
    assert command("tse-bob", *asked, env=around).out.split().count("tabbed-one") == 0
    stranger = command("tse-carol", *asked, env=around)
    assert (stranger.code, stranger.out, stranger.err) == (0, "", "")
    assert os.path.exists(around["SVC_SOCKET"])
