"""Periodic check that leased GPUs are still there, while there are leases."""

from __future__ import annotations

import threading
import time

from svc.domain.gpus import health as gpu_health
from svc.errors import SvcError
from svc.log import log
from svc.worker import threads

PERIOD_S = 10.0


class GpuWatch:
    """Asks the driver in a thread, at most one at a time: a driver that hangs delays nothing else."""

    def __init__(self) -> None:
        self.due_at = 0.0
        self.thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start a check if it is due, there is anything to check, and the last one has ended."""
        if (self.thread and self.thread.is_alive()) or time.monotonic() < self.due_at:
            return
        self.due_at = time.monotonic() + PERIOD_S
        if gpu_health.due():
            self.thread = threads.start(_check)


def _check() -> None:
    try:
        gpu_health.update()
    except SvcError as error:
        log("worker", f"the GPUs could not be checked: {error.message}", "warning", code=error.code)
