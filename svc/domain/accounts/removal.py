"""Removal of accounts: a row and everything that belongs to it, except the audit.

Audit rows keep name and id of the removed account, and the id is never used again: a later
account of the same name is another one.
"""

from __future__ import annotations

from typing import NamedTuple

from svc.db.connect import database, write
from svc.domain.accounts import throttle, users
from svc.domain.accounts.users import Account, Ended
from svc.host.ids import now

BEGUN = "its removal began and did not end"


class Holdings(NamedTuple):
    """How many rows of each kind belong to an account."""

    workspaces: int
    running: int  # of these
    templates: int
    images: int
    operations: int  # queued or running
    sessions: int
    tokens: int


_COUNTS = """SELECT
    (SELECT count(*) FROM workspaces WHERE owner_id = ?1),
    (SELECT count(*) FROM workspaces WHERE owner_id = ?1 AND status IN ('starting', 'running', 'stopping')),
    (SELECT count(*) FROM templates WHERE owner_id = ?1),
    (SELECT count(*) FROM images WHERE owner_id = ?1 AND status = 'ready'),
    (SELECT count(*) FROM operations WHERE owner_id = ?1 AND status IN ('queued', 'running')),
    (SELECT count(*) FROM sessions WHERE user_id = ?1),
    (SELECT count(*) FROM tokens WHERE user_id = ?1 AND ended_at IS NULL)"""

_CANCEL = (
    "UPDATE operations SET status = 'cancelled', cancel_requested = 1, finished_at = ?1, updated_at = ?1"
    " WHERE owner_id = ?2 AND status = 'queued'",
    "UPDATE operations SET cancel_requested = 1, updated_at = ?1 WHERE owner_id = ?2 AND status = 'running'",
)

# Leases and ports go with their workspace, revisions with their template, logs with their operation,
# tickets with their session or token, those of the host socket with the account.
_OWNED = (
    "DELETE FROM workspaces WHERE owner_id = ?",
    "DELETE FROM templates WHERE owner_id = ?",
    "DELETE FROM images WHERE owner_id = ?",
    "DELETE FROM operations WHERE owner_id = ?",
    "DELETE FROM sessions WHERE user_id = ?",
    "DELETE FROM tokens WHERE user_id = ?",
    "DELETE FROM login_places WHERE user_id = ?",
    "DELETE FROM disk_usage WHERE user_id = ?",
    "DELETE FROM events WHERE owner_id = ?",  # last: the statements above have written some
)


def holdings(user_id: int) -> Holdings:
    """What an account has on record."""
    return Holdings(*database.execute_sql(_COUNTS, (user_id,)).fetchone())


def image_refs(user_id: int) -> list[str]:
    """The references of the account's images, as the service knows them."""
    rows = database.execute_sql(
        "SELECT image_ref FROM images WHERE owner_id = ?1 UNION SELECT image_ref FROM workspaces"
        " WHERE owner_id = ?1 ORDER BY 1",
        (user_id,),
    )
    return [row[0] for row in rows]


def begin(user: Account) -> Ended:
    """Close an account: nobody can use it, and nothing new is done for it; in the caller's transaction.

    What the service still does for it is cancelled. The row says that a removal began.
    """
    at = now()
    ended = users.end_access(user.id)
    for statement in _CANCEL:
        database.execute_sql(statement, (at, user.id))
    users.update(user, disabled=True, provisioning=users.CLEANUP, provisioning_note=BEGUN)
    return ended


def operations_running(user_id: int) -> int:
    """How many operations of the account the worker has not ended yet."""
    row = database.execute_sql(
        "SELECT count(*) FROM operations WHERE owner_id = ? AND status = 'running'", (user_id,)
    ).fetchone()
    return int(row[0])


def is_begun(user: Account) -> bool:
    """Whether a removal of the account began and did not end: it is to be completed, not set up again."""
    return user.provisioning == users.CLEANUP and user.provisioning_note == BEGUN


def finish(user: Account) -> None:
    """Delete the row and what belongs to it, in the caller's transaction.

    The build contexts of its templates are the caller's to delete (`contexts.delete_unused`).
    """
    with write():
        for statement in _OWNED:
            database.execute_sql(statement, (user.id,))
        throttle.forget_user(user.name)
        users.remove(user)
