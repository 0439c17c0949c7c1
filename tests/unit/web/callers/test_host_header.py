"""Names that requests may give, and origins that --dev lets read."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from svc.web.callers import host_header


@pytest.mark.parametrize(
    "host", ["evil.test", "127.0.0.1.nip", "", "localhost.evil.test", "a b", "127.0.0.1:x"]
)
def test_unknown_hosts(listeners: Any, host: str) -> None:
    response = listeners.ask(None, "GET", "/api/health", headers={"Host": host})
    assert (response.status_code, response.get_json()["error"]["code"]) == (421, "unknown_host")


@pytest.mark.parametrize(
    "host",
    [
        "svc.example",
        "SVC.example:24680",
        "[2001:db8::1]:1",
        "localhost",
        "127.0.0.1:24680",
        "[::1]",
        "192.0.2.7",
    ],
)
def test_known_hosts(listeners: Any, host: str) -> None:
    assert listeners.ask(None, "GET", "/api/version", headers={"Host": host}).status_code == 200


def test_the_hosts_own_names_by_default() -> None:
    names = host_header.allowed([])
    assert {socket.gethostname().lower(), "localhost", "127.0.0.1", "[::1]"} <= names
    assert host_header.allowed(["svc.example", "2001:db8::1"]) >= {"svc.example", "[2001:db8::1]"}


@pytest.mark.parametrize(
    ("origin", "known"),
    [
        ("http://localhost", True),
        ("https://localhost:5173", True),
        ("http://[::1]:1", True),
        ("http://localhost.evil", False),
        ("http://localhost:5173.evil", False),
        ("http://evil/http://localhost", False),
        ("http://127.0.0.1:", False),
        ("http://localhost:5173/", False),
        ("null", False),
        ("", False),
    ],
)
def test_dev_origins_are_exact(origin: str, known: bool) -> None:
    assert host_header.is_dev_origin(origin) is known
