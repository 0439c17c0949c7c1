"""The status of malformed HTTP, and how much of it the log gets."""

from __future__ import annotations

import json
import ssl

import pytest
from gunicorn.http import errors as refused

from svc.web.gunicorn_worker import malformed
from svc.web.gunicorn_worker.malformed import LINES_A_SECOND, Lines, status_of


def test_what_is_ours_and_what_is_the_clients() -> None:
    assert status_of(refused.InvalidResponseHeader("x")) == 500
    assert status_of(refused.ForbiddenProxyRequest("x")) == 403
    assert status_of(ssl.SSLError(1, "x")) == 403
    assert status_of(OSError()) == 500


def test_who_sends_many_does_not_fill_the_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = Lines("tls")
    for number in range(100):
        lines.write("warning", number=number)
    monkeypatch.setattr(malformed.time, "monotonic", lambda: lines.began + 2)
    lines.write("warning", number="later")
    written = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert len(written) == LINES_A_SECOND + 2
    assert written[-2]["count"] == 100 - LINES_A_SECOND
    assert written[-1]["number"] == "later"
