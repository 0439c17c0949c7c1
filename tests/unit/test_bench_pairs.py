"""When a row of the benchmark meets its bar."""

from __future__ import annotations

import pytest
from bench.pairs import Row


@pytest.mark.parametrize(
    ("ours", "bar", "slack", "met"),
    [
        (60.0, 0.6, 0.0, True),
        (61.0, 0.6, 0.0, False),  # quicker than the other, and yet not quick enough
        (100.0, 1.0, 0.0, True),
        (120.0, 1.05, 0.0, False),
        (120.0, 1.05, 20.0, True),
        (121.0, 1.05, 20.0, False),
        (104.0, 1.05, 1.0, True),
        (999.0, None, 0.0, True),
    ],
)
def test_a_bar_of_a_ratio(ours: float, bar: float | None, slack: float, met: bool) -> None:
    assert Row("a pair", ours, 100.0, ours / 100, bar, slack=slack).met is met


@pytest.mark.parametrize(("ours", "met"), [(90.0, True), (89.0, False)])
def test_a_rate_is_to_be_high(ours: float, met: bool) -> None:
    assert Row("a rate", ours, 100.0, ours / 100, 0.9, higher_is_better=True).met is met
