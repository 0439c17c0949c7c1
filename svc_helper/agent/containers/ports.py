"""Ports of a running workspace: bound here, served by its shim.

The listener is on the host's loopback interface and forwards to a program on the
container's; it exists only while the workspace runs.
"""

from __future__ import annotations

import errno
import os
import socket

from svc_helper.agent import locks
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import shims
from svc_helper.agent.containers.running import find_by_crun, listens_on
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.quick_typing import Any

_HOST = "127.0.0.1"
_BACKLOG = 128


def open_(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Forward a host port to a container port, for its owner or for every user of the host.

    Repeating the same succeeds. Raises Failure `conflict` when the host port is taken.
    """
    port = {name: args[name] for name in ("host_port", "container_port", "access")}
    with locks.held(podman.home, call, "ports", args["id"]):
        listener = _listen(args["host_port"])
        if listener is None:
            _require_own(podman, call, args["id"], port)
            return {}
        with listener:
            shims.request(podman, call, args["id"], "port.open", port, [listener.fileno()])
    return {}


def _listen(port: int) -> socket.socket | None:
    """A listener on the host's loopback; None when the port is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((_HOST, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise Failure("failed", f"users may not bind port {port} on this host") from None
    return listener


def _require_own(podman: Podman, call: Call, workspace_id: str, port: dict[str, Any]) -> None:
    """A taken host port may be open for this very container port and access: ask the shim."""
    if shims.request_if_running(podman, call, workspace_id, "port.open", port) is None:
        raise Failure("conflict", f"the host port {port['host_port']} is taken")


def close(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Close a host port and its connections; also succeeds for one that is not open."""
    shims.request_if_running(podman, call, args["id"], "port.close", {"host_port": args["host_port"]})
    return {}


def connect(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Connect the caller's stream to a program inside; replies when the program has accepted.

    The shim moves the bytes: the call ends, and the connection outlives this agent. Raises Failure
    `not_listening` when nothing listens there, `unavailable` when the workspace has no place for one more.
    """
    stream = call.data_stream("output")
    port = {"container_port": args["container_port"]}
    try:
        return shims.request(podman, call, args["id"], "port.connect", port, [stream])
    except Failure as failure:
        if not shims.is_unknown(failure):
            raise
        raise Failure(
            "outdated", "the workspace was started by an older release, whose ports no browser reaches"
        ) from None
    finally:
        os.close(stream)


def listing(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """The open ports: their current connections, and what was refused and moved since they were opened.

    `listens` says whether any program of the container listens there; null where that is not known.
    """
    data = shims.request_if_running(podman, call, args["id"], "port.list", {})
    rows = [] if data is None else data["ports"]
    if isinstance(rows, list) and rows:  # else a replaced shim's, at which the app looks
        running = find_by_crun(podman, call, args["id"])
        for row in rows:
            row["listens"] = None if running is None else listens_on(running.pid, row["container_port"])
    return {"ports": rows}
