"""Events followed over the socket: whose socket it is, and that nothing leads elsewhere."""

from __future__ import annotations

import os

import pytest
from fake_service import Service

from svc.client import streams
from svc.errors import BadAnswer, Unreachable

PATH = "/api/events"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def test_somebody_elses_socket_is_not_used(service: Service) -> None:
    """The same trust as for a short request: nothing is sent to a socket that is not root's or one's own."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it makes a socket somebody else's")
    os.chown(service.path, 12345, 12345)
    with pytest.raises(Unreachable, match="owned by root"):
        list(streams.events(PATH))
    assert service.sent == []


def test_neither_proxy_nor_environment_leads_elsewhere(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.raw(f"GET {PATH}", HEAD + b"event: a\ndata: {}\n\nevent: end\ndata: {}\n\n")
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://192.0.2.1:9")
    assert [event.name for event in streams.events(PATH)] == ["a"]


def test_a_stream_without_its_end_is_cut_short(service: Service) -> None:
    service.raw(f"GET {PATH}", HEAD + b"event: a\ndata: {}\n\n")
    with pytest.raises(BadAnswer, match="cut short"):
        list(streams.events(PATH))
