"""What the doctor finds on a real host: each condition is made, found by its code, mended, and gone."""

from __future__ import annotations

import contextlib
import grp
import os
import pwd
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.installation import PATH, Service, run

USER = "tse-bob"
MIB = 1024 * 1024
SMALL = Path(
    "/mnt/tse-small"
)  # the database's owner, who measures, finds nothing below pytest's own directories


def findings(service: Service, code: str, **env: str) -> list[dict[str, str]]:
    """The findings of a code that are not ok."""
    items = run("root", "admin", "doctor", "--json", env=service.env | env).json()["items"]
    return [item for item in items if item["code"] == code and item["level"] != "ok"]


def called(*argv: str) -> None:
    subprocess.run(argv, check=True, capture_output=True, env={"PATH": PATH})


def paste(remedy: str) -> None:
    """Run a remedy as root does, without what it says in brackets."""
    words = shlex.split(remedy.partition("   (")[0])
    assert words[0] == "sudo"
    called(*words[1:])


@contextlib.contextmanager
def mounted(path: Path, *options: str) -> Iterator[Path]:
    """A small file system in memory, in this run's own mount namespace."""
    path.mkdir(mode=0o700, exist_ok=True)
    called("mount", "-t", "tmpfs", "-o", ",".join(options), "tmpfs", str(path))
    try:
        yield path
    finally:
        called("umount", str(path))
        path.rmdir()


@pytest.fixture
def docker() -> Iterator[None]:
    """The group docker with the user in it; the host may have the group."""
    with contextlib.suppress(KeyError):
        grp.getgrnam("docker")
        pytest.fail("this host has a group docker, which the test would change")
    called("groupadd", "--system", "docker")
    try:
        called("gpasswd", "-a", USER, "docker")
        yield
    finally:
        called("groupdel", "docker")


def test_a_member_of_docker(service: Service, docker: None) -> None:
    [found] = findings(service, "docker_group")
    assert found["found"].startswith(f"{USER} is in the group docker")
    paste(found["remedy"])
    assert findings(service, "docker_group") == []


def test_a_storage_driver_that_copies(service: Service) -> None:
    """The user's own file says vfs; the doctor reads it as that user."""
    account = pwd.getpwnam(USER)
    path = Path(account.pw_dir, ".config/containers/storage.conf")
    before = path.read_bytes()
    try:
        path.write_text('[storage]\ndriver = "vfs"\n')
        [found] = findings(service, "storage")
        assert found["found"] == f"the storage driver of {USER} is vfs, which copies every layer"
    finally:
        path.write_bytes(before)
    assert findings(service, "storage") == []


def test_a_home_that_cannot_be_read(service: Service) -> None:
    """Nobody can, not even its user: what is there is not known, and the others are still checked."""
    path = Path(pwd.getpwnam(USER).pw_dir, ".config/containers")
    mode = path.stat().st_mode
    try:
        path.chmod(0)
        [found] = findings(service, "storage")
        assert USER in found["found"]
    finally:
        path.chmod(mode)
    assert findings(service, "storage") == []


@pytest.mark.parametrize(("option", "level"), [("noexec", "fail"), ("nodev", "warn")])
def test_a_home_that_holds_no_containers(service: Service, option: str, level: str) -> None:
    home = pwd.getpwnam(USER).pw_dir
    called("mount", "--bind", home, home)
    try:
        called("mount", "-o", f"remount,bind,{option}", home)
        [found] = findings(service, "home")
        assert (found["level"], f"({home}) is mounted {option}" in found["found"]) == (level, True)
    finally:
        called("umount", home)
    assert findings(service, "home") == []


def short(service: Service, code: str, path: Path) -> list[str]:
    """The levels of the findings of a code about the file system at this path."""
    found = findings(service, code, SVC_BACKUP_DIR=str(path))
    return [one["level"] for one in found if str(path) in one["found"]]


def test_a_full_disk(service: Service) -> None:
    with mounted(SMALL, "size=8m", "mode=700") as path:
        assert short(service, "disk", path) == []
        (path / "filling").write_bytes(b"x" * (8 * MIB - 16 * 1024))
        assert short(service, "disk", path) == ["fail"]
        (path / "filling").unlink()
        assert short(service, "disk", path) == []


def test_no_inode_left(service: Service) -> None:
    with mounted(SMALL, "size=8m", "nr_inodes=200", "mode=700") as path:
        assert short(service, "inodes", path) == []
        for number in range(200):
            with contextlib.suppress(OSError):
                os.close(os.open(path / str(number), os.O_CREAT | os.O_WRONLY))
        assert short(service, "inodes", path) == ["fail"]
