"""Ports of a running workspace: bound here, kept by its shim.

The listener is on the host's loopback and leads to the program that listens on
the container's; it is made, and gone, while the workspace runs.
"""

from __future__ import annotations

import errno
import socket
from typing import Any

from svc_helper.agent import locks
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import shims
from svc_helper.agent.podman.podman import Podman

_HOST = "127.0.0.1"
_BACKLOG = 128


def open_(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Open a host port to a container port; the same pair may be asked for twice.

    Raises Failure `conflict` when somebody else has the host port.
    """
    pair = {name: args[name] for name in ("host_port", "container_port")}
    with locks.held(podman.home, call, "ports", args["id"]):
        listener = _listen(args["host_port"])
        if listener is None:
            _require_own(podman, call, args["id"], pair)
            return {}
        with listener:
            shims.ask(podman, call, args["id"], "port.open", pair, [listener.fileno()])
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
        raise Failure("failed", f"the host does not give port {port} to users") from None
    return listener


def _require_own(podman: Podman, call: Call, workspace_id: str, pair: dict[str, int]) -> None:
    """A taken port may be this very one: its shim knows."""
    if shims.ask_if_any(podman, call, workspace_id, "port.open", pair) is None:
        raise Failure("conflict", f"the host port {pair['host_port']} is taken")


def close(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Close a host port and what goes through it; one that is not open is closed."""
    shims.ask_if_any(podman, call, args["id"], "port.close", {"host_port": args["host_port"]})
    return {}


def listing(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Those that are open, with their connections now and the bytes both ways since each was opened."""
    answer = shims.ask_if_any(podman, call, args["id"], "port.list", {})
    return {"ports": []} if answer is None else {"ports": answer["ports"]}
