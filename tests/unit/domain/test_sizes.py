"""Amounts in messages."""

from __future__ import annotations

import pytest

from svc.domain import sizes


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (5 * 2**30, "5.0 GiB"),
        (2**50, "1024.0 TiB"),
    ],
)
def test_an_amount(count: int, text: str) -> None:
    assert sizes.format_bytes(count) == text
