"""Parses the output of Podman's build into progress reports: the current step and the log lines."""

from __future__ import annotations

import json
import re
from collections import deque

from svc_helper.agent.calls import Failure
from svc_helper.agent.podman.causes import no_space
from svc_helper.wire.quick_typing import Any

_STEP = re.compile(r"(?:\[(\d{1,4})/(\d{1,4})\] )?STEP (\d{1,4})/(\d{1,4}): (.*)")
_EXIT = re.compile(r"exit status (\d{1,3})$")
_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*\x07?|[@-_])")
LINE_MAX = 500  # characters
LINES_AT_ONCE = 50
_KEPT = 400  # newest lines kept between two reports
_BATCH_BYTES = 40 * 1024  # of one report, which must fit a message
_UNENDED_MAX = 64 * 1024
_ERROR_MAX = 2000
_REASON_MAX = 60


def readable(raw: bytes) -> str:
    """One line of output as a terminal would finally show it, without control characters."""
    line = _ESCAPES.sub(b"", raw.rstrip(b"\r\n").rpartition(b"\r")[2][: 8 * LINE_MAX])
    text = line.decode(errors="replace")[:LINE_MAX]
    return "".join(character if character.isprintable() else " " for character in text).rstrip()


class Steps:
    """The output of one build."""

    def __init__(self) -> None:
        self.current = self.total = 0
        self.text = ""
        self.step = ""  # as in "step 3 of 5 (RUN make)"
        self.error = ""  # Podman's last error message
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._dropped = 0
        self._rest = b""

    def take(self, part: bytes) -> None:
        """Parse some output; an overlong line is cut."""
        *lines, self._rest = (self._rest + part).split(b"\n")
        if len(self._rest) > _UNENDED_MAX:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            self._note(readable(line))
            if line.startswith(b"Error: "):
                self.error = line[-_ERROR_MAX:].decode(errors="replace").rstrip()  # the reason is at its end

    def end(self) -> None:
        """Parse a last line without a line end."""
        self.take(b"\n" if self._rest else b"")

    def _note(self, line: str) -> None:
        if not line:
            return
        self._dropped += len(self._lines) == _KEPT
        self._lines.append(line)
        if found := _STEP.fullmatch(line):
            stage, stages, step, steps = (int(number or 1) for number in found.groups()[:4])
            # Later stages' steps are unknown: each stage counts alike, so that progress never goes back.
            self.current, self.total = min((stage - 1) * steps + step, stages * steps), stages * steps
            self.text = found[5][:100]
            where = f" of stage {stage}" if stages > 1 else ""
            self.step = f"step {step} of {steps}{where} ({found[5][:80]})"

    def reports(self) -> list[dict[str, Any]]:
        """The reports since the last time: the current step, and the new lines."""
        if self._dropped:
            self._lines[0] = f"({self._dropped + 1} lines are left out)"  # the queue is full: replace a line
            self._dropped = 0
        reports: list[dict[str, Any]] = []
        while self._lines or not reports:
            lines: list[str] = []
            room = _BATCH_BYTES
            while self._lines and len(lines) < LINES_AT_ONCE:
                room -= len(json.dumps(self._lines[0], ensure_ascii=False).encode()) + 1
                if room < 0:
                    break
                lines.append(self._lines.popleft())
            done = max(0, self.current - 1)  # without the running step
            progress = {"current": done, "total": self.total, "unit": "steps", "text": self.text}
            reports.append(progress | {"lines": lines})
        return reports


def failure(steps: Steps) -> Failure:
    """The Failure for a build that Podman gave up."""
    return Failure(*classify(steps), steps.error)


def classify(steps: Steps) -> tuple[str, str]:
    """Error code and message for a failed build."""
    if no_space(steps.error[-_REASON_MAX:].lower()):  # the command before it is anybody's text
        return "storage_full", "there is no space left for the build"
    if not steps.step:
        return "build", "the build could not begin; the log has why"
    status = _EXIT.search(steps.error)
    return "build", f"{steps.step} failed" + (f": exit {status[1]}" if status else "; the log has why")
