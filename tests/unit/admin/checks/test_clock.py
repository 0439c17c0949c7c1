"""The check of the clock."""

from __future__ import annotations

import pytest
from unit.admin.checks import made_up
from unit.admin.checks.made_up import levels

from svc.admin.checks import clock
from svc.admin.findings import Host

host = made_up.host


def test_what_the_kernel_says(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    assert clock.kernel_state() in range(-1, clock.TIME_ERROR + 1)
    for state, level in ((0, "ok"), (clock.TIME_ERROR, "warn"), (-1, "ok")):
        monkeypatch.setattr(clock, "kernel_state", lambda state=state: state)
        assert levels(clock.clock, host) == [("clock", level)]


def test_a_clock_before_the_installation(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 86400.0)
    (found,) = clock.clock(host)
    assert (found.level, "it is 1970-01-02 by the clock" in found.found) == ("fail", True)
