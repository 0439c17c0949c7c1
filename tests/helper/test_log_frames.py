"""The frames of followed output: rows as conmon and the shims write them fit the slices."""

from __future__ import annotations

from svc_helper.agent.runtime import log_files
from svc_helper.wire import log_frames as frames

CONMON = b"2025-01-02T03:04:05.123456789+01:00 stderr P no newline yet"


def test_heads() -> None:
    for row in (CONMON, log_files.rows_of(b"stderr", b"no newline yet").rstrip(b"\n")):
        assert (row[frames.STREAM], row[frames.FLAG]) == (b"stderr", frames.PARTIAL)
        assert row[frames.HEAD :] == b"no newline yet"
    assert CONMON[frames.TIME] == b"2025-01-02T03:04:05.123456789+01:00"
    marker = log_files.rows_of(log_files.MARKER, b"started\n")
    assert (marker[frames.STREAM], marker[frames.FLAG]) == (frames.MARKER, frames.WHOLE)


def test_a_frame_of_rows_has_its_position_and_fits() -> None:
    assert frames.rows(3, 45, 6, b"row\n") == b"o3 45 6\nrow\n"
    largest = frames.rows(10**15, 10**15, 10**15, b"x" * frames.ROWS_MAX)
    assert len(largest) <= frames.FRAME_MAX
