"""Doctor checks of the file systems that the service and Podman write to."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from typing import Any, NamedTuple

from svc.admin.findings import Finding, Host, fail, lines_of, linux_account, ok, warn
from svc.errors import SvcError
from svc.host.owner import run_as

INSPECT_S = 10  # a file server may not respond
MIB = 1024 * 1024
# What fails, what is warned of: free bytes, unless this share of the file system is less; free inodes.
FAIL_BYTES, FAIL_SHARE = 64 * MIB, 0.01
WARN_BYTES, WARN_SHARE = 1024 * MIB, 0.10
INODES_FAIL, INODES_WARN = 0.01, 0.05
IN_MEMORY = ("tmpfs", "ramfs")
FSTAB = "sudo editor /etc/fstab   (add: tmpfs /run tmpfs mode=0755,nosuid,nodev 0 0)"
IN_RUN = "sudo editor /etc/fstab   (without what is mounted below /run, then boot again)"
HOMES_MAX = 20  # directories that hold homes


class FileSystem(NamedTuple):
    """Where it was seen, and how full it is."""

    path: str
    size: int
    free: int
    inodes: int  # 0 where they are not limited
    free_inodes: int


class Mount(NamedTuple):
    """A line of /proc/PID/mounts."""

    path: str
    kind: str
    options: tuple[str, ...]


def disk(host: Host) -> Iterator[Finding]:
    """Free space and inodes of every file system that svc or a user's Podman writes to."""
    places = _places(host)
    found = _checked(run_as(host.owner, lambda: _inspect(places), INSPECT_S), places)
    for code, shortage in (("disk", _short_of_bytes), ("inodes", _short_of_inodes)):
        short = [finding for one in found if (finding := shortage(one))]
        yield from short
        if not short:
            free = ", ".join(f"{_free(one, code)} on {one.path}" for one in found)
            yield ok(code, f"free: {free}")


def _free(one: FileSystem, code: str) -> str:
    if code == "disk":
        return f"{one.free // MIB} MiB"
    return str(one.free_inodes) if one.inodes else "unlimited"


def _places(host: Host) -> list[str]:
    """The service's directories, those of temporary files, and those that hold homes."""
    valid = host.settings.is_valid
    service = [
        os.path.dirname(host.database) if host.database else "",
        host.settings.state_dir if valid("SVC_STATE_DIR") else "",
        os.path.dirname(host.settings.socket) if valid("SVC_SOCKET") else "",
        host.settings.backup_dir if valid("SVC_BACKUP_DIR") else "",
        os.path.dirname(host.settings.store_dir) if valid("SVC_STORE_DIR") else "",
    ]
    homes = [os.path.dirname(entry.pw_dir) for user in host.present if (entry := linux_account(user.name))]
    places = ["/", *service, "/var/log", "/var/tmp", "/run", *list(dict.fromkeys(homes))[:HOMES_MAX]]  # noqa: S108  only measured
    return [host.at(place) if host.root != "/" else place for place in places if place]


def _checked(untrusted: Any, places: list[str]) -> list[FileSystem]:
    """The numbers of the owner's process beside root's own names; raises SvcError for another shape."""
    try:
        rows = [tuple(map(int, row)) for row in untrusted]
        return [FileSystem(places[at], size, free, inodes, left) for at, size, free, inodes, left in rows]
    except (TypeError, ValueError, IndexError):
        raise SvcError("inspecting the file systems returned no usable result") from None


def _inspect(places: list[str]) -> list[tuple[int, ...]]:
    """Each file system once, by the number of the first place on it."""
    found: dict[int, tuple[int, ...]] = {}
    for at, place in enumerate(places):
        try:
            device = os.stat(place).st_dev
            status = os.statvfs(place)
        except OSError:
            continue
        sizes = (status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize)
        found.setdefault(device, (at, *sizes, status.f_files, status.f_favail))
    return list(found.values())


def _short_of_bytes(one: FileSystem) -> Finding | None:
    level = None
    if one.free < min(WARN_BYTES, WARN_SHARE * one.size):
        level = fail if one.free < min(FAIL_BYTES, FAIL_SHARE * one.size) else warn
    if level is None:
        return None
    free = f"{one.free // MIB} of {one.size // MIB} MiB are free on the file system of {one.path}"
    return level("disk", free, f"sudo du -xhd2 {shlex.quote(one.path)} | sort -h | tail -n 20")


def _short_of_inodes(one: FileSystem) -> Finding | None:
    if one.free_inodes >= INODES_WARN * one.inodes:
        return None
    level = fail if one.free_inodes < INODES_FAIL * one.inodes else warn
    free = f"{one.free_inodes} of {one.inodes} inodes are free on the file system of {one.path}"
    return level("inodes", free, f"sudo du -xd2 --inodes {shlex.quote(one.path)} | sort -n | tail -n 20")


def run_tmpfs(host: Host) -> Iterator[Finding]:
    """Whether what is in /run ends with the host, as Podman expects of its pause process's file."""
    found = mounts(host)
    on_disk: dict[str, tuple[str, str]] = {}
    for place in ("/run", "/run/user", *(f"/run/user/{user.uid}" for user in host.present)):
        mount = mount_of(place, found)
        if mount and mount.kind not in IN_MEMORY:
            on_disk.setdefault(mount.path, (place, mount.kind))
    for path, (place, kind) in on_disk.items():
        yield warn(
            "run_tmpfs",
            f"{place} is on {kind}, not in memory: after a boot Podman finds files of dead processes",
            IN_RUN if path.startswith("/run/") else FSTAB,
        )
    if not on_disk:
        yield ok("run_tmpfs", "/run is empty after a boot")


def mounts(host: Host) -> dict[str, Mount]:
    """The mounts that the running server sees, else those of this process, by path; the last one counts."""
    found = {}
    for line in lines_of(host.at(f"/proc/{host.server or 'self'}/mounts")):
        _device, path, kind, options, *_rest = [*line.split(" "), "", "", "", ""]
        name = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)
        found[name] = Mount(name, kind, tuple(options.split(",")))
    return found


def mount_of(path: str, found: dict[str, Mount]) -> Mount | None:
    """The mount that a path without links is on; None where none is known."""
    while path not in found and path != "/":
        path = os.path.dirname(path)
    return found.get(path)
