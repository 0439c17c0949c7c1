"""Readiness means that both listeners answer, whichever is first and however often it says so."""

from __future__ import annotations

import pytest

from svc.server.supervisor import both_ready


@pytest.mark.parametrize(
    ("received", "ready"),
    [(b"", False), (b"u", False), (b"t", False), (b"uu", False), (b"ut", True), (b"ttu", True)],
)
def test_one_listener_is_not_the_service(received: bytes, ready: bool) -> None:
    assert both_ready(received) is ready
