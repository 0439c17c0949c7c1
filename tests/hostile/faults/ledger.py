"""What clients asked for and what they were told, kept outside the service.

From it follows what a database may hold after a kill, and what a snapshot may hold that was made between
two moments. Each key (a template, a token, a workspace, ...) has one writer, which asks for one thing at
a time; the value of a key that is not there is None.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

Key = tuple[str, str, str]  # kind, owner, name
Value = str | None
State = Mapping[Key, Value]


class Write(NamedTuple):
    """One request: the value it asked for, when it was sent and when success was answered."""

    value: Value
    began: float
    ended: float = math.inf  # without an answer of success


class Ledger:
    """All writes of all keys, for several threads."""

    def __init__(self, base: State) -> None:
        self.lock = threading.Lock()
        self.writes: dict[Key, list[Write]] = {key: [Write(value, 0, 0)] for key, value in base.items()}
        self.acknowledged = 0

    def begin(self, key: Key, value: Value) -> None:
        """Note that a request is about to be sent."""
        with self.lock:
            self.writes.setdefault(key, [Write(None, 0, 0)]).append(Write(value, time.monotonic()))

    def acknowledge(self, key: Key) -> None:
        """Note that the last request of this key was answered with success."""
        with self.lock:
            self.writes[key][-1] = self.writes[key][-1]._replace(ended=time.monotonic())
            self.acknowledged += 1

    def observe(self, state: State) -> None:
        """Note what the database holds now, while nobody writes: from here on that is so."""
        now = time.monotonic()
        with self.lock:
            for key in self.writes.keys() | state.keys():
                self.writes.setdefault(key, []).append(Write(state.get(key), now, now))

    def allowed(self, began: float, ended: float) -> dict[Key, set[Value]]:
        """What one state of the database between two moments may hold: at least what was acknowledged
        before the first, at most what was asked for before the second."""
        with self.lock:
            return {key: _allowed(writes, began, ended) for key, writes in self.writes.items()}

    def wrong(self, state: State) -> list[str]:
        """Where the database is not as its clients were told; nobody writes now."""
        now = time.monotonic()
        return differences(self.allowed(now, now), state)


def _allowed(writes: list[Write], began: float, ended: float) -> set[Value]:
    certain = [number for number, write in enumerate(writes) if write.ended <= began]
    first = certain[-1] if certain else 0
    found = {write.value for write in writes[first:] if write.began <= ended}
    return found if certain else found | {None}


def differences(allowed: Mapping[Key, set[Value]], state: State) -> list[str]:
    """The keys whose value is none of the allowed ones."""
    return [
        f"{' '.join(key)}: {state.get(key)!r} is none of {sorted(map(str, values))[:5]}"
        for key in sorted(allowed.keys() | state.keys())
        if state.get(key) not in (values := allowed.get(key, {None}))
    ]
