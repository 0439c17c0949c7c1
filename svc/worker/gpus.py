"""Looking whether the leased GPUs are still there, every few seconds while there are leases."""

from __future__ import annotations

import threading
import time

from svc.db.connect import close_database
from svc.domain.gpus import health as gpu_health
from svc.errors import SvcError
from svc.log import log

LOOK_S = 10.0


class GpuWatch:
    """Asks the driver in a thread: one that hangs delays nobody."""

    def __init__(self) -> None:
        self.due_at = 0.0
        self.looking = False

    def begin(self) -> None:
        """Look, if it is time, there is anything to look for and the last look is over."""
        if self.looking or time.monotonic() < self.due_at:
            return
        self.due_at = time.monotonic() + LOOK_S
        if gpu_health.due():
            self.looking = True
            threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        try:
            gpu_health.settle()
        except SvcError as error:
            log("worker", f"the GPUs could not be looked at: {error.message}", "warning", code=error.code)
        finally:
            self.looking = False
            close_database()
