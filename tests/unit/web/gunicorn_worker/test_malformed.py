"""The status of malformed HTTP, as gunicorn has it."""

from __future__ import annotations

import ssl

from gunicorn.http import errors as refused

from svc.web.gunicorn_worker.malformed import status_of


def test_what_is_ours_and_what_is_the_clients() -> None:
    assert status_of(refused.InvalidResponseHeader("x")) == 500
    assert status_of(refused.ForbiddenProxyRequest("x")) == 403
    assert status_of(ssl.SSLError(1, "x")) == 403
    assert status_of(OSError()) == 500
