"""The start of a container, and what becomes of it in the first moments.

A command that cannot be run ends within milliseconds: the container's first process is
catatonit (--init), which begins whatever the image has, so that to Podman such a start
has succeeded. A start therefore waits for WATCH_S, and while the command is busy, as a
program is that reads its libraries, for BUSY_S.
"""

from __future__ import annotations

import os
import select
import time
from typing import Any

from svc_helper.agent.calls import Call
from svc_helper.agent.containers import containers, last_lines
from svc_helper.agent.containers.spec import container_name
from svc_helper.agent.podman import causes
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime.log_files import Position

WATCH_S = 0.035  # an ordinary command waits for something by then
BUSY_S = 0.5
_STEP_S = 0.05
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
        began, timeout_s = time.monotonic(), WATCH_S
        while not call.wait({pidfd: select.POLLIN}, timeout_s):
            if time.monotonic() - began > BUSY_S or not _is_busy(pid):
                return False
            timeout_s = _STEP_S
        return True
    finally:
        os.close(pidfd)


def _is_busy(first: int) -> bool:
    """Whether the first process or one that it has started computes, reads from a disk or has just ended."""
    try:
        with open(f"/proc/{first}/task/{first}/children", encoding="ascii") as file:
            pids = [str(first), *file.read().split()]
    except OSError:
        return False
    return any(_state(pid) in (b"R", b"D", b"Z") for pid in pids)


def _state(pid: str) -> bytes:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read(4096).rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return b""
