"""What Podman's build says, as progress: the step it is at, and its lines for the operation's log."""

from __future__ import annotations

import json
import re
from collections import deque
from typing import Any

from svc_helper.agent.calls import Failure
from svc_helper.agent.podman.podman import no_space

_STEP = re.compile(r"(?:\[(\d{1,4})/(\d{1,4})\] )?STEP (\d{1,4})/(\d{1,4}): (.*)")
_EXIT = re.compile(r"exit status (\d{1,3})$")
_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*\x07?|[@-_])")
LINE_MAX = 500  # characters
LINES_AT_ONCE = 50
_KEPT = 400  # lines between two reports; of more the newest
_BATCH_BYTES = 40 * 1024  # of one report, which must fit a message
_UNENDED_MAX = 64 * 1024
_WORDS_MAX = 2000
_REASON_MAX = 60


def readable(raw: bytes) -> str:
    """One line of output as text: what a terminal would show at last, without control characters."""
    line = _ESCAPES.sub(b"", raw.rstrip(b"\r\n").rpartition(b"\r")[2][: 8 * LINE_MAX])
    text = line.decode(errors="replace")[:LINE_MAX]
    return "".join(character if character.isprintable() else " " for character in text).rstrip()


class Steps:
    """The output of one build."""

    def __init__(self) -> None:
        self.current = self.total = 0
        self.text = ""
        self.step = ""  # as in "step 3 of 5 (RUN make)"
        self.error = ""  # Podman's own last word
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._dropped = 0
        self._rest = b""

    def take(self, part: bytes) -> None:
        """Take some output; a line without end is cut."""
        *lines, self._rest = (self._rest + part).split(b"\n")
        if len(self._rest) > _UNENDED_MAX:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            self._note(readable(line))
            if line.startswith(b"Error: "):
                self.error = line[-_WORDS_MAX:].decode(errors="replace").rstrip()  # it ends with its reason

    def end(self) -> None:
        """Take what came without an end of line."""
        self.take(b"\n" if self._rest else b"")

    def _note(self, line: str) -> None:
        if not line:
            return
        self._dropped += len(self._lines) == _KEPT
        self._lines.append(line)
        if found := _STEP.fullmatch(line):
            stage, stages, step, steps = (int(number or 1) for number in found.groups()[:4])
            # Later stages' steps are not known yet: each stage counts alike, so that it never goes back.
            self.current, self.total = min((stage - 1) * steps + step, stages * steps), stages * steps
            self.text = found[5][:100]
            where = f" of stage {stage}" if stages > 1 else ""
            self.step = f"step {step} of {steps}{where} ({found[5][:80]})"

    def reports(self) -> list[dict[str, Any]]:
        """The progress since the last time: where it is, and the lines that have come."""
        if self._dropped:
            self._lines[0] = f"({self._dropped + 1} lines are left out)"  # there is no room for one more
            self._dropped = 0
        made: list[dict[str, Any]] = []
        while self._lines or not made:
            lines: list[str] = []
            room = _BATCH_BYTES
            while self._lines and len(lines) < LINES_AT_ONCE:
                room -= len(json.dumps(self._lines[0], ensure_ascii=False).encode()) + 1
                if room < 0:
                    break
                lines.append(self._lines.popleft())
            made.append(self._progress() | {"lines": lines})
        return made

    def _progress(self) -> dict[str, Any]:
        # The step that runs is not done yet.
        return {"current": max(0, self.current - 1), "total": self.total, "unit": "steps", "text": self.text}


class BuildFailed(Failure):
    """A build that Podman gave up, with its words for the log."""

    def __init__(self, steps: Steps) -> None:
        super().__init__(*meaning(steps))
        self.words = steps.error


def meaning(steps: Steps) -> tuple[str, str]:
    """Code and text for a build that failed."""
    if no_space(steps.error[-_REASON_MAX:].lower()):  # before it stands the command, in anybody's words
        return "storage_full", "there is no space left for the build"
    if not steps.step:
        return "build", "the build could not begin; the log has why"
    status = _EXIT.search(steps.error)
    return "build", f"{steps.step} failed" + (f": exit {status[1]}" if status else "; the log has why")
