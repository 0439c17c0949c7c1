"""Accounts whose Linux account is no more: closed for good, so that nobody inherits anything of them.

Linux gives names and uids again. Whoever gets one gets an account of their own;
what was recorded for the former owner stays with the former row, under a name
that no login can have.
"""

from __future__ import annotations

from itertools import chain, count

from svc.db.connect import database, write
from svc.db.ids import now
from svc.domain.accounts import users
from svc.domain.accounts.users import Account

# What would be done for the owner if somebody could still be acted for: none of it is tried again.
_ENDED = (
    "UPDATE workspaces SET status = 'stopped', status_reason = 'engine_error', status_since = ?1,"
    " updated_at = ?1 WHERE owner_id = ?2 AND status <> 'stopped'",
    "UPDATE operations SET status = 'cancelled', cancel_requested = 1, finished_at = ?1, updated_at = ?1"
    " WHERE owner_id = ?2 AND status = 'queued'",
    "UPDATE operations SET cancel_requested = 1, updated_at = ?1 WHERE owner_id = ?2 AND status = 'running'",
)


def retire(user: Account) -> str:
    """Close an account whose Linux account is no more, for good; returns the name it has from then on.

    Whoever gets its name or its uid next gets nothing else of it: its records
    stay with the row, under a name that no login can have. What it had running
    counts as stopped, what it had waiting is cancelled.
    """
    with write():
        name, at = _free_name(f"{user.name}.{user.uid}"), now()
        kept = " and ".join(_kept(user.id)) or "nothing"
        users.end_access(user.id)
        for what in _ENDED:
            database.execute_sql(what, (at, user.id))
        users.update(
            user,
            name=name,
            uid=None,
            superuser=False,
            disabled=True,
            password_hash=None,
            password_length=None,
            password_closed=False,
            failed_logins=0,
            provisioning=users.CLEANUP,
            provisioning_note=f"the Linux account {user.name} (uid {user.uid}) is no more; on record: {kept}",
        )
    return name


def is_retired(name: str) -> bool:
    """Whether this is the name of an account that was retired: no Linux account can have it."""
    return "." in name


def _free_name(wanted: str) -> str:
    """The name itself, or with the first number that makes it nobody's."""
    names = chain([wanted], (f"{wanted}.{number}" for number in count(2)))
    return next(name for name in names if users.find(name) is None)


def _kept(user_id: int) -> list[str]:
    """What is on record for a user, in words."""
    numbers = database.execute_sql(
        "SELECT (SELECT count(*) FROM workspaces WHERE owner_id = ?1),"
        " (SELECT count(*) FROM templates WHERE owner_id = ?1)",
        (user_id,),
    ).fetchone()
    nouns = zip(numbers, ("workspace", "template"), strict=True)
    return [f"{number} {noun}{'s' if number != 1 else ''}" for number, noun in nouns if number]
