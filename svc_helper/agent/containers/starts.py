"""The start of a container, and what becomes of it in the first moments.

A command that cannot be run ends within milliseconds: the container's first process is
catatonit (--init), which begins whatever the image has, so that to Podman such a start
has succeeded. A start therefore waits until nothing in the container has done anything for
a moment, as a command does that waits for something. While one of its processes is busy, as
a program is that reads its libraries, it waits on, for BUSY_S at most.
"""

from __future__ import annotations

import os
import select
import time

from svc_helper.agent.calls import Call
from svc_helper.agent.containers import containers, last_lines
from svc_helper.agent.containers.spec import container_name
from svc_helper.agent.podman import causes
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import processor_time
from svc_helper.agent.runtime.log_files import Position
from svc_helper.wire.quick_typing import Any

BUSY_S = 0.5
_STEP_S = 0.008  # between two looks
_IDLE_US = 500  # of processor time in one step: a server that waits may have a timer
_PROCESSES_MAX = 64  # looked at: a command that has started more is not one that cannot be run
_CONDITIONS = "condition=stopped&condition=exited&interval=20ms"


def start(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Start it: see containers.start(); `ended` says how it has ended by now, null while it runs.

    {exit_code, oom_killed, output, code, message}: its last lines, and the cause where its
    command never began, otherwise null.
    """
    before = last_lines.end_of(podman.home, args["id"])
    started = containers.start(podman, call, args)
    ran_already = started.pop("ran_already")
    ended = None
    if not ran_already and (started["pid"] is None or _ends(call, started["pid"])):
        ended = _ended(podman, call, args["id"], before)
    return started | {"ended": ended}


def _ended(podman: Podman, call: Call, workspace_id: str, before: Position) -> dict[str, Any] | None:
    """How it ended; None for one that the user has removed or started again meanwhile."""
    # Its first process may be gone before conmon has written the exit code and the last output.
    podman.ask(call, "POST", f"/containers/{container_name(workspace_id)}/wait?{_CONDITIONS}")
    facts = containers.inspect(podman, call, {"id": workspace_id})
    if not facts["exists"] or facts["status"] == "running":
        return None
    output = last_lines.of_container(podman.home, call, workspace_id, before)
    code, message = causes.of_start(output) or (None, None)
    of_end = {name: facts[name] for name in ("exit_code", "oom_killed")}
    return {**of_end, "output": output, "code": code, "message": message}


def _ends(call: Call, pid: int) -> bool:
    """Wait for the end of the first process; False if it is still there after these moments."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return True
    try:
        began, before = time.monotonic(), _times(pid)
        while not call.wait({pidfd: select.POLLIN}, _STEP_S):
            now = _times(pid)
            if _is_idle(before, now) or time.monotonic() - began > BUSY_S:
                return False
            before = now
        return True
    finally:
        os.close(pidfd)


def _is_idle(before: dict[int, int] | None, now: dict[int, int] | None) -> bool:
    """Whether the same processes have waited for something from one look to the next."""
    if before is None or now is None or before.keys() != now.keys():
        return False
    return sum(now.values()) - sum(before.values()) < _IDLE_US


def _times(first: int) -> dict[int, int] | None:
    """The processor time of the first process and its descendants; None if one computes, reads or has ended.

    A process that could run and gets no processor counts as one that computes.
    """
    found: dict[int, int] = {}
    unseen = [first]
    while unseen and len(found) < _PROCESSES_MAX:
        pid = unseen.pop()
        if _state(pid) not in (b"S", b"T", b"t", b"I"):
            return None
        found[pid] = processor_time.of_process(pid)
        unseen += _children(pid)
    return found


def _children(pid: int) -> list[int]:
    """The children of all its threads."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
    except OSError:
        pass  # it has just ended
    return found


def _state(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read(4096).rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return b""
