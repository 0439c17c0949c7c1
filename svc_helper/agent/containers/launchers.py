"""Launchers: named apps in a running workspace, held by its shim.

Their states and output are files of the user's, which are here while no shim
runs, and after it.
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

_ANSWER_MAX = 3 * 1024 * 1024  # as JSON, in which a control character takes six bytes


def listing(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """How each launcher is that ever ran in the workspace."""
    answer = shims.ask_if_any(podman, call, args["id"], "launcher.list", {})
    if answer is not None:
        return {"launchers": answer["launchers"]}
    found = launcher_states.read_all(paths.launchers(podman.home.home, args["id"]))
    if any(state.state == STARTED for state in found.values()):
        # Its shim was killed: another one settles what it left. Or the host went down with both.
        try:
            answer = shims.ask(podman, call, args["id"], "launcher.list", {})
            return {"launchers": answer["launchers"]}
        except Failure as failure:
            if failure.code not in ("not_found", "not_running"):
                raise
    return {"launchers": [launcher_states.ended(state).row() for state in found.values()]}


def start(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Start one and answer how it is; one that runs is left running.

    A command that cannot be run has exited with 127 or 126, and its output says why.
    """
    wanted = {name: args[name] for name in ("name", "command", "env")}
    return shims.ask(podman, call, args["id"], "launcher.start", wanted)


def stop(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """End one and all that it started, KILL after grace_s seconds; answers how it is then."""
    wanted = {name: args[name] for name in ("name", "grace_s")}
    answer = shims.ask_if_any(podman, call, args["id"], "launcher.stop", wanted)
    if answer is not None:
        return dict(answer)
    rows = listing(podman, call, args)["launchers"]
    return next((row for row in rows if row["name"] == args["name"]), State(args["name"]).row())


def logs(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """The last `tail` lines of its captured output, at most 1 MiB; `truncated` when that limit cut them."""
    path = f"{paths.launchers(podman.home.home, args['id'])}/{args['name']}.log"
    content, more = rotating_log.read(path, LOG_BYTES_MAX)
    lines = content.split(b"\n")
    ended = 1 if lines[-1] == b"" else 0  # by a line's end
    truncated = more and len(lines) - ended <= args["tail"]
    text = b"\n".join(lines[-args["tail"] - ended :]).decode(errors="replace")
    while len(json.dumps(text, ensure_ascii=False).encode()) > _ANSWER_MAX:
        text, truncated = text[len(text) // 2 :], True
    return {"text": text, "truncated": truncated}
