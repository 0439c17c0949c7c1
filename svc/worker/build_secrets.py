"""Have agents remove the secrets of builds that have ended, including builds that never began.

The rows say what is left to do (domain/images/build_secrets.py), so a new worker continues where the
former one died.
"""

from __future__ import annotations

import threading
import time

from svc.domain import untrusted
from svc.domain.accounts import users
from svc.domain.images import build_secrets
from svc.domain.images.build_secrets import Left
from svc.errors import SvcError
from svc.helper.helper import Helper
from svc.log import log
from svc.worker import threads

AGAIN_S = 30.0  # until the next attempt, if an agent could not be reached


class SecretWatch:
    """When to try again for each build whose secrets are not removed yet, and for whom a thread does it."""

    def __init__(self, helper: Helper) -> None:
        self.helper = helper
        self.lock = threading.Lock()
        self.not_before: dict[str, float] = {}
        self.warned: set[str] = set()
        self.removing: set[int] = set()  # owners

    def begin(self) -> None:
        """Start a thread for each owner of builds whose secrets are due to be removed."""
        owners: dict[int, list[Left]] = {}
        left = build_secrets.ended()
        with self.lock:
            now = time.monotonic()
            known = {row.operation_id for row in left}
            self.not_before = {name: at for name, at in self.not_before.items() if name in known}
            self.warned &= known
            for row in left:
                if self.not_before.get(row.operation_id, 0.0) <= now and row.owner_id not in self.removing:
                    owners.setdefault(row.owner_id, []).append(row)
            self.removing |= owners.keys()
        for owner_id, rows in owners.items():
            threads.start(self._forget_all, owner_id, rows)

    def _forget_all(self, owner_id: int, rows: list[Left]) -> None:
        """Remove the secrets of one owner's builds, until the owner's agent does not reply."""
        try:
            for number, row in enumerate(rows):
                replied = self._forget(row)
                self._put_off([row] if replied else rows[number:])
                if not replied:
                    break
        finally:
            with self.lock:
                self.removing.discard(owner_id)

    def _put_off(self, rows: list[Left]) -> None:
        with self.lock:
            self.not_before |= {row.operation_id: time.monotonic() + AGAIN_S for row in rows}

    def _forget(self, row: Left) -> bool:
        try:
            caller = users.acting_for(row.owner_id, self.helper, f"secrets-{row.operation_id}")
            build_secrets.forget(caller, row.operation_id)
        except SvcError as error:
            if row.operation_id not in self.warned:
                self.warned.add(row.operation_id)
                message = f"the secrets of {row.operation_id} are not forgotten yet: {error.message}"
                log("worker", message, "warning")
            return not isinstance(error, untrusted.SILENT)
        return True
