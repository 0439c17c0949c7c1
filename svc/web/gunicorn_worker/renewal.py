"""Replace a listener that keeps memory of earlier use: it exits while nobody is connected.

A crowd leaves pages that no allocator gives back: each holds one object that lives on. The app
parent forks another listener, whose memory is that of a process which has served nobody. No
request is lost: a connection that is made meanwhile waits in the listening socket, which the
parent holds open.
"""

from __future__ import annotations

import re

QUIET_S = 60.0  # without a connection at any tick
GROWN_MAX_KIB = 8 * 1024  # since the first tick; everyday use takes some 5 MB
_ANONYMOUS = re.compile(rb"^RssAnon:\s+(\d+) kB$", re.MULTILINE)


class Renewal:
    """Decides when a listener ends; asked by its main thread at each tick."""

    def __init__(self) -> None:
        self.first_kib = self.grown_kib = 0
        self.quiet_since: float | None = None

    def is_due(self, connections: int, now: float) -> bool:
        """Whether the process has grown (`grown_kib`) and was without connections for QUIET_S."""
        self.first_kib = self.first_kib or anonymous_kib()
        if connections:
            self.quiet_since = None
            return False
        if self.quiet_since is None:
            self.quiet_since = now
        if now < self.quiet_since + QUIET_S:
            return False
        self.quiet_since = now  # the next look at the memory
        self.grown_kib = anonymous_kib() - self.first_kib
        return self.grown_kib > GROWN_MAX_KIB


def anonymous_kib() -> int:
    """The anonymous memory of this process in KiB, shared pages included."""
    with open("/proc/self/status", "rb") as file:
        found = _ANONYMOUS.search(file.read())
    return int(found[1]) if found else 0
