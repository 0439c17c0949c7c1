"""Have agents remove the secrets of builds that have ended, including builds that never began.

The rows say what is left to do (domain/images/build_secrets.py), so a new worker continues where the
former one died.
"""

from __future__ import annotations

import threading
import time

from svc.domain.accounts import users
from svc.domain.images import build_secrets
from svc.domain.images.build_secrets import Left
from svc.errors import SvcError
from svc.helper.helper import Helper
from svc.log import log
from svc.worker import threads

AGAIN_S = 30.0  # until the next attempt, if an agent could not be reached


class SecretWatch:
    """When to try again for each build whose secrets are not removed yet."""

    def __init__(self, helper: Helper) -> None:
        self.helper = helper
        self.lock = threading.Lock()
        self.not_before: dict[str, float] = {}
        self.warned: set[str] = set()

    def begin(self) -> None:
        """Start a thread for each build whose secrets are due to be removed."""
        left = build_secrets.ended()
        with self.lock:
            now = time.monotonic()
            known = {row.operation_id for row in left}
            self.not_before = {name: at for name, at in self.not_before.items() if name in known}
            self.warned &= known
            due = [row for row in left if self.not_before.get(row.operation_id, 0.0) <= now]
            self.not_before |= {row.operation_id: now + AGAIN_S for row in due}
        for row in due:
            threads.start(self._forget, row)

    def _forget(self, row: Left) -> None:
        try:
            caller = users.acting_for(row.owner_id, self.helper, f"secrets-{row.operation_id}")
            build_secrets.forget(caller, row.operation_id)
        except SvcError as error:
            if row.operation_id in self.warned:
                return
            self.warned.add(row.operation_id)
            message = f"the secrets of {row.operation_id} are not forgotten yet: {error.message}"
            log("worker", message, "warning")
