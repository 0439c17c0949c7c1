"""A busy machine: processes that compute beside the benchmark, for the bars that hold there too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Ends with the benchmark, also when that is killed: its parent is another process then.
ENDLESS = """
import os, sys
parent = int(sys.argv[1])
while os.getppid() == parent:
    sum(range(100_000))
"""

_running: list[subprocess.Popen[bytes]] = []


@contextmanager
def beside(number: int) -> Iterator[None]:
    """So many processes compute in the block, at the usual priority, for nobody.

    In sessions of their own, as other users' are: the scheduler shares processors out among sessions
    (autogroup). In the benchmark's they would slow down what it starts, and not what svc starts.
    """
    command = [sys.executable, "-I", "-S", "-c", ENDLESS, str(os.getpid())]
    for _ in range(number):
        _running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True))
    try:
        yield
    finally:
        while _running:
            process = _running.pop()
            process.kill()
            process.wait()


@contextmanager
def paused() -> Iterator[None]:
    """Nothing computes in the block: what is not timed, but would wait ten minutes for a processor."""
    for process in _running:
        process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in _running:
            process.send_signal(signal.SIGCONT)
