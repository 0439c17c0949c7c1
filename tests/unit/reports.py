"""A report that keeps what it is told, for runs without a worker."""

from __future__ import annotations

from typing import Any


class RecordedReport:
    """As the worker's Reporter, without a database."""

    def __init__(self, cancelled: bool = False) -> None:
        self.phases: list[str] = []
        self.figures: list[dict[str, Any]] = []
        self.lines: list[str] = []
        self.is_cancelled = cancelled
        self.expected = 0

    def phase(self, name: str) -> None:
        self.phases.append(name)

    def progress(self, progress: dict[str, Any]) -> None:
        self.figures.append(progress)

    def expect(self, download_bytes: int) -> None:
        self.expected = download_bytes

    def add_log(self, text: str) -> None:
        self.lines.append(text)

    def cancelled(self) -> bool:
        return self.is_cancelled
