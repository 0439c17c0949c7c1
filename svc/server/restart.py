"""Child processes that are started again when they end: those of the supervisor and of the app parent."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence

from svc.log import log

BACKOFF_FIRST_S, BACKOFF_LAST_S = 0.1, 5.0
STEADY_S = 10.0  # a child that ran for so long starts again without delay
# Exit status of a child that cannot use the database, and of a parent that gives up for it: to start it again
# would not help.
UNUSABLE = os.EX_CONFIG
# Exit status of an app parent none of whose listeners has ever worked. After so many ends in a row, each
# right after its start, the next one would end too. Their delays add up to three seconds.
NOT_SERVING = os.EX_UNAVAILABLE
EARLY_ENDS_MAX = 6


class Child:
    """One child process and when it may be started again."""

    def __init__(self, parent: str, name: str, start: Callable[[], int]) -> None:
        self.parent = parent  # the process that logs its starts and ends
        self.name = name
        self.start = start
        self.pid = 0
        self.started = 0.0
        self.backoff_s = 0.0
        self.not_before = 0.0
        self.early_ends = 0  # in a row, each before STEADY_S
        self.exit_code = 0  # of the process that ended last

    def ensure(self) -> None:
        """Start it unless it runs or its delay is not over."""
        if self.pid == 0 and time.monotonic() >= self.not_before:
            self.pid, self.started = self.start(), time.monotonic()
            log(self.parent, f"{self.name} started, pid {self.pid}")

    def ended(self, status: int) -> None:
        """Record its end; the delay doubles each time that it ran for less than STEADY_S."""
        if time.monotonic() - self.started > STEADY_S:
            self.backoff_s, self.early_ends = 0.0, 0
        else:
            self.early_ends += 1
            self.backoff_s = min(max(self.backoff_s * 2, BACKOFF_FIRST_S), BACKOFF_LAST_S)
        self.not_before = time.monotonic() + self.backoff_s
        self.exit_code = os.waitstatus_to_exitcode(status)
        log(self.parent, f"{self.name} ended ({self.exit_code}), pid {self.pid}")
        self.pid = 0

    def leave_behind(self) -> None:
        """Start another beside one that SIGKILL does not end; reaped when the kernel lets it go."""
        log(self.parent, f"{self.name} cannot be killed and is left behind, pid {self.pid}", "critical")
        self.pid, self.not_before = 0, 0.0

    def signal(self, number: int) -> None:
        """Send a signal, if it runs."""
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


def reap(children: Sequence[Child], options: int = os.WNOHANG) -> bool:
    """Reap every process that has ended, adopted ones too; False when none is left.

    With options=0 it waits until there is one and reaps that.
    """
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, options)
            if pid == 0:
                return True
            for child in children:
                if child.pid == pid:
                    child.ended(status)
            if not options:
                return True
    return False
