"""The checks of file systems, on made-up hosts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from unit.admin.checks import made_up
from unit.admin.checks.made_up import levels, put

from svc.admin.checks import disks
from svc.admin.findings import Host
from svc.errors import SvcError
from svc.settings import Settings

host = made_up.host
MIB = 1 << 20
GIB = 1 << 30


@pytest.fixture
def sizes(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """What statvfs says of every file system."""
    names = ("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree", "f_favail")
    figures = dict.fromkeys(names, 0) | {
        "f_frsize": MIB,
        "f_blocks": 100_000,
        "f_bavail": 50_000,
        "f_files": 1000,
        "f_favail": 500,
    }
    monkeypatch.setattr(
        os, "statvfs", lambda _path: os.statvfs_result((*(figures[name] for name in names), 0, 255))
    )
    host.settings = Settings(environ={"SVC_STATE_DIR": str(tmp_path)}, file={})
    return figures


@pytest.mark.parametrize(
    ("change", "code", "level"),
    [
        ({}, "disk", "ok"),
        ({"f_bavail": 1023}, "disk", "warn"),
        ({"f_bavail": 63}, "disk", "fail"),
        ({"f_blocks": 200, "f_bavail": 30}, "disk", "ok"),  # a small one: a tenth is enough
        ({"f_blocks": 200, "f_bavail": 19}, "disk", "warn"),
        ({"f_blocks": 200, "f_bavail": 1}, "disk", "fail"),
        ({"f_favail": 49}, "inodes", "warn"),
        ({"f_favail": 9}, "inodes", "fail"),
        ({"f_files": 0, "f_favail": 0}, "inodes", "ok"),  # btrfs
    ],
)
def test_what_is_left(
    host: Host, sizes: dict[str, int], change: dict[str, int], code: str, level: str
) -> None:
    sizes.update(change)
    found = {one.code: one for one in disks.disk(host)}
    assert found[code].level == level
    assert [one.level for one in found.values() if one.code != code] == ["ok"]
    if level != "ok":
        assert found[code].remedy.startswith("sudo du -x")


def test_the_owners_numbers_are_checked(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    for lie in (None, [[0, 1]], [[999, 1, 1, 1, 1]], [["/etc", 1, 1, 1, 1]]):
        monkeypatch.setattr(disks, "run_as", lambda *_, lie=lie: lie)
        with pytest.raises(SvcError):
            list(disks.disk(host))


@pytest.mark.parametrize(
    ("line", "level"), [("tmpfs /run tmpfs rw 0 0", "ok"), ("/dev/sda1 / ext4 rw 0 0", "warn"), ("", "ok")]
)
def test_run_in_memory(host: Host, line: str, level: str) -> None:
    put(host, "/proc/self/mounts", f"{line}\n")
    assert levels(disks.run_tmpfs, host) == [("run_tmpfs", level)]


@pytest.mark.parametrize("place", ["/run/user", "/run/user/4001"])
def test_a_users_runtime_directory_on_disk(host: Host, place: str) -> None:
    put(host, "/proc/self/mounts", f"tmpfs /run tmpfs rw 0 0\n/dev/sda1 {place} ext4 rw 0 0\n")
    (found,) = disks.run_tmpfs(host)
    assert (found.code, found.level, found.found.split(",")[0]) == (
        "run_tmpfs",
        "warn",
        f"{place} is on ext4",
    )
    assert found.remedy == "sudo editor /etc/fstab   (without what is mounted below /run, then boot again)"


def test_the_mount_of_a_path(host: Host) -> None:
    put(
        host,
        "/proc/self/mounts",
        "/dev/a / ext4 rw 0 0\n/dev/b /home\\040dir ext4 rw,noexec 0 0\nx /home nfs4 rw 0 0\n",
    )
    found = disks.mounts(host)
    assert [disks.mount_of(path, found).path for path in ("/home dir/ada", "/home/ada", "/var/tmp")] == [  # type: ignore[union-attr]
        "/home dir",
        "/home",
        "/",
    ]
