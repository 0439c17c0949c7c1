"""Root's log: JSON, ASCII, one line, whatever a name held."""

from __future__ import annotations

import json
import os

import pytest

from svc_helper.root import log as module
from svc_helper.root.log import LimitedLog, log


def test_a_line_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    log("call", "error", user="a\n\x1b[2J\u202e\x9b", ms=1.5)
    text = capfd.readouterr().err
    assert text.isascii()
    assert text.count("\n") == 1
    assert text.rstrip("\n").isprintable()
    said = json.loads(text)
    assert (said["level"], said["process"], said["message"], said["ms"]) == ("error", "helper", "call", 1.5)
    assert said["user"] == "a\n\x1b[2J\u202e\x9b"


def test_a_log_that_nobody_reads_stops_nothing() -> None:
    kept = os.dup(2)
    os.close(2)
    try:
        log("call")
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def lines(capfd: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    """What was written since the last look."""
    return [json.loads(line) for line in capfd.readouterr().err.splitlines()]


def test_a_source_has_some_lines_and_the_rest_is_counted(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = LimitedLog()
    for number in range(1000):
        limited.log("ada", "call", number=number)
    limited.log("ben", "call", number=0)
    said = lines(capfd)
    assert [line["number"] for line in said] == [*range(module.LINES_PER_SOURCE), 0]
    assert limited.deadline == limited.until
    monkeypatch.setattr(module, "WINDOW_S", 0)
    limited.until = 0.0
    limited.end_window()
    (counted,) = lines(capfd)
    assert (counted["message"], counted["count"]) == ("lines left out", 990)
    assert counted["sources"] == {"ada": 990}
    assert limited.deadline is None
    limited.log("ada", "call", number=1)
    assert len(lines(capfd)) == 1


def test_all_sources_together_are_bounded_and_each_is_counted(capfd: pytest.CaptureFixture[str]) -> None:
    limited = LimitedLog()
    for number in range(500):
        for _ in range(3):
            limited.log(f"user-{number}", "call")
    assert len(lines(capfd)) == module.LINES_MAX
    assert not limited.has_room("another")
    limited.until = 0.0
    limited.end_window()
    (counted,) = lines(capfd)
    assert counted["count"] == 1500 - module.LINES_MAX
    assert isinstance(counted["sources"], dict)
    assert len(counted["sources"]) == module.SOURCES_NAMED
    assert len(json.dumps(counted)) < 2000
