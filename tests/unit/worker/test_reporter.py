"""What a run tells: bounded, checked, and the end of a long log is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from svc.db.connect import database
from svc.domain import operations
from svc.domain.principal import Caller
from svc.worker import reporter
from svc.worker.reporter import Reporter


@pytest.fixture
def ada(owner: int) -> Caller:
    return Caller("peer", owner, "ada", 2001, False, "rid-1", "", helper=None)  # type: ignore[arg-type]


@pytest.fixture
def report(ada: Caller) -> Reporter:
    record = operations.enqueue(ada, "build", "image", "localhost/svc/x:1", {})
    operations.claim({}, 2)
    return Reporter(record["id"])


def log() -> list[str]:
    return [row[0] for row in database.execute_sql("SELECT text FROM operation_log ORDER BY line")]


def state() -> tuple[str, str]:
    return database.execute_sql("SELECT phase, progress_json FROM operations").fetchone()


def test_a_build_pulls_first_and_then_takes_its_steps(report: Reporter) -> None:
    report.phase("checking")
    assert state() == ("checking", "{}")
    report.progress({"current": 5, "total": 10, "unit": "bytes", "text": "registry.example/a:1"})
    assert state()[0] == "pulling"
    step = {"current": 3, "total": 7, "unit": "steps", "text": "RUN make"}
    report.progress(step | {"lines": ["STEP 3/7: RUN make"]})
    assert state() == ("building", '{"current": 3, "total": 7, "unit": "steps", "text": "RUN make"}')
    assert log() == ["checking", "registry.example/a:1", "STEP 3/7: RUN make"]


def test_a_copy_after_a_download_has_a_total_of_its_own(report: Reporter) -> None:
    report.expect(3000)
    report.phase("copying")
    report.progress({"current": 5, "total": 10, "unit": "copied", "text": "copying"})
    phase, progress = state()
    assert phase == "copying" and progress.startswith('{"current": 5, "total": 10, ')
    assert '"unit": "bytes"' in progress


def test_what_is_expected_is_the_least_total_of_a_download(report: Reporter) -> None:
    report.expect(3000)
    report.progress({"current": 5, "total": 10, "unit": "bytes"})
    assert state()[1] == '{"current": 5, "total": 3000, "unit": "bytes"}'
    report.next_at = 0.0
    report.progress({"current": 1, "total": 2, "unit": "steps"})
    assert state()[1] == '{"current": 1, "total": 2, "unit": "steps"}'


def test_lines_wait_for_each_other_but_not_for_ever(report: Reporter) -> None:
    report.progress({"lines": ["one"]})
    report.progress({"lines": ["two"]})
    assert log() == ["one"]
    assert not report.cancelled()
    report.next_at = 0.0
    assert not report.cancelled()  # asked each second
    assert log() == ["one", "two"]


@pytest.mark.parametrize(
    "untrusted",
    [
        {},
        {"current": -1, "total": 2**70, "unit": 5, "text": None, "lines": "x"},
        {"current": True, "lines": [1, None, {}]},
        {"lines": {"a": 1}},
    ],
)
def test_nonsense_is_dropped(report: Reporter, untrusted: dict[str, Any]) -> None:
    report.phase("building")
    report.progress(untrusted)
    report.close()
    assert state() == ("building", "{}")
    assert log() == ["building"]


def test_lines_are_text_without_words_to_a_terminal(report: Reporter) -> None:
    report.progress({"lines": ["\x1b[31mred\x1b[0m\tx\r", "\x1b]0;title\x07y", "a\x00b\u202ec", "z" * 900]})
    assert log() == ["red    x", "y", "abc", "z" * reporter.LINE_MAX]


def test_a_long_log_keeps_its_beginning_and_its_end(ada: Caller, report: Reporter) -> None:
    for number in range(60):
        report.next_at = 0.0
        report.progress({"lines": [f"line {number * 50 + part}" for part in range(50)]})
        assert log()[-1] == f"line {number * 50 + 49}", "written at once, however long the log"
    report.close()
    lines = log()
    assert len(lines) <= operations.LOG_LINES_MAX + 50
    assert lines[0] == "line 0" and lines[-operations.LOG_TAIL] == "line 2800"
    operations.add_log(report.operation_id, "step 3 of 5 failed")
    assert log()[-1] == "step 3 of 5 failed"
    shown = operations.log(ada, report.operation_id)
    assert (shown["next"], shown["lines"][-1]["line"]) == (3001, 3001)
    texts = [line["text"] for line in shown["lines"]]
    (left_out,) = (text for text in texts if text.startswith("..."))
    assert left_out == f"... {3001 - len(log())} lines are left out ..."
    assert texts[texts.index(left_out) + 1] == "line 2801"
    assert operations.log(ada, report.operation_id, 2900)["lines"][0]["text"] == "line 2900"


def test_a_flood_of_lines_is_written_at_a_bounded_rate(report: Reporter) -> None:
    for _ in range(40):
        report.next_at = 0.0
        report.progress({"lines": ["x"] * 50})
    assert report.in_tail
    for number in range(100):
        report.progress({"lines": [f"{number}.{part}" for part in range(50)]})
    assert not log()[-1].startswith("99."), "not yet due"
    before = max(line for (line,) in database.execute_sql("SELECT line FROM operation_log"))
    report.close()
    (after,) = database.execute_sql("SELECT max(line) FROM operation_log").fetchone()
    assert after - before > operations.LOG_TAIL, "those that were never written are counted"
    assert (log()[-operations.LOG_TAIL], log()[-1]) == ("96.0", "99.49")


def test_an_agent_that_always_does_something_else_is_written_as_seldom(
    report: Reporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(operations, "report", lambda _id, phase, _figures: written.append(phase))
    clock = [100.0]
    monkeypatch.setattr(reporter.time, "monotonic", lambda: clock[0])
    for number in range(300):
        clock[0] += 0.01
        report.progress({"text": f"doing {number}"})
    assert len(written) <= 3 / reporter.REPORT_S * (1 + reporter.EARLY_MAX) + 1
    clock[0] += 1
    assert not report.cancelled()
    assert state()[0] == "" and log()[-1] == "doing 299", "the last one does not wait for another"


def test_a_log_of_long_lines_ends_too(report: Reporter) -> None:
    """Fifty logs of every user are kept, in the one database."""
    for _number in range(40):
        report.progress({"lines": ["\u65e5" * 500] * 50})
        report.next_at = 0.0
    report.progress({"lines": ["the end"]})
    report.close()
    size = sum(len(line.encode()) for line in log())
    assert size <= reporter.HEAD_BYTES + (operations.LOG_TAIL + 50) * 1500
    assert log()[-1] == "the end" and report.head < operations.LOG_HEAD


def test_a_download_has_a_rate_until_it_stalls(report: Reporter, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(reporter.time, "monotonic", lambda: clock[0])
    for number in range(9):
        report.progress({"current": number * 2**20, "total": 64 * 2**20, "unit": "bytes", "text": "layers"})
        clock[0] += 0.5
    figures = json.loads(state()[1])
    assert (figures["rate"], figures["seconds_left"]) == (2**21, 28)
    clock[0] += 30
    assert not report.cancelled()  # asked each second; the agent says nothing
    stalled = json.loads(state()[1])
    assert (stalled["rate"], stalled["seconds_left"], stalled["current"]) == (0, None, 8 * 2**20)
    report.phase("building")
    assert not report.cancelled()
    assert state() == ("building", "{}")
