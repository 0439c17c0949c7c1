"""The worker's part of the licence."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.configuring import configured

from svc.db import facts
from svc.domain.licence import trial
from svc.host.ids import after, now
from svc.worker.licence import LicenceWatch


def test_the_time_is_written_to_the_database_when_it_is_due(db: str) -> None:
    watch = LicenceWatch()
    watch.begin()
    assert facts.find("time_seen") == {}
    watch.recorder.due_s = 0.0
    before = now()
    watch.begin()
    assert before <= facts.find("time_seen")["time_seen"] <= now()


def test_a_notice_is_logged_once_a_day(db: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    configured(state_dir=str(tmp_path))
    trial.write_file(str(tmp_path), after(now(), -80 * 86400))
    watch = LicenceWatch()
    for _ in range(3):
        watch.check_at = 0.0
        watch.begin()
    said = capfd.readouterr().err
    assert said.count("license_ending") == 1
    assert "the trial ends in 10 days" in said
    watch.logged.clear()
    watch.check_at = 0.0
    watch.begin()
    assert "license_ending" in capfd.readouterr().err
