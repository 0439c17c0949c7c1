"""Launchers: named apps in a running workspace, run by its shim.

Their states and output are files in the user's home directory, also readable
while no shim runs.
"""

from __future__ import annotations

from typing import Any

from svc_helper.agent import paths
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import last_lines, shims
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import launcher_states
from svc_helper.agent.runtime.launcher_states import EXITED, STARTED, State


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
