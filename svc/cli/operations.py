"""Waiting for an operation (pull, build, setup): progress on standard error, the outcome at the end."""

from __future__ import annotations

import sys
import time

from svc.cli import output, transport
from svc.cli.client import quote, show_raw
from svc.errors import BadAnswer, SvcError

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

    from svc.cli.arguments import Arguments

POLL_FIRST_S, POLL_LAST_S = 0.05, 1.0
POLL_SHARE = 0.03  # of the time waited so far: a quick operation is not slowed by the waiting for it
PATIENCE_S = 60  # an operation outlives a restart of the service; so does waiting for it
LINE_EVERY_S = 5  # in a pipe
BAR = 24
LOG_END = 15  # lines of a failed build's log that are shown

STARTED = (
    ("OPERATION", "operation.id", output.plain),
    ("KIND", "operation.kind", output.plain),
    ("STATUS", "operation.status", output.plain),
)


def wait(args: Arguments, started: transport.Answer) -> transport.Answer:
    """Follow the operation of a 202 answer to its end; returns the answer that tells of it.

    Raises the operation's own error when it failed. Ctrl-C ends the waiting only.
    """
    operation = output.text(started.json(), "operation.id")
    if not operation:
        raise BadAnswer("the service's answer names no operation")
    progress = Progress()
    try:
        answer = _follow(f"/api/operations/{quote(operation)}", progress)
    except KeyboardInterrupt:
        progress.end()
        output.note(f"operation {operation} goes on")
        print(f"hint: svc api GET /api/operations/{quote(operation)}", file=sys.stderr)
        raise
    finally:
        progress.end()
    state = answer.json()
    if output.text(state, "status") == "succeeded":
        return answer
    if args.json:
        show_raw(answer)
    elif output.text(state, "error.code") == "build_failed":
        _show_log_end(operation, output.text(state, "error.message"))
    otherwise = f"operation {operation} was {output.text(state, 'status')}"
    raise transport.error_of(state.get("error"), otherwise)


def _show_log_end(operation: str, told: str) -> None:
    """What a build said last, on standard error, but for what is told anyway; nothing depends on it."""
    try:
        answer = transport.request("GET", f"/api/operations/{quote(operation)}/log")
        lines = answer.json().get("lines") if answer.ok else None
    except SvcError:
        return
    texts = [output.text(line, "text") for line in lines] if isinstance(lines, list) else []
    for text in texts[-LOG_END:]:
        if text != told:
            print("  " + output.visible(text), file=sys.stderr)


def result(finished: transport.Answer, key: str) -> str:
    """A value of a finished operation's result, as a segment of a path."""
    value = output.text(finished.json(), f"result.{key}")
    if not value:
        raise BadAnswer(f"the operation's result has no {key}")
    return quote(value)


def _follow(path: str, progress: Progress) -> transport.Answer:
    begun_at = heard_at = time.monotonic()
    while True:
        try:
            answer = transport.request("GET", path)
            if not answer.ok:
                raise answer.error()
        except SvcError as error:
            if not error.retryable or time.monotonic() - heard_at > PATIENCE_S:
                raise
        else:
            heard_at = time.monotonic()
            state = answer.json()
            if output.text(state, "status") not in ("queued", "running"):
                return answer
            progress.show(state)
        waited_s = time.monotonic() - begun_at
        time.sleep(min(max(POLL_FIRST_S, waited_s * POLL_SHARE), POLL_LAST_S))


class Progress:
    """How far an operation is: a bar that redraws itself on a terminal, now and then a line elsewhere."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty() and not output.dumb()
        self.drawn = False
        self.phase = ""
        self.phase_since = self.line_at = time.monotonic()
        self.first = 0.0

    def show(self, state: dict[str, Any]) -> None:
        """Tell of an operation's present state."""
        now = time.monotonic()
        phase = output.text(state, "phase") or output.text(state, "status")
        current, total = _number(state, "progress.current"), _number(state, "progress.total")
        fresh = phase != self.phase
        if fresh:
            self.phase, self.phase_since, self.first = phase, now, current
        line = self._line(state, current, total, now - self.phase_since)
        if self.terminal:
            sys.stderr.write(f"\r\x1b[K{line[: output.terminal_columns(sys.stderr) - 1]}")
            self.drawn = True
        elif fresh or now - self.line_at >= LINE_EVERY_S:
            sys.stderr.write(f"{line}\n")
            self.line_at = now
        sys.stderr.flush()

    def end(self) -> None:
        """Clear the bar away; what comes next starts on a clean line."""
        if self.drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self.drawn = False

    def _line(self, state: dict[str, Any], current: float, total: float, seconds: float) -> str:
        in_bytes = output.text(state, "progress.unit") in ("bytes", "B")
        parts = [output.visible(self.phase)]
        in_steps = output.text(state, "progress.unit") == "steps"
        if total > 0:
            share = min(current / total, 1.0)
            if self.terminal:
                parts.append(f"[{'#' * int(share * BAR):<{BAR}}]")
            step = min(current + 1, total)  # those before are done
            parts.append(f"step {step:.0f} of {total:.0f}" if in_steps else f"{share:4.0%}")
        if in_bytes and current:
            done = output.size(current, human=True)
            parts.append(f"{done} of {output.size(total, human=True)}" if total > 0 else done)
            if seconds >= 1:
                parts.append(f"{output.size((current - self.first) / seconds, human=True)}/s")
        parts.append(output.visible(output.text(state, "progress.text")))
        return "  ".join(part for part in parts if part)


def _number(state: dict[str, Any], path: str) -> float:
    value = output.pick(state, path)
    return float(value) if isinstance(value, int | float) and 0 <= value < 2**63 else 0.0
