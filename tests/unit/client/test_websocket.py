"""The client's end of a WebSocket whose other end goes."""

from __future__ import annotations

import socket
from types import SimpleNamespace
from typing import Any

import pytest

from svc import websocket
from svc.client.websocket import WebSocket

BIG = bytes(64 << 10)


def opened() -> tuple[Any, socket.socket]:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    return WebSocket(SimpleNamespace(finish=lambda: (ours, b""))), theirs  # type: ignore[arg-type]


@pytest.mark.parametrize("unread", [True, False])
def test_what_the_service_said_before_it_closed_is_read(unread: bool) -> None:
    """As a command does that ends without reading its input: `svc ws exec -i lab -- true < file`."""
    client, service = opened()
    if unread:
        client.send(websocket.BINARY, BIG)
    service.sendall(websocket.frame(websocket.TEXT, b'{"type":"exit"}', mask=False))
    service.close()
    for _ in range(3):
        client.send(websocket.BINARY, BIG)  # to nobody
    messages = client.messages()
    assert next(messages) == (websocket.TEXT, b'{"type":"exit"}')
    with pytest.raises(EOFError):
        next(messages)
    assert client.unsent == 0
    client.close()
