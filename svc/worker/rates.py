"""The rate of a download and the time that it has left, smoothed over some seconds."""

from __future__ import annotations

import math

SMOOTH_S = 5.0  # the time constant: older samples count less
FIRST_S = 2.0  # of samples before there is a rate
STALLED_S = 5.0  # without a byte: the rate is 0
LEFT_MAX_S = 7 * 24 * 3600  # a longer estimate says nothing


class Rate:
    """Takes the bytes done so far, and computes the rate from them."""

    def __init__(self) -> None:
        self.begun = False
        self.begun_at = self.at = self.moved_at = 0.0
        self.current = self.total = 0
        self.per_second = 0.0

    def note(self, current: int, total: int, now: float) -> dict[str, int | None]:
        """Take a sample; returns {rate, seconds_left}, without keys while there are too few."""
        if not self.begun or current < self.current:  # of another download
            self.begun, self.begun_at = True, now
            self.at = self.moved_at = now
            self.current, self.total, self.per_second = current, total, 0.0
            return {}
        self._smooth(current, now)
        self.total = total
        return self.estimate(now)

    def _smooth(self, current: int, now: float) -> None:
        elapsed_s = now - self.at
        if elapsed_s <= 0:
            return  # a later sample has these bytes too
        # At first the mean so far, so that no single sample rules.
        weight = max(1 - math.exp(-elapsed_s / SMOOTH_S), elapsed_s / (now - self.begun_at))
        self.per_second += weight * ((current - self.current) / elapsed_s - self.per_second)
        if current > self.current:
            self.moved_at = now
        self.current, self.at = current, now

    def estimate(self, now: float) -> dict[str, int | None]:
        """{rate, seconds_left} now; without keys while there are too few samples."""
        if not self.begun or now - self.begun_at < FIRST_S:
            return {}
        if self.stalled(now):
            return {"rate": 0, "seconds_left": None}
        rate = round(self.per_second)
        left = self.total - self.current
        seconds = math.ceil(left / self.per_second) if rate and left >= 0 else None
        return {"rate": rate, "seconds_left": seconds if seconds is None or seconds <= LEFT_MAX_S else None}

    def stalled(self, now: float) -> bool:
        """Whether no byte has come for a while."""
        return now - self.moved_at >= STALLED_S
