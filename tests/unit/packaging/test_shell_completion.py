"""The completion of the shells, as text and in the bash that every host has."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_service import Service

ROOT = Path(__file__).parents[3]
PYTHON = os.path.basename(sys.executable)
NAMES = ("svc.bash", "_svc", "svc.fish")
pytestmark = pytest.mark.allow_commands(PYTHON, "bash")


def written(folder: Path, **env: str) -> dict[str, str]:
    """The scripts that packaging/completion writes, by their name."""
    command = [sys.executable, str(ROOT / "packaging/completion"), str(folder)]
    done = subprocess.run(command, env=os.environ | env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the scripts are written."""
    return tmp_path_factory.mktemp("scripts")


@pytest.fixture(scope="module")
def scripts(folder: Path) -> dict[str, str]:
    """The script of each shell."""
    return written(folder)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service of which the scripts ask."""
    service = Service(tmp_path / "svc.sock")
    yield service
    service.close()


@pytest.fixture
def candidates(scripts: dict[str, str], folder: Path, tmp_path: Path) -> Callable[..., list[str]]:
    """candidates(word, ...) -> what bash offers for the last word."""
    program = tmp_path / "bin" / "svc"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable} -IS\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from svc.__main__ import main\nsys.exit(main())\n"
    )
    program.chmod(0o755)
    env = {"PATH": f"{program.parent}:/usr/bin:/bin", "SVC_SOCKET": str(tmp_path / "svc.sock")}
    asked = (
        f'source {folder}/svc.bash; COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _svc svc;'
        ' [ ${#COMPREPLY[@]} = 0 ] || printf "%s\\n" "${COMPREPLY[@]}"'
    )

    def offered(*words: str) -> list[str]:
        command = ["bash", "-euc", asked, "bash", "svc", *words]
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    return offered


def test_the_same_tree_gives_the_same_scripts(scripts: dict[str, str], tmp_path: Path) -> None:
    assert set(scripts) == set(NAMES)
    for seed in ("1", "2"):
        assert written(tmp_path / seed, PYTHONHASHSEED=seed) == scripts
    assert not [line for text in scripts.values() for line in text.splitlines() if "://" in line]


def test_every_list_of_names_is_asked_for_in_every_shell(scripts: dict[str, str]) -> None:
    for text in scripts.values():
        for kind in ("workspace", "template", "token", "operation"):
            assert f"_svc_{kind}" in text or f"__complete {kind} " in text
        assert "eval " not in text.replace("[-1] == eval ]", "")
    assert "COMPGEN=_svc_workspace\n" in scripts["svc.bash"]


def test_bash_completes_commands_options_and_values(candidates: Callable[..., list[str]]) -> None:
    assert candidates("w") == ["whoami", "ws"]
    assert candidates("ws", "st") == ["start", "stop"]
    assert candidates("ws", "start", "--j") == ["--json"]
    assert candidates("ws", "create", "--gpu-mode", "") == ["exclusive", "shared"]
    assert candidates("api", "P") == ["POST", "PUT", "PATCH"]
    assert candidates("ws", "rename", "--name", "x") == []


def test_bash_completes_names(service: Service, candidates: Callable[..., list[str]]) -> None:
    service.answer("GET /api/workspaces?limit=200", {"items": [{"name": "lab"}, {"name": "paper"}]})
    service.answer("GET /api/templates?limit=200", {"items": [{"name": "hello"}]})
    assert candidates("ws", "start", "") == ["lab", "paper"]
    assert candidates("ws", "stop", "--owner", "x", "lab", "p") == ["paper"]
    assert candidates("ws", "create", "--template", "h") == ["hello"]
    assert candidates("image", "pull", "") == ["hello"]


HOSTILE = ["$(touch made)", "`touch made`", "a;touch made", "it's", 'a"b', "-rf", "a\\b", "*", "~root", "!!"]


@pytest.mark.parametrize("quote", ["", "'", '"'])
def test_no_name_is_evaluated(
    service: Service, candidates: Callable[..., list[str]], tmp_path: Path, quote: str
) -> None:
    """What readline inserts stands for the name, in the quotes that were begun, and runs nothing."""
    items = [{"name": name, "type": "file"} for name in HOSTILE]
    service.answer("GET /api/templates?limit=200", {"items": items})
    service.answer("GET /api/fs/work/list?limit=10000&path=", {"items": items})
    before = sorted(path.name for path in tmp_path.iterdir())
    for typed, prefix in ((("template", "get", quote), ""), (("fs", "read", f"{quote}work/"), "work/")):
        words = [f"{quote}{word}{quote}" for word in candidates(*typed)]
        asked = ["bash", "-c", f"printf '%s\\n' {' '.join(words)}"]
        echoed = subprocess.run(asked, capture_output=True, text=True, cwd=tmp_path)
        expected = [prefix + name for name in HOSTILE if (prefix or name != "-rf")]
        assert echoed.stdout.splitlines() == [each for each in expected if quote != '"' or "!" not in each]
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_path_is_typed_on(service: Service, candidates: Callable[..., list[str]]) -> None:
    service.answer("GET /api/fs/work/list?limit=10000&path=", {"items": [{"name": "it's $x"}]})
    assert candidates("fs", "read", "work/it\\'") == ["work/it\\'s\\ \\$x"]
    assert candidates("fs", "read", "\"work/it's") == ["work/it's \\$x"]
    assert candidates("fs", "read", "'work/i") == ["work/it'\\''s $x"]


def test_bash_completes_paths(service: Service, candidates: Callable[..., list[str]], tmp_path: Path) -> None:
    (tmp_path / "my file.csv").touch()
    (tmp_path / "my dir").mkdir()
    service.answer(
        "GET /api/fs/work/list?limit=10000&path=", {"items": [{"name": "in", "type": "directory"}]}
    )
    assert candidates("fs", "ls", "") == ["work/"]
    assert sorted(candidates("fs", "upload", "my\\ ")) == ["my dir", "my file.csv"]
    assert candidates("fs", "upload", "my file.csv", "work/") == ["work/in/"]
    assert candidates("template", "create", "--context", "my") == ["my dir"]
    assert candidates("admin", "restore", "my\\ f") == ["my file.csv"]


def test_without_a_service_nothing_is_offered_or_said(candidates: Callable[..., list[str]]) -> None:
    assert candidates("ws", "start", "") == []
    assert candidates("fs", "ls", "work/") == []
