"""The first process of a workspace's container, and the container's own cgroup."""

from __future__ import annotations

from typing import NamedTuple

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import containers
from svc_helper.agent.home import CGROUPS
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import crun

_GROUPS_MAX = 16 * 1024


class First(NamedTuple):
    """A container's first process, named for good by its pid and its start."""

    pid: int
    started: int  # clock ticks since boot
    group: str  # the directory of the container's cgroup; empty when it has none of its own


def find(podman: Podman, call: Call, workspace_id: str) -> First | None:
    """None for a container that does not run; raises Failure `not_found` when there is none."""
    running = crun.find_running(podman.home, workspace_id)
    if running is not None:
        return First(running.pid, running.started, running.cgroup)
    facts = containers.inspect(podman, call, {"id": workspace_id})  # remembers where it is
    if not facts["exists"]:
        raise Failure("not_found", "the container does not exist")
    running = crun.find_running(podman.home, workspace_id)
    if running is not None:
        return First(running.pid, running.started, running.cgroup)
    pid = facts["pid"] if facts["status"] == "running" else None
    started = crun.start_time(pid) if pid else None
    if pid is None or started is None:
        return None
    return First(pid, started, _group_of(pid, facts["container_id"]))


def _group_of(pid: int, container_id: str) -> str:
    """The cgroup, where another runtime keeps no record that we know."""
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as file:
            lines = file.read(_GROUPS_MAX).splitlines()
    except OSError:
        return ""
    return own_group(next((line[3:] for line in lines if line[:3] == "0::"), ""), container_id)


def own_group(path: str, container_id: str) -> str:
    """The container's part of a process's path among the cgroups; the process may be in a group below."""
    before, found, after = path.partition(f"libpod-{container_id}")
    scope = ".scope" if after.startswith(".scope") else ""
    return f"{CGROUPS}{before}{found}{scope}" if found else ""
