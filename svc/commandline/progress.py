"""Progress of long work: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time

from svc.commandline import output

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

LINE_EVERY_S = 5  # in a pipe
DRAW_EVERY_S = 0.1  # of a transfer
BAR = 24


class Progress:
    """The progress of an operation, from its record."""

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty() and not output.dumb()
        self.drawn = False
        self.phase = ""
        self.phase_since = self.line_at = time.monotonic()
        self.first = 0.0

    def show(self, state: dict[str, Any]) -> None:
        """Print the operation's present state."""
        now = time.monotonic()
        phase = output.text(state, "phase") or output.text(state, "status")
        current, total = _number(state, "progress.current"), _number(state, "progress.total")
        is_new = phase != self.phase
        if is_new:
            self.phase, self.phase_since, self.first = phase, now, current
        line = self._line(state, current, total, now - self.phase_since)
        if self.terminal:
            output.draw(f"\r\x1b[K{line[: output.terminal_columns(sys.stderr) - 1]}")
            self.drawn = True
        elif is_new or now - self.line_at >= LINE_EVERY_S:
            output.remark(line)
            self.line_at = now

    def interrupt(self, lines: list[str]) -> None:
        """Print lines above the bar; elsewhere they take the place of the next repetition."""
        self.end()
        output.remark("\n".join(lines))
        self.line_at = time.monotonic()

    def end(self) -> None:
        """Clear the bar, so that further output starts on an empty line."""
        if self.drawn:
            output.draw("\r\x1b[K")
            self.drawn = False

    def _line(self, state: dict[str, Any], current: float, total: float, seconds: float) -> str:
        in_bytes = output.text(state, "progress.unit") in ("bytes", "B")
        parts = [output.visible(self.phase)]
        in_steps = output.text(state, "progress.unit") == "steps"
        if total > 0:
            share = min(current / total, 1.0)
            if self.terminal:
                parts.append(f"[{'#' * int(share * BAR):<{BAR}}]")
            step = min(current + 1, total)  # the number of finished steps, plus the present one
            parts.append(f"step {step:.0f} of {total:.0f}" if in_steps else f"{share:4.0%}")
        if in_bytes and current:
            done = output.size(current, human=True)
            parts.append(f"{done} of {output.size(total, human=True)}" if total > 0 else done)
            parts += self._pace(state, current, seconds)
        parts.append(output.visible(output.text(state, "progress.text")))
        return "  ".join(part for part in parts if part)

    def _pace(self, state: dict[str, Any], current: float, seconds: float) -> list[str]:
        """The rate, and the time left: the service's own, else the mean of what was seen here."""
        rate, left_s = _number(state, "progress.rate"), _number(state, "progress.seconds_left")
        if rate:
            pace = [f"{output.size(rate, human=True)}/s"]
            return [*pace, _left(round(left_s))] if left_s else pace
        if seconds < 1 or output.pick(state, "progress.rate") is not None:  # it says that nothing comes
            return []
        return [f"{output.size((current - self.first) / seconds, human=True)}/s"]


def _number(state: dict[str, Any], path: str) -> float:
    value = output.pick(state, path)
    return float(value) if isinstance(value, int | float) and 0 <= value < 2**63 else 0.0


class TransferProgress:
    """The progress and rate of one transfer: a bar on a terminal, nothing elsewhere."""

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.count = 0
        self.started_at = time.monotonic()
        self._drawn_at = self.started_at - DRAW_EVERY_S * 2
        self._bar = Progress() if sys.stderr.isatty() and not output.dumb() else None
        self.add(0)  # draw the bar at once

    def add(self, count: int) -> None:
        """Count transferred bytes."""
        self.count += count
        if self._bar is None or (now := time.monotonic()) - self._drawn_at < DRAW_EVERY_S:
            return
        self._drawn_at = now
        progress = {"current": self.count, "total": self.total or 0, "unit": "bytes", "text": self._left(now)}
        self._bar.show({"progress": progress})

    def counted(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """The parts, counted as they pass."""
        for part in parts:
            yield part
            self.add(len(part))

    def end(self) -> None:
        """Clear the bar."""
        if self._bar is not None:
            self._bar.end()

    def summary(self) -> str:
        """The amount and rate, such as `1.0 GiB, 512 MiB/s`; no rate for less than half a second."""
        took_s = time.monotonic() - self.started_at
        amount = output.size(self.count, human=True)
        return f"{amount}, {output.size(self.count / took_s, human=True)}/s" if took_s >= 0.5 else amount

    def _left(self, now: float) -> str:
        """The remaining time at the rate so far; empty during the first two seconds."""
        took_s = now - self.started_at
        if not self.total or took_s < 2 or not 0 < self.count < self.total:
            return ""
        return _left(round((self.total - self.count) * took_s / self.count) or 1)


def _left(seconds: int) -> str:
    if seconds < 60:
        return f"{seconds} s left"
    return f"{seconds // 60} min left" if seconds < 3600 else f"{seconds / 3600:.1f} h left"
