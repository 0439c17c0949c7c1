"""The short names of browsers: what is in the header never gets into the database."""

from __future__ import annotations

import pytest

from svc.domain.accounts.browsers import HEADER_MAX, UNKNOWN, name_of

MOZILLA = "Mozilla/5.0"
WEBKIT = "AppleWebKit/537.36 (KHTML, like Gecko)"


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (f"{MOZILLA} (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0", "Firefox on Linux"),
        (f"{MOZILLA} (X11; Linux x86_64) {WEBKIT} Chrome/126.0.0.0 Safari/537.36", "Chrome on Linux"),
        (
            f"{MOZILLA} (Windows NT 10.0; Win64) {WEBKIT} Chrome/126.0 Safari/537.36 Edg/126.0",
            "Edge on Windows",
        ),
        (f"{MOZILLA} (Macintosh; Intel Mac OS X 10_15_7) {WEBKIT} Version/17 Safari/605", "Safari on macOS"),
        (f"{MOZILLA} (Linux; Android 14; Pixel) {WEBKIT} Chrome/126.0 Mobile Safari", "Chrome on Android"),
        (f"{MOZILLA} (iPhone; CPU iPhone OS 17_5 like Mac OS X) CriOS/126.0 Safari/604.1", "Chrome on iOS"),
        ("curl/8.9.1", "curl"),
        ("", UNKNOWN),
        ("<script>alert(1)</script> on \x1b[31m", UNKNOWN),
        ("x" * HEADER_MAX + "Firefox/1", UNKNOWN),
    ],
)
def test_names(header: str, name: str) -> None:
    assert name_of(header) == name
