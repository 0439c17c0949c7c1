"""The stop of a workspace's container: its launchers first, then itself, within one grace period."""

from __future__ import annotations

import os
import select
import time
from _signal import pidfd_send_signal

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import launchers, overrides
from svc_helper.agent.containers.container_info import from_inspect
from svc_helper.agent.containers.containers import end_forgotten, find_container
from svc_helper.agent.containers.spec import container_name
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import crun
from svc_helper.wire.quick_typing import Any

_LEFT_S = 1  # for the container itself, when its launchers have used up the grace period
_ENDED = ("not_found", "not_running")
_CALLER = ("cancelled", "timeout")  # nobody waits for this call any more


def stop(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Stop it, with KILL after grace_s seconds; also succeeds for a stopped or missing one.

    Without a grace period everything is killed. If Podman is still starting it for an
    agent that has died, that start fails without its overrides, or is waited for and stopped.
    """
    overrides.revoke(podman.home, args["id"])
    grace_s = _stop_launchers(podman, call, args["id"], args["grace_s"])
    grace_s = _terminate(podman, call, args["id"], grace_s)
    podman.ask(call, "POST", f"/containers/{container_name(args['id'])}/stop?timeout={grace_s}")
    overrides.withdraw(podman.home, args["id"])
    end_forgotten(podman, call, args["id"])
    found = find_container(podman, call, args["id"])
    facts = from_inspect(found) if found is not None else {"exit_code": None, "oom_killed": False}
    return {name: facts[name] for name in ("exit_code", "oom_killed")}


def _stop_launchers(podman: Podman, call: Call, workspace_id: str, grace_s: int) -> int:
    """Send TERM to every launcher and wait for their end; the seconds of the grace period left.

    With the end of the container's first process the kernel kills all others at once.
    What goes wrong here does not keep the container from being stopped.
    """
    if not grace_s:
        return grace_s
    began = time.monotonic()
    try:
        launchers.stop_all(podman, call, workspace_id, grace_s)
    except Failure as failure:
        if failure.code in _CALLER:
            raise
        if failure.code not in _ENDED:
            call.log("launchers were not stopped before their workspace", "warning", why=failure.message)
    return max(_LEFT_S, round(grace_s - (time.monotonic() - began)))


def _terminate(podman: Podman, call: Call, workspace_id: str, grace_s: int) -> int:
    """Send the stop signal and wait for the end; the seconds of the grace period left for Podman.

    Podman itself checks only every 0.1 s. Where the agent cannot signal (no
    record, another uid) Podman gets the whole grace period.
    """
    running = crun.find_running(podman.home, workspace_id)
    if running is None or not grace_s:
        return grace_s
    try:
        pidfd = crun.open_first_process(running)
    except OSError:
        return grace_s
    try:
        pidfd_send_signal(pidfd, crun.stop_signal(running))
        began = time.monotonic()
        call.wait({pidfd: select.POLLIN}, grace_s)
        return max(0, round(grace_s - (time.monotonic() - began)))
    except OSError:
        return grace_s
    finally:
        os.close(pidfd)
