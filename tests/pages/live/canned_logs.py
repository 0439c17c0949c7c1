"""A followed log as the service has it, with a test on its other side."""

from __future__ import annotations

import json
from typing import Any

from pages.canned import Canned, Stream
from pages.workspace.records import PATH


class Log:
    """What is printed; each request gets what comes after its last event."""

    def __init__(self, canned: Canned) -> None:
        self.canned = canned
        self.lines: list[tuple[str, dict[str, Any]]] = []
        self.streams: list[Stream] = []
        self.end = ""  # an event that follows what is kept
        canned.answers[f"GET {PATH}/logs/stream"] = self._follow

    @property
    def queries(self) -> list[str]:
        """Of all requests."""
        return [headers["QUERY"] for _, headers in self.canned.sent(f"GET {PATH}/logs/stream")]

    def write(self, text: str, *, stream: str = "stdout", kind: str = "log") -> None:
        """Print, on the streams that are open too."""
        self.lines.append(
            (kind, {"text": text, "time": "2026-11-24T14:31:07.123456789+00:00", "stream": stream})
        )
        for one in self.streams:
            self._send(one, len(self.lines))

    def tell(self, kind: str, data: dict[str, Any] | None = None) -> None:
        """Send an event without an id."""
        for one in self.streams:
            one.send_raw(f"event: {kind}\ndata: {json.dumps(data or {})}")

    def break_off(self) -> None:
        """End the streams without a word."""
        for one in self.streams:
            one.end()
        self.streams.clear()

    def _send(self, stream: Stream, number: int) -> None:
        kind, data = self.lines[number - 1]
        stream.send_raw(f"id: 1.{number}.0\nevent: {kind}\ndata: {json.dumps(data)}")

    def _follow(self) -> Stream:
        _, headers = self.canned.sent(f"GET {PATH}/logs/stream")[-1]
        after = int(headers.get("LAST_EVENT_ID", "1.0.0").split(".")[1])
        stream = Stream()
        stream.send_raw("retry: 300")
        for number in range(after + 1, len(self.lines) + 1):
            self._send(stream, number)
        if self.end:
            stream.send_raw(f"event: {self.end}\ndata: {{}}")
        self.streams.append(stream)
        return stream
