"""A workspace's running container: by crun's record, or its first process and cgroup."""

from __future__ import annotations

from svc_helper.agent import paths
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.home import CGROUPS
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import cgroups, conmon_log, crun
from svc_helper.agent.runtime.crun import Running
from svc_helper.wire.quick_typing import Any, NamedTuple

_TABLE_MAX = 256 * 1024
_LISTENS = b"0A"


class First(NamedTuple):
    """A container's first process, identified for good by its pid and start time."""

    pid: int
    started: int  # clock ticks since boot
    group: str  # the container's cgroup directory; empty when it has none of its own


def find_by_crun(podman: Podman, call: Call, workspace_id: str) -> Running | None:
    """The container as crun records it, None where crun does not; without a record Podman is asked.

    Raises Failure `not_found` or `not_running`.
    """
    running, facts = _find(podman, call, workspace_id)
    if running is None and facts["status"] != "running":
        raise Failure("not_running", "the workspace is not running")
    return running


def find(podman: Podman, call: Call, workspace_id: str) -> First | None:
    """The first process, None for a container that does not run; raises Failure `not_found`."""
    running, facts = _find(podman, call, workspace_id)
    if running is not None:
        return First(running.pid, running.started, running.cgroup)
    pid = facts["pid"] if facts["status"] == "running" else None
    started = crun.start_time(pid) if pid else None
    if pid is None or started is None:
        return None
    return First(pid, started, own_group(cgroups.path_of(pid), facts["container_id"]))


def _find(podman: Podman, call: Call, workspace_id: str) -> tuple[Running | None, dict[str, Any]]:
    """crun's record, or what Podman knows of the container; raises Failure `not_found`.

    Every call about a running container comes here, so its output is looked after as well.
    """
    conmon_log.arrange(paths.output(podman.home.home, workspace_id))
    running = crun.find_running(podman.home, workspace_id)
    if running is not None:
        return running, {}
    from svc_helper.agent.containers import containers  # here: most calls need nothing of it

    facts = containers.inspect(podman, call, {"id": workspace_id})  # caches the container's id and bundle
    if not facts["exists"]:
        raise Failure("not_found", "the container does not exist")
    return crun.find_running(podman.home, workspace_id), facts


def own_group(path: str, container_id: str) -> str:
    """The cgroup of a container by the path of one of its processes, which may be in a group below."""
    before, found, after = path.partition(f"libpod-{container_id}")
    scope = ".scope" if after.startswith(".scope") else ""
    return f"{CGROUPS}{before}{found}{scope}" if found else ""


def listens_on(pid: int, port: int) -> bool:
    """Whether any program of the container listens on a TCP port."""
    number = b":%04X" % port
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}", "rb", buffering=0) as file:
                rows = (row.split() for row in file.read(_TABLE_MAX).splitlines()[1:])
                if any(len(row) > 3 and row[1].endswith(number) and row[3] == _LISTENS for row in rows):
                    return True
        except OSError:
            continue
    return False
