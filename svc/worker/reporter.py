"""What a running operation tells of itself: its phase, its figures, its log.

Figures and lines come from an agent, which belongs to its user: every part is
checked and bounded, and written no more often than somebody could read it.
"""

from __future__ import annotations

import re
import time
from collections import deque
from typing import Any

from svc.db.connect import write
from svc.domain import operations
from svc.domain.untrusted import NUMBER_MAX

REPORT_S = 0.25  # between two progress writes
EARLY_MAX = 2  # that do not wait for it, since something else is done now: each is a write to disk
LAST_LINES = 200  # of a log that has no room for all: how a long build ended is in the last ones
ROOM = operations.LOG_LINES_MAX - LAST_LINES - 10  # for those before; the rest is for how it ended
ROOM_BYTES = 512 * 1024  # for the same lines: a build's are a tenth of the longest
LINES_AT_ONCE, LINE_MAX, TEXT_MAX = 50, 500, 200
PHASES = {"bytes": "pulling", "steps": "building"}  # a build pulls first what it is made from

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?")


class Reporter:
    """Writes an operation's progress and log; closed at its end."""

    def __init__(self, operation_id: str) -> None:
        self.operation_id = operation_id
        self.entered = ""
        self.expected = 0
        self.next_at = 0.0
        self.early = 0
        self.last_text = ""
        self.lines: list[str] = []  # not written yet
        self.figures: tuple[str, dict[str, Any]] | None = None  # not written yet
        self.last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self.left_out = 0
        self.room_bytes = ROOM_BYTES

    def phase(self, name: str) -> None:
        """Enter a phase without figures."""
        self.entered = name
        self.figures = (name, {})
        self.lines.append(name)
        self._write()

    def expect(self, download_bytes: int) -> None:
        """Note how much is to come: an engine learns that layer by layer, and a bar would jump back."""
        self.expected = download_bytes

    def say(self, text: str) -> None:
        """Add a line to the log."""
        self.lines.append(text)
        self._write()

    def progress(self, untrusted: dict[str, Any]) -> None:
        """Note {current, total, unit, text, lines} from the agent."""
        figures = {key: untrusted[key] for key in ("current", "total") if _counts(untrusted.get(key))}
        words = {
            key: _shown(untrusted[key])[:TEXT_MAX]
            for key in ("unit", "text")
            if type(untrusted.get(key)) is str
        }
        if words.get("unit") == "bytes" and "total" in figures:
            figures["total"] = max(figures["total"], self.expected)
        if words.get("text", self.last_text) != self.last_text:
            self.last_text = words["text"]
            if "lines" not in untrusted:  # a build's lines say it themselves
                self.lines.append(self.last_text)
            if self.early < EARLY_MAX:
                self.early, self.next_at = self.early + 1, 0.0
        self.lines += _lines(untrusted.get("lines"))
        if figures or words:
            self.figures = (PHASES.get(words.get("unit", ""), self.entered), figures | words)
        self._write_if_due()

    def cancelled(self) -> bool:
        """Whether the owner asked for the end; asked each second, so the last lines do not wait for more."""
        self._write_if_due()
        return operations.cancel_requested(self.operation_id)

    def close(self) -> None:
        """Write what was kept back."""
        self._write()
        if self.left_out:
            operations.say(self.operation_id, f"... {self.left_out} lines are left out ...")
        operations.say(self.operation_id, *self.last_lines)
        self.last_lines.clear()
        self.left_out = 0

    def _write_if_due(self) -> None:
        if time.monotonic() >= self.next_at:
            self._write()

    def _write(self) -> None:
        """One transaction for what has come since the last; a full log keeps its newest lines for the end."""
        now = time.monotonic()
        if now >= self.next_at > 0:
            self.early = 0
        self.next_at = now + REPORT_S
        lines, self.lines = self.lines, []
        figures, self.figures = self.figures, None
        if not lines and not figures:
            return
        written = 0
        with write():
            if not self.last_lines:
                written = operations.say(self.operation_id, *self._fitting(lines), most=ROOM)
            if figures:
                operations.report(self.operation_id, *figures)
        for line in lines[written:]:
            self.left_out += len(self.last_lines) == LAST_LINES
            self.last_lines.append(line)

    def _fitting(self, lines: list[str]) -> list[str]:
        """The first of these lines, as many as the log has room for; after those none."""
        for count, line in enumerate(lines):
            self.room_bytes -= len(line.encode())
            if self.room_bytes < 0:
                return lines[:count]
        return lines


def _counts(untrusted: Any) -> bool:
    return type(untrusted) is int and 0 <= untrusted <= NUMBER_MAX


def _lines(untrusted: Any) -> list[str]:
    if type(untrusted) is not list:
        return []
    return [_shown(line) for line in untrusted[:LINES_AT_ONCE] if type(line) is str]


def _shown(untrusted_text: str) -> str:
    """One line as a log has it: without colours and other words to a terminal, bounded."""
    text = _ESCAPES.sub("", untrusted_text[: LINE_MAX * 2]).replace("\t", "    ")
    return "".join(char for char in text if char.isprintable())[:LINE_MAX].rstrip()
