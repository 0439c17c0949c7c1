"""Launchers: named apps in a running workspace, run by its shim.

Their states and output are files in the user's home directory, also readable
while no shim runs.
"""

from __future__ import annotations

import json
from typing import Any

from svc_helper.agent import paths
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import shims
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import launcher_states, rotating_log
from svc_helper.agent.runtime.launcher_states import STARTED, State
from svc_helper.wire.limits import LOG_BYTES_MAX

_REPLY_MAX = 3 * 1024 * 1024  # as JSON, in which a control character takes six bytes


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
    """Start one and return its state; a running one is left running.

    A command that cannot be run exits with 127 or 126, and its output contains the reason.
    """
    parameters = {name: args[name] for name in ("name", "command", "env")}
    return shims.request(podman, call, args["id"], "launcher.start", parameters)


def stop(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Stop one with all its processes, with KILL after grace_s seconds; returns its state."""
    parameters = {name: args[name] for name in ("name", "grace_s")}
    data = shims.request_if_running(podman, call, args["id"], "launcher.stop", parameters)
    if data is not None:
        return data
    rows = listing(podman, call, args)["launchers"]
    return next((row for row in rows if row["name"] == args["name"]), State(args["name"]).row())


def logs(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """The last `tail` lines of its captured output, at most 1 MiB; `truncated` if that limit applied."""
    path = f"{paths.launchers(podman.home.home, args['id'])}/{args['name']}.log"
    content, more = rotating_log.read(path, LOG_BYTES_MAX)
    lines = content.split(b"\n")
    ended = 1 if lines[-1] == b"" else 0  # by a newline
    truncated = more and len(lines) - ended <= args["tail"]
    text = b"\n".join(lines[-args["tail"] - ended :]).decode(errors="replace")
    while len(json.dumps(text, ensure_ascii=False).encode()) > _REPLY_MAX:
        text, truncated = text[len(text) // 2 :], True
    return {"text": text, "truncated": truncated}
