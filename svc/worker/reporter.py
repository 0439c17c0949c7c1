"""Progress and log of a running operation.

Both come from an agent, which belongs to its user: every part is checked and
bounded, and written at most once in REPORT_S.
"""

from __future__ import annotations

import re
import time
from typing import Any

from svc.db.connect import write
from svc.domain import operations
from svc.domain.untrusted import NUMBER_MAX
from svc.worker.rates import Rate

REPORT_S = 0.25  # between two progress writes
EARLY_MAX = 2  # that do not wait for it, since a new step has begun: each is a write to disk
TAIL_S = 1.0  # between two writes once only the last lines of a log are kept
HEAD_BYTES = 512 * 1024  # of the first lines, which stay: a build's have a tenth of the greatest length
LINES_AT_ONCE, LINE_MAX, TEXT_MAX = 50, 500, 200
PHASES = {"bytes": "pulling", "steps": "building", "copied": "copying"}  # a build begins with a pull

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?")


class Reporter:
    """Writes an operation's progress and log; close() writes the rest."""

    def __init__(self, operation_id: str) -> None:
        self.operation_id = operation_id
        self.entered = ""
        self.expected = 0
        self.next_at = 0.0
        self.early = 0
        self.last_text = ""
        self.lines: list[str] = []  # not written yet
        self.figures: tuple[str, dict[str, Any]] | None = None  # not written yet
        self.latest: tuple[str, dict[str, Any]] = ("", {})  # the last ones
        self.rate = Rate()
        self.head, self.head_bytes = operations.LOG_HEAD, HEAD_BYTES
        self.in_tail = False

    def phase(self, name: str) -> None:
        """Enter a phase without figures."""
        self.entered = name
        self.rate = Rate()
        self.figures = self.latest = (name, {})
        self.lines.append(name)
        self._write()

    def expect(self, download_bytes: int) -> None:
        """Set the least total: an engine learns it layer by layer, and a progress bar would jump back."""
        self.expected = download_bytes

    def add_log(self, text: str) -> None:
        """Add a line to the log."""
        self.lines.append(text)
        self._write()

    def progress(self, untrusted: dict[str, Any]) -> None:
        """Take {current, total, unit, text, lines} from the agent."""
        figures = {key: untrusted[key] for key in ("current", "total") if _counts(untrusted.get(key))}
        texts = {
            key: _printable(untrusted[key])[:TEXT_MAX]
            for key in ("unit", "text")
            if type(untrusted.get(key)) is str
        }
        phase = PHASES.get(texts.get("unit", ""), self.entered)
        if phase == "copying":
            texts["unit"] = "bytes"
        if texts.get("unit") == "bytes" and "total" in figures:
            expected = self.expected if phase == "pulling" else 0
            figures["total"] = max(figures["total"], expected)
            figures |= self.rate.note(figures.get("current", 0), figures["total"], time.monotonic())
        if texts.get("text", self.last_text) != self.last_text:
            self.last_text = texts["text"]
            if "lines" not in untrusted:  # a build's lines include it
                self.lines.append(self.last_text)
            if self.early < EARLY_MAX:
                self.early, self.next_at = self.early + 1, 0.0
        self.lines += _lines(untrusted.get("lines"))
        if figures or texts:
            self.figures = self.latest = (phase, figures | texts)
        self._write_if_due()

    def cancelled(self) -> bool:
        """Whether the owner has cancelled; called each second, so it also writes what is due."""
        self._note_stall()
        self._write_if_due()
        return operations.cancel_requested(self.operation_id)

    def _note_stall(self) -> None:
        """Write once that a download has stopped: its agent says nothing, and the last rate would stay."""
        phase, figures = self.latest
        now = time.monotonic()
        if figures.get("rate") and self.rate.stalled(now):
            self.figures = self.latest = (phase, figures | self.rate.estimate(now))

    def close(self) -> None:
        """Write everything that is not written yet."""
        self._write()

    def _write_if_due(self) -> None:
        if time.monotonic() >= self.next_at:
            self._write()

    def _write(self) -> None:
        """Write new lines and figures in one transaction."""
        now = time.monotonic()
        if now >= self.next_at > 0:
            self.early = 0
        lines, self.lines = self.lines, []
        figures, self.figures = self.figures, None
        if lines or figures:
            with write():
                self._add(lines)
                if figures:
                    operations.report(self.operation_id, *figures)
        self.next_at = now + (TAIL_S if self.in_tail else REPORT_S)

    def _add(self, lines: list[str]) -> None:
        """Write lines to the log; once its head is full only the last of many, which are those that stay."""
        skipped = max(0, len(lines) - operations.LOG_TAIL) if self.in_tail else 0
        count = operations.add_log(self.operation_id, *lines[skipped:], skipped=skipped, head=self.head)
        self.head_bytes -= sum(len(line.encode()) for line in lines)
        if not self.in_tail and (self.head_bytes < 0 or count >= self.head):
            self.in_tail, self.head = True, min(count, self.head)


def _counts(untrusted: Any) -> bool:
    return type(untrusted) is int and 0 <= untrusted <= NUMBER_MAX


def _lines(untrusted: Any) -> list[str]:
    if type(untrusted) is not list:
        return []
    return [_printable(line) for line in untrusted[:LINES_AT_ONCE] if type(line) is str]


def _printable(untrusted_text: str) -> str:
    """One bounded line without terminal escapes."""
    text = _ESCAPES.sub("", untrusted_text[: LINE_MAX * 2]).replace("\t", "    ")
    return "".join(char for char in text if char.isprintable())[:LINE_MAX].rstrip()
