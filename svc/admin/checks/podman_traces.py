"""Doctor checks of what users' Podman has on the host: where its containers run, what its pulls left.

By /proc and the names in /var/tmp alone: nothing of a user's is opened, and no Podman is started.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from svc.admin.findings import Finding, Host, lines_of, ok, warn
from svc.errors import SvcError
from svc.host.owner import run_as

CONMON = "conmon"  # the process of Podman's that each running container has outside
DOWNLOADS = "/var/tmp"  # noqa: S108  Podman's own choice for layers, until they are unpacked
DOWNLOAD = re.compile(r"storage[0-9]+")
OLD_S = 24 * 3600  # a pull that runs writes more often
INSPECT_S = 10


def container_cgroups(host: Host) -> Iterator[Finding]:
    """Whether each user's containers are in that user's own slice, and so outlive the service."""
    if not host.systemd:
        return
    users = {user.uid: user for user in host.present}
    count, sound = 0, True
    for pid, uid in _processes(host, CONMON):
        user, group = users.get(uid), _cgroup(host, pid)
        if user is None or not group:
            continue
        count += 1
        if f"/user.slice/user-{uid}.slice/" not in group:
            sound = False
            yield warn(
                "container_cgroups",
                f"a container of {user.name} (conmon, pid {pid}) is in {group[:80]} and ends with it",
                f"sudo -iu {user.name} svc ws list"
                "   (and for each that runs: svc ws stop NAME, then svc ws start NAME)",
            )
    if sound:
        yield ok("container_cgroups", f"{count} running, each in its user's own slice")


def _processes(host: Host, name: str) -> Iterator[tuple[int, int]]:
    """Pid and real uid of each process of this name; those that end meanwhile are left out."""
    for pid in sorted(map(int, filter(str.isdigit, os.listdir(host.at("/proc"))))):
        fields = dict(
            line.split(":\t", 1) for line in lines_of(host.at(f"/proc/{pid}/status")) if ":\t" in line
        )
        if fields.get("Name") == name:
            yield pid, int(fields["Uid"].split()[0])


def _cgroup(host: Host, pid: int) -> str:
    """The process's group in the unified hierarchy; empty for one that is gone."""
    groups = (line for line in lines_of(host.at(f"/proc/{pid}/cgroup")) if line.startswith("0::"))
    return next(groups, "0::").removeprefix("0::")


def stale_downloads(host: Host) -> Iterator[Finding]:
    """Layers of pulls that were killed; the user's next pull would remove them, if there is one."""
    directory = host.at(DOWNLOADS)
    stale = _checked(run_as(host.owner, lambda: _inspect(directory), INSPECT_S))
    sound = True
    for user in host.present:
        if count := stale.get(user.uid):
            sound = False
            yield warn(
                "stale_downloads",
                f"killed pulls of {user.name} left layers in {DOWNLOADS} long ago; directories: {count}",
                f"sudo -iu {user.name} find {DOWNLOADS}/storage[0-9]* -user {user.name} -mmin +1440 -delete",
            )
    if sound:
        yield ok("stale_downloads", f"no killed pull of an enrolled user left anything in {DOWNLOADS}")


def _checked(untrusted: Any) -> dict[int, int]:
    """The result of the owner's process; raises SvcError for another shape."""
    try:
        return {int(uid): int(count) for uid, count in untrusted}
    except (TypeError, ValueError):
        raise SvcError(f"inspecting {DOWNLOADS} returned no usable result") from None


def _inspect(directory: str) -> list[tuple[int, int]]:
    """How many directories of old downloads each uid has; a user may have mounted anything on one."""
    stale: Counter[int] = Counter()
    limit = time.time() - OLD_S
    with suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            if not DOWNLOAD.fullmatch(entry.name):
                continue
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode) and status.st_mtime < limit:
                    stale[status.st_uid] += 1
    return list(stale.items())
