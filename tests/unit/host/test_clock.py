"""The time that never goes back."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from svc.host import clock
from svc.host.clock import Clock, Record, Recorder
from svc.host.ids import after, now

PAST, FUTURE = "2026-01-01T00:00:00.000Z", "2100-01-01T00:00:00.000Z"


def test_a_time_that_was_seen_counts_and_goes_on() -> None:
    """A clock that was set back gains nothing: time goes on from the latest that was seen."""
    own = Clock()
    assert own.read("") <= own.read(PAST) <= now()
    first = own.read(FUTURE)
    assert first >= FUTURE
    deadline = time.monotonic() + 5
    while (later := own.read(FUTURE)) == first:
        assert time.monotonic() < deadline
    assert FUTURE < later < after(FUTURE, 60)
    assert own.read(PAST) <= now(), "a record that was set right counts at once"


def test_the_file_is_roots_for_all_to_read(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    assert clock.read_file(state) == Record()
    clock.write_file(state, Record(PAST))
    assert clock.read_file(state) == Record(PAST)
    clock.write_file(state, Record(FUTURE, PAST))
    assert clock.read_file(state) == Record(FUTURE, PAST)
    assert stat.S_IMODE(os.stat(clock.file_of(state)).st_mode) == 0o644


@pytest.mark.parametrize(
    "content",
    ["", "\0" * 300, "time_seen", "time_seen soon", "time_seen 9999-12-31T00:00:00.000Z", "x y\n" * 50],
)
def test_a_damaged_file_has_no_time(tmp_path: Path, content: str) -> None:
    Path(clock.file_of(str(tmp_path))).write_text(content)
    assert clock.read_file(str(tmp_path)) == Record()


def test_only_a_newer_licence_sets_the_record_back() -> None:
    """A clock that was ahead is mended by a new licence; an old one installed again mends nothing."""
    wrong = Record(FUTURE, PAST)
    newer = clock.after_issue(wrong, "2026-06-01T00:00:00.000Z")
    assert newer.seen < FUTURE
    assert newer.issued == "2026-06-01T00:00:00.000Z"
    for issued in (PAST, "2025-01-01T00:00:00.000Z"):
        assert clock.after_issue(wrong, issued) == wrong


def test_the_record_is_written_when_it_is_due_and_never_back() -> None:
    kept = [Record(PAST, PAST)]
    recorder = Recorder(lambda: kept[-1], kept.append)
    recorder.begin()
    assert len(kept) == 1, "a clock that is wrong for some minutes after the boot leaves nothing"
    recorder.due_s = 0.0
    recorder.begin()
    assert (kept[-1].seen > PAST, kept[-1].issued, len(kept)) == (True, PAST, 2)
    kept.append(Record(FUTURE))
    recorder.due_s = 0.0
    recorder.begin()
    assert kept[-1].seen >= FUTURE
