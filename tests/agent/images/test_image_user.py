"""The user of an image, from its configuration and its own files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent.priv_ns import Agent, User
from agent.registry import Registry

from svc_helper.agent.images import image_user

PASSWD = """root:x:0:0::/root:/bin/sh
toor:x:0:0::/root:/bin/sh
jovyan:x:1000:100::/home/jovyan:/bin/sh
1000:x:7:7::/:/bin/sh
broken
"""
GROUP = "users:x:100:\nstaff:x:50:\n"


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ("jovyan", ("jovyan", 1000, 100)),
        ("jovyan:staff", ("jovyan", 1000, 50)),
        ("jovyan:7", ("jovyan", 1000, 7)),
        ("1001", (None, 1001, 0)),
        ("1001:users", (None, 1001, 100)),
        ("ghost", ("ghost", None, None)),
        ("ghost:nobody", ("ghost", None, None)),
        ("we ird\x1b", (None, None, None)),
        ("99999999999", (None, None, None)),
        ("toor", None),
        ("root:users", None),
    ],
)
def test_numbers(spec: str, found: tuple[Any, ...] | None) -> None:
    expected = None if found is None else dict(zip(("name", "uid", "gid"), found, strict=True))
    assert image_user.resolve(spec, PASSWD, GROUP) == expected


def test_without_files() -> None:
    assert image_user.resolve("1000:100", "", "") == {"name": None, "uid": 1000, "gid": 100}
    assert image_user.resolve("me", "", "") == {"name": "me", "uid": None, "gid": None}
    assert image_user.resolve("root", "", "") is None


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ("me", ""), ("me:users", ""), ("ghost", "missing"), ("me:ghosts", "missing"),
        ("1000:ghosts", "missing"), ("4711", ""),
        ("65535:65535", ""), ("1000650000", "range"), ("1000:65536", "range"),
    ],
)  # fmt: skip
def test_a_user_as_whom_no_container_runs(spec: str, fault: str) -> None:
    passwd, group = "root:x:0:0::/:/bin/sh\nme:x:1000:100::/:/bin/sh\n", "users:x:100:\n"
    found = image_user.resolve(spec, passwd, group)
    assert found is not None
    assert image_user.fault_of(spec, found, passwd, group) == fault
    assert image_user.fault_of("ghost", found, "", "") in ("", "range"), "of files that could not be read"


def test_links_and_directories_are_not_read(tmp_path: Path) -> None:
    for layer in ("linked", "directory", "lower"):
        (tmp_path / layer).mkdir()
    (tmp_path / "linked/etc").symlink_to("/etc")
    (tmp_path / "directory/etc/passwd").mkdir(parents=True)
    (tmp_path / "lower/etc").mkdir()
    (tmp_path / "lower/etc/passwd").write_text("me:x:5:5::/:/bin/sh\n")
    linked, directory, lower = (str(tmp_path / name) for name in ("linked", "directory", "lower"))
    assert image_user._topmost([linked, lower], "passwd") == ""
    assert image_user._topmost([directory, lower], "passwd") == ""
    assert image_user._topmost([str(tmp_path / "none"), lower], "passwd").startswith("me:")


@pytest.fixture
def built(user: User, image: str, agent: Agent) -> Iterator[str]:
    """An image with an account of its own."""
    ref = "localhost/tsa/own-user:1"
    account = "RUN echo jovyan:x:1234:100::/:/bin/sh >> /etc/passwd"
    lines = f"FROM {image}\\n{account}\\nRUN touch /later\\nUSER jovyan\\n"
    user.run("sh", "-c", f"printf '{lines}' | podman build -q --pull=never -t {ref} -")
    yield ref
    user.podman("rmi", "-f", ref, check=False)


@pytest.mark.root
def test_a_real_image(agent: Agent, built: str, image: str) -> None:
    found = agent.call("image.inspect", image=built).data
    assert found["user"] == {"name": "jovyan", "uid": 1234, "gid": 100}
    assert agent.call("image.inspect", image=image).data["user"] is None


@pytest.mark.root
def test_a_number_alone(agent: Agent, registry: Registry) -> None:
    ref = registry.put("team/number:1", User="4321:77")
    assert agent.call("image.pull", image=ref).data["user"] == {"name": None, "uid": 4321, "gid": 77}
