"""The rate of a download: smoothed, and told only while it means something."""

from __future__ import annotations

import pytest

from svc.worker.rates import FIRST_S, LEFT_MAX_S, STALLED_S, Rate

MB = 10**6


def noted(rate: Rate, rates: list[int], since: float = 0.0, total: int = 1000 * MB) -> dict[str, int | None]:
    """Samples of a quarter of a second at each of these bytes a second, one second each."""
    found: dict[str, int | None] = {}
    current, now = rate.current, since
    for per_second in rates:
        for _quarter in range(4):
            current, now = current + per_second // 4, now + 0.25
            found = rate.note(current, total, now)
    return found


def test_a_steady_download() -> None:
    rate = Rate()
    assert rate.note(0, 1000 * MB, 0.0) == {}
    assert noted(rate, [10 * MB]) == {}, "too few samples"
    found = noted(rate, [10 * MB] * 9, since=1.0)
    assert found == {"rate": 10 * MB, "seconds_left": 90}


def test_it_follows_a_change_but_no_single_sample() -> None:
    rate = Rate()
    rate.note(0, 1000 * MB, 0.0)
    noted(rate, [10 * MB] * 10)
    burst = noted(rate, [30 * MB], since=10.0)["rate"] or 0
    assert 10 * MB < burst < 18 * MB
    later = noted(rate, [30 * MB] * 20, since=11.0)["rate"] or 0
    assert later == pytest.approx(30 * MB, rel=0.05)


def test_a_stalled_one_has_no_estimate() -> None:
    rate = Rate()
    rate.note(0, 1000 * MB, 0.0)
    noted(rate, [10 * MB] * 4)
    assert not rate.stalled(4.0 + STALLED_S - 0.1)
    assert rate.estimate(4.0 + STALLED_S) == {"rate": 0, "seconds_left": None}
    assert noted(rate, [0] * 6, since=4.0)["rate"] == 0
    assert noted(rate, [10 * MB] * 2, since=20.0)["rate"]


def test_another_download_begins_again() -> None:
    rate = Rate()
    rate.note(500, 1000, 0.0)
    noted(rate, [100] * 4, total=1000)
    assert rate.note(10, 50, 4.5) == {}
    assert rate.note(10, 50, 4.5) == {}, "twice at one time"
    assert rate.note(40, 50, 4.5 + FIRST_S)["rate"] == 15


def test_no_estimate_of_months_and_none_beyond_the_total() -> None:
    rate = Rate()
    rate.note(0, 2**60, 0.0)
    assert noted(rate, [4] * 4, total=2**60) == {"rate": 4, "seconds_left": None}
    rate = Rate()
    rate.note(0, 10, 0.0)
    assert noted(rate, [100] * 4, total=10)["seconds_left"] is None
    assert LEFT_MAX_S
