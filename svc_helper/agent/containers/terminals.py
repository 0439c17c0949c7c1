"""Terminals in a running workspace, held by its shim.

A viewer's socket is made by the app and handed on to the shim, which talks to the
viewer itself: the call ends at once, and the terminal outlives this agent.
"""

from __future__ import annotations

import os

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import shims
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.quick_typing import Any


def open_(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Open a terminal and, if asked to, attach the caller's viewer; replies when the terminal is there."""
    parameters = {name: args[name] for name in ("cols", "rows", "command")}
    if args["attach"]:
        return _with_viewer(podman, call, args["id"], "terminal.open", parameters)
    return _request(podman, call, args["id"], "terminal.open", parameters)


def attach(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Attach the caller's viewer to a terminal."""
    parameters = {name: args[name] for name in ("terminal", "cols", "rows")}
    return _with_viewer(podman, call, args["id"], "terminal.attach", parameters)


def listing(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """The workspace's terminals; none without a shim, or with one of an older release."""
    try:
        data = shims.request_if_running(podman, call, args["id"], "terminal.list", {})
    except Failure as failure:
        if not shims.is_unknown(failure):
            raise
        data = None
    return {"terminals": [] if data is None else data["terminals"]}


def close(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Close a terminal; raises Failure `not_found` when there is none."""
    try:
        data = shims.request_if_running(
            podman, call, args["id"], "terminal.close", {"terminal": args["terminal"]}
        )
    except Failure as failure:
        if not shims.is_unknown(failure):
            raise
        data = None
    if data is None:
        raise Failure("not_found", "there is no such terminal")
    return {}


def _with_viewer(
    podman: Podman, call: Call, workspace_id: str, do: str, parameters: dict[str, Any]
) -> dict[str, Any]:
    viewer = call.data_stream("output")
    try:
        return _request(podman, call, workspace_id, do, parameters, viewer)
    finally:
        os.close(viewer)


def _request(
    podman: Podman, call: Call, workspace_id: str, do: str, parameters: dict[str, Any], *fds: int
) -> dict[str, Any]:
    try:
        return {"terminal": shims.request(podman, call, workspace_id, do, parameters, fds)["terminal"]}
    except Failure as failure:
        if not shims.is_unknown(failure):
            raise
        raise Failure(
            "outdated", "the workspace was started by an older release, which has no terminals"
        ) from None
