"""TCP ports of loopback."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    """Does somebody accept connections on the port?"""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
