"""Have agents remove the secrets of builds that have ended, including builds that never began.

The rows say what is left to do (domain/images/build_secrets.py).
"""

from __future__ import annotations

from svc.domain import untrusted
from svc.domain.accounts import users
from svc.domain.images import build_secrets
from svc.domain.images.build_secrets import Left
from svc.errors import SvcError
from svc.helper.helper import Helper
from svc.log import log
from svc.worker.owners import OwnerQueue

AGAIN_S = 30.0  # until the next attempt, if an agent could not be reached


class SecretWatch(OwnerQueue[Left]):
    """The builds whose secrets are not removed yet; a failure is logged once for each."""

    def __init__(self, helper: Helper) -> None:
        super().__init__(self._read, self._forget, AGAIN_S)
        self.helper = helper
        self.warned: set[str] = set()

    def _read(self) -> list[Left]:
        rows = build_secrets.ended()
        self.warned &= {row.id for row in rows}
        return rows

    def _forget(self, row: Left) -> bool:
        try:
            caller = users.acting_for(row.owner_id, self.helper, f"secrets-{row.id}")
            build_secrets.forget(caller, row.id)
        except SvcError as error:
            if row.id not in self.warned:
                self.warned.add(row.id)
                log("worker", f"the secrets of {row.id} are not forgotten yet: {error.message}", "warning")
            return not isinstance(error, untrusted.SILENT)
        return True
