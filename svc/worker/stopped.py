"""Delete stopped workspaces that were made with `delete_when_stopped`, as `svc ws run --rm` makes them.

Its client deletes them at once, with the exit code and the output in hand. One that was killed does not:
what has been stopped for DELETE_AFTER_S is deleted here.
"""

from __future__ import annotations

from typing import NamedTuple

from svc.db.connect import database
from svc.domain import untrusted
from svc.domain.accounts import users
from svc.domain.workspaces import workspaces
from svc.errors import SvcError
from svc.helper.helper import Helper
from svc.host.ids import after, now
from svc.limits import DELETE_AFTER_S
from svc.log import log
from svc.worker.owners import OwnerQueue

AGAIN_S = 60.0  # after one that could not be deleted

_DUE = (
    "SELECT w.id, w.owner_id, w.status_since FROM workspaces w JOIN users u ON u.id = w.owner_id"
    " WHERE w.delete_when_stopped = 1 AND w.status_since < ? AND w.status IN ('stopped', 'failed')"
    " AND u.uid IS NOT NULL AND u.disabled = 0 ORDER BY w.status_since"
)


class Due(NamedTuple):
    """A workspace that is to be deleted."""

    id: str
    owner_id: int
    since: str


def due(at: str) -> list[Due]:
    """The workspaces that are to be deleted at this time, the longest stopped first."""
    return [Due(*row) for row in database.execute_sql(_DUE, (after(at, -DELETE_AFTER_S),)).fetchall()]


class StoppedWatch(OwnerQueue[Due]):
    """The workspaces that are to be deleted."""

    def __init__(self, helper: Helper) -> None:
        super().__init__(lambda: due(now()), self._delete, AGAIN_S)
        self.helper = helper

    def _delete(self, row: Due) -> bool:
        """Delete one; whether its owner's agent replied."""
        try:
            caller = users.acting_for(row.owner_id, self.helper, f"stopped-{row.id}")
            workspaces.delete(caller, row.id, since=row.since)
        except SvcError as error:
            message = f"{row.id} was to be deleted when it has stopped: {error.message}"
            log("worker", message, "warning", code=error.code)
            return not isinstance(error, untrusted.SILENT)
        return True
