"""Times in root's small files."""

from __future__ import annotations

import pytest

from svc.host.root_file import checked

NOW = "2026-03-01T00:00:00.000Z"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tomorrow",
        "2026-03-01",
        "2026-13-01T00:00:00.000Z",
        "2201-01-01T00:00:00.000Z",
        NOW + "\n",
        "٢" + NOW[1:],
    ],
)
def test_what_is_no_time(text: str) -> None:
    assert checked(text) is None


def test_a_time_is_kept() -> None:
    assert checked(NOW) == NOW
