"""The processes on this host's GPUs: of workspaces with a lease, or outside svc.

The driver lists processes. A process belongs to a container by its cgroup or, where
Podman creates none, by the container's files that are mounted in it. Users can forge
both, so a process counts as a workspace's only if it also runs as the workspace's
owner, and as leased only on a GPU that the workspace holds.
"""

from __future__ import annotations

import os
import pwd
import re
from typing import NamedTuple

from svc.db.connect import database
from svc.domain.gpus import hardware
from svc.domain.gpus.gpus import GpuProcess

SUBUID = "/etc/subuid"
FILE_MAX = 1024 * 1024
_CONTAINER = re.compile(r"(?:^|/)libpod-([0-9a-f]{64})(?:\.scope)?(?=/|$)", re.MULTILINE)
# The sources of bind mounts: .../overlay-containers/ID/userdata/resolv.conf
_MOUNTED = re.compile(
    r"^[0-9]+ [0-9]+ [0-9]+:[0-9]+ /\S*-containers/([0-9a-f]{64})/userdata/\S+ /", re.MULTILINE
)
_UID = re.compile(r"^Uid:\t([0-9]{1,10})\t", re.MULTILINE)


class Use(NamedTuple):
    """A process on a GPU: pid on the host, user, memory (None: not reported), uuid of the GPU."""

    pid: int
    user: str
    used_bytes: int | None
    gpu: str


class _Process(NamedTuple):
    """The user and the container of a process (None: no container)."""

    user: str
    container_id: str | None


def outside() -> dict[str, list[Use]]:
    """By GPU, its processes other than those of workspaces that hold it: "use outside svc" is avoided."""
    found: dict[str, list[Use]] = {}
    seen = hardware.processes()
    if not seen:
        return found
    leased = set(
        database.execute_sql(
            "SELECT l.gpu, w.container_id, u.name FROM gpu_leases l"
            " JOIN workspaces w ON w.id = l.workspace_id JOIN users u ON u.id = w.owner_id"
        ).fetchall()
    )
    for process, of in _identified(seen):
        if (process.uuid, of.container_id, of.user) not in leased:
            found.setdefault(process.uuid, []).append(_use(process, of))
    return found


def of_container(container_id: str) -> list[Use]:
    """The processes of a workspace's container on any GPU, as the driver sees them."""
    owner = database.execute_sql(
        "SELECT u.name FROM workspaces w JOIN users u ON u.id = w.owner_id WHERE w.container_id = ?",
        (container_id,),
    ).fetchone()
    if owner is None:
        return []
    return [
        _use(process, of)
        for process, of in _identified(hardware.processes())
        if (of.container_id, of.user) == (container_id, owner[0])
    ]


def _use(process: GpuProcess, of: _Process) -> Use:
    return Use(process.pid, of.user, process.used_bytes, process.uuid)


def _identified(seen: list[GpuProcess]) -> list[tuple[GpuProcess, _Process]]:
    """Each process with its user and container from /proc, without those that have ended."""
    found = {pid: _process(pid) for pid in {process.pid for process in seen}}
    return [(process, of) for process in seen if (of := found[process.pid])]


def _process(pid: int) -> _Process | None:
    """None for a process that has ended; the user is "?" for one that /proc hides."""
    try:
        status = _read(f"/proc/{pid}/status")
        container = _CONTAINER.search(_read(f"/proc/{pid}/cgroup")) or _MOUNTED.search(
            _read(f"/proc/{pid}/mountinfo")
        )
    except (FileNotFoundError, ProcessLookupError):
        return _Process("?", None) if _exists(pid) else None
    except OSError:
        return _Process("?", None)
    uid = _UID.search(status)
    return _Process(user_of(int(uid[1])) if uid else "?", container[1] if container else None)


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(FILE_MAX)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def user_of(uid: int) -> str:
    """The Linux user of a uid, also of a subordinate uid, with which a container's processes run."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        pass
    try:
        lines = _read(SUBUID).splitlines()
    except OSError:
        lines = []
    for line in lines:
        match = re.fullmatch(r"([^:\s]+):([0-9]{1,10}):([0-9]{1,10})", line.strip())
        if match and int(match[2]) <= uid < int(match[2]) + int(match[3]):
            return _named(match[1])
    return f"uid {uid}"


def _named(name: str) -> str:
    """The user of an entry in /etc/subuid, which has a name or a uid."""
    if not name.isdigit():
        return name
    try:
        return pwd.getpwuid(int(name)).pw_name
    except KeyError:
        return f"uid {name}"
