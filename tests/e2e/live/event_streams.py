"""A client of server-sent events, as browsers are: it keeps the last id and comes back with it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from http.client import HTTPException, HTTPResponse
from typing import Any

from e2e.files import Endpoint


class Reader:
    """One client of a stream at this path."""

    def __init__(self, listener: Endpoint, path: str) -> None:
        self.listener, self.path = listener, path
        self.last_id = ""
        self.name = ""  # of the last event
        self.connections = self.restarts = 0

    @contextlib.contextmanager
    def connected(self) -> Iterator[HTTPResponse]:
        """One connection."""
        headers = {"Last-Event-ID": self.last_id} if self.last_id else {}
        with self.listener.begun(self.path, **headers) as answer:
            if answer.status == 503:
                raise ConnectionError("the service is not ready")
            assert answer.status == 200, answer.read()
            self.connections += 1
            yield answer

    def events(self, answer: HTTPResponse) -> Iterator[dict[str, Any]]:
        """The data of the events of one connection, to its end."""
        fields: dict[str, str] = {}
        while line := answer.readline().decode():
            if line != "\n":
                name, _, fields[name] = line.rstrip("\n").partition(": ")
                continue
            self.last_id = fields.get("id", self.last_id)
            self.name = fields.get("event", self.name)
            if fields.get("event") == "restarting":
                self.restarts += 1
                return
            if "data" in fields:
                yield json.loads(fields["data"])
            fields = {}

    def some(self, count: int) -> Iterator[dict[str, Any]]:
        """At most so many of one connection; of none while the service is away."""
        with contextlib.suppress(OSError, HTTPException), self.connected() as answer:
            for number, record in enumerate(self.events(answer), 1):
                yield record
                if number == count:
                    return

    def begin(self) -> None:
        """Note where the events are now."""
        with self.connected() as answer:
            while not self.last_id:
                line = answer.readline().decode()
                self.last_id = line.removeprefix("id: ").strip() if line.startswith("id: ") else ""
