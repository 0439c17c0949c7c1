"""Retirement of accounts whose Linux account was removed, so that nobody inherits anything of them.

Linux reuses names and uids. A new user of one gets a new account; the records of
the former owner stay with the former row, renamed to `NAME:UID`: no Linux account has a colon in its name.
"""

from __future__ import annotations

from itertools import chain, count

from svc.db.connect import database, write
from svc.domain.accounts import users
from svc.domain.accounts.users import Account
from svc.host.ids import now

# Ends all pending work of the owner, for whom the worker can no longer act.
_ENDED = (
    "UPDATE workspaces SET status = 'stopped', status_reason = 'engine_error', status_since = ?1,"
    " updated_at = ?1 WHERE owner_id = ?2 AND status <> 'stopped'",
    "UPDATE operations SET status = 'cancelled', cancel_requested = 1, finished_at = ?1, updated_at = ?1"
    " WHERE owner_id = ?2 AND status = 'queued'",
    "UPDATE operations SET cancel_requested = 1, updated_at = ?1 WHERE owner_id = ?2 AND status = 'running'",
)


def retire(user: Account) -> str:
    """Close an account permanently, and give it a name that nobody can have; returns that name.

    Its records stay with the row. Its workspaces become stopped, its queued operations
    are cancelled.
    """
    with write():
        former, uid = users.former_linux_account(user) or (user.name, user.uid)
        name, at = _free_name(f"{former}:{uid}"), now()
        kept = " and ".join(_kept(user.id)) or "nothing"
        note = f"{users.REMOVED.format(former, uid)}; on record: {kept}"
        users.end_access(user.id)
        for statement in _ENDED:
            database.execute_sql(statement, (at, user.id))
        users.update(
            user, name=name, uid=None, superuser=False, disabled=True, password_hash=None,
            password_length=None, password_closed=False, failed_logins=0,
            provisioning=users.CLEANUP, provisioning_note=note,
        )  # fmt: skip
    return name


def _free_name(name: str) -> str:
    """The name, with the first number from 2 that makes it unique if it is taken."""
    names = chain([name], (f"{name}:{number}" for number in count(2)))
    return next(candidate for candidate in names if users.find(candidate) is None)


def _kept(user_id: int) -> list[str]:
    """The numbers of a user's workspaces and templates, as text."""
    numbers = database.execute_sql(
        "SELECT (SELECT count(*) FROM workspaces WHERE owner_id = ?1),"
        " (SELECT count(*) FROM templates WHERE owner_id = ?1)",
        (user_id,),
    ).fetchone()
    nouns = zip(numbers, ("workspace", "template"), strict=True)
    return [f"{number} {noun}{'s' if number != 1 else ''}" for number, noun in nouns if number]
