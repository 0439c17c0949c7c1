"""Launchers: named apps in a running workspace, run by its shim.

Their states and output are files in the user's home directory, also readable
while no shim runs.
"""

from __future__ import annotations

import os
import time

from svc_helper.agent import paths
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import last_lines, shims
from svc_helper.agent.containers.running import find_by_crun, listens_on
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import launcher_states
from svc_helper.agent.runtime.launcher_states import EXITED, STARTED, State
from svc_helper.wire.quick_typing import Any

_PAUSE_S = 0.05
_WITHOUT_PORT_S = 1.0  # a mistake in a command, or a program that is missing, shows by then
_KILL_S = 5  # for what has been killed to be gone; the end of the container does not wait longer


def listing(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """The state of every launcher that ever ran in the workspace."""
    data = shims.request_if_running(podman, call, args["id"], "launcher.list", {})
    if data is not None:
        return {"launchers": data["launchers"]}
    found = launcher_states.read_all(paths.launchers(podman.home.home, args["id"]))
    if any(state.state == STARTED for state in found.values()):
        # Its shim was killed: a new one recovers. Or the host went down with both.
        try:
            return {"launchers": shims.request(podman, call, args["id"], "launcher.list", {})["launchers"]}
        except Failure as failure:
            if failure.code not in ("not_found", "not_running"):
                raise
    return {"launchers": [launcher_states.ended(state).row() for state in found.values()]}


def start(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Start one; its state after watch_ms, or as soon as it has exited. A running one is left running.

    A command that cannot be run exits with 127 or 126, and its output contains the reason. The state of
    one that has exited has its last lines as `output`.
    """
    parameters = {name: args[name] for name in ("name", "command", "env", "watch_ms")}
    state = shims.request(podman, call, args["id"], "launcher.start", parameters)
    if state.get("state") == EXITED:
        state["output"] = last_lines.of_launcher(podman.home, call, args["id"], args["name"])
    return state


def stop(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Stop one with all its processes, with KILL after grace_s seconds; returns its state."""
    parameters = {name: args[name] for name in ("name", "grace_s")}
    data = shims.request_if_running(podman, call, args["id"], "launcher.stop", parameters)
    if data is not None:
        return data
    rows = listing(podman, call, args)["launchers"]
    return next((row for row in rows if row["name"] == args["name"]), State(args["name"]).row())


def stop_all(podman: Podman, call: Call, workspace_id: str, grace_s: int) -> None:
    """Stop all with all their processes at once, with KILL after grace_s seconds.

    Processes that a launcher has left behind are among them, also when its shim has ended since.
    """
    request = podman, call, workspace_id, "launcher.stop_all", {"grace_s": grace_s}
    wait_s = grace_s + _KILL_S
    try:
        data = shims.request_if_running(*request, wait_s=wait_s)
        if data is None and _may_have_left(podman, workspace_id):
            shims.request(*request, wait_s=wait_s)
    except Failure as failure:
        if not shims.is_unknown(failure):
            raise
        _stop_each(podman, call, workspace_id, grace_s)


def _may_have_left(podman: Podman, workspace_id: str) -> bool:
    """Whether a launcher's processes may exist, by the states on disk: a mark is forgotten with the last."""
    found = launcher_states.read_all(paths.launchers(podman.home.home, workspace_id))
    return any(state.mark for state in found.values())


def _stop_each(podman: Podman, call: Call, workspace_id: str, grace_s: int) -> None:
    """As stop_all(), one after another: with a shim of an older release."""
    until = time.monotonic() + grace_s
    for row in listing(podman, call, {"id": workspace_id})["launchers"]:
        if row["state"] == STARTED:
            left_s = max(0.0, until - time.monotonic())
            parameters = {"name": row["name"], "grace_s": left_s}
            wait_s = left_s + _KILL_S
            shims.request_if_running(podman, call, workspace_id, "launcher.stop", parameters, wait_s=wait_s)


# --- the first moments of those that a start of their workspace has begun ------------------


def watch(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """The states of these launchers after watch_ms, or sooner; of exited ones `output`, the last lines.

    `listens`: whether any program listens on the port that it serves; null without one. Sooner: a
    launcher has proved itself once something listens on the port that it serves.
    """
    directory = paths.launchers(podman.home.home, args["id"])
    running = find_by_crun(podman, call, args["id"])
    began, waiting = time.monotonic(), {one["name"]: one["port"] for one in args["launchers"]}
    states: dict[str, State] = {}
    listens: dict[str, bool | None] = {}
    watch_s = args["watch_ms"] / 1000
    while waiting:
        passed = time.monotonic() - began
        for name, port in list(waiting.items()):
            states[name] = launcher_states.read(directory, name) or State(name)
            listens[name] = None
            if port is not None and running is not None:
                listens[name] = listens_on(running.pid, port)
            is_due = passed >= (watch_s if port is not None else min(watch_s, _WITHOUT_PORT_S))
            if states[name].state == EXITED or listens[name] or is_due:
                del waiting[name]
        if waiting:
            call.sleep(_PAUSE_S)
    rows = [
        _row(podman, call, args["id"], states[name]) | {"listens": listens[name]}
        for name in (one["name"] for one in args["launchers"])
    ]
    return {"launchers": rows}


def watch_end(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """A pidfd of a started launcher's own process, readable when it ends."""
    directory = paths.launchers(podman.home.home, args["id"])
    state = launcher_states.read(directory, args["name"]) or State(args["name"])
    if state.state != STARTED or state.pid is None:
        raise Failure("not_running", "the launcher is not started")
    try:
        call.fds.append(os.pidfd_open(state.pid))
    except ProcessLookupError:
        raise Failure("not_running", "the launcher is not started") from None
    # Before pidfd_open() the process may have ended and its pid been reused.
    if launcher_states.read(directory, args["name"]) != state:
        raise Failure("not_running", "the launcher is not started")
    return {"started_at": state.started_at}


def _row(podman: Podman, call: Call, workspace_id: str, state: State) -> dict[str, Any]:
    row = state.row()
    if state.state == EXITED:
        row["output"] = last_lines.of_launcher(podman.home, call, workspace_id, state.name)
    return row
