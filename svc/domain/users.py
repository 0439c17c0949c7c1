"""Service accounts: one Linux account each, found by name or by the kernel's uid."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from svc.db.connect import database
from svc.domain import pages
from svc.domain.callers import Asks, Caller
from svc.domain.pages import Page
from svc.errors import AccountDisabled, NotFound


class Account(NamedTuple):
    """What deciding about a caller needs of the row, in one indexed look-up."""

    id: int
    name: str
    uid: int
    display_name: str
    superuser: bool
    disabled: bool
    provisioning: str


_ACCOUNT = "SELECT id, name, uid, display_name, superuser, disabled, provisioning FROM users"
_RECORD = """json_object(
    'name', name, 'uid', uid, 'display_name', display_name, 'superuser', json(iif(superuser, 'true', 'false')),
    'disabled', json(iif(disabled, 'true', 'false')), 'provisioning', provisioning,
    'provisioning_note', provisioning_note, 'created_at', created_at, 'updated_at', updated_at)"""
_SORT = {"name": "name", "uid": "uid", "created_at": "created_at"}


def find_by_uid(uid: int) -> Account | None:
    """The account of a Linux uid; None when there is none."""
    row = database.execute_sql(f"{_ACCOUNT} WHERE uid = ?", (uid,)).fetchone()
    return Account(*row) if row else None


def find_account(name: str) -> Account | None:
    """The account of a name; None when there is none."""
    row = database.execute_sql(f"{_ACCOUNT} WHERE name = ?", (name,)).fetchone()
    return Account(*row) if row else None


def acting_for(user_id: int, helper: Asks, rid: str) -> Caller:
    """The caller as whom the worker goes on with a user's operation; raises AccountDisabled, NotFound."""
    row = database.execute_sql(f"{_ACCOUNT} WHERE id = ?", (user_id,)).fetchone()
    if row is None:
        raise NotFound("the operation's owner is gone")
    account = Account(*row)
    if account.disabled or account.provisioning != "ready":
        raise AccountDisabled(f"the account {account.name} is disabled or incomplete")
    return Caller("worker", account.id, account.name, account.uid, False, rid, "", helper)


def page_of(page: Page) -> dict[str, Any]:
    """All accounts, one page; who may see them is the route's rule."""
    found, values = pages.matching(page, ("name", "display_name"))
    order = pages.order_by(page, _SORT, "name", "id")
    total = database.execute_sql(f"SELECT count(*) FROM users WHERE {found}", values).fetchone()[0]
    rows = database.execute_sql(
        f"SELECT {_RECORD} FROM users WHERE {found} ORDER BY {order} LIMIT ? OFFSET ?",
        (*values, page.limit, page.offset),
    )
    return pages.envelope(page, [json.loads(row[0]) for row in rows], total)


# --- the API's side: who asks, for whom ------------------------------------------------


class Account(NamedTuple):
    """What deciding about a caller needs of the row, in one indexed look-up."""

    id: int
    name: str
    uid: int
    display_name: str
    superuser: bool
    disabled: bool
    provisioning: str


_ACCOUNT = "SELECT id, name, uid, display_name, superuser, disabled, provisioning FROM users"
_SORT = {"name": "name", "uid": "uid", "created_at": "created_at"}


def account_of_uid(uid: int) -> Account | None:
    """The account of the uid that the kernel gave, for every request on the host socket."""
    row = database.execute_sql(f"{_ACCOUNT} WHERE uid = ?", (uid,)).fetchone()
    return Account(*row) if row else None


def acting_for(user_id: int, helper: Asks, rid: str) -> Caller:
    """The caller as whom the worker goes on with a user's operation; raises AccountDisabled, NotFound."""
    row = database.execute_sql(f"{_ACCOUNT} WHERE id = ?", (user_id,)).fetchone()
    if row is None:
        raise NotFound("the operation's owner is gone")
    account = Account(*row)
    if account.disabled or account.provisioning != READY:
        raise AccountDisabled(f"the account {account.name} is disabled or incomplete")
    return Caller("worker", account.id, account.name, account.uid, False, rid, "", helper)


def owner_id(caller: Caller, owner: str | None) -> int:
    """The id behind `?owner=`, the caller's own without one; anybody else's is for administrators."""
    if owner is None or owner == caller.name:
        return caller.user_id
    if caller.superuser and not caller.administers:
        raise PatNotAllowed("a token acts for its own user only")
    if not caller.administers:
        raise AdminOnly("only an administrator names another owner")
    row = database.execute_sql("SELECT id FROM users WHERE name = ?", (owner,)).fetchone()
    if row is None:
        raise NotFound(f"there is no account {owner}", hint="svc api GET /api/users")
    return int(row[0])


def page_of(page: Page) -> dict[str, Any]:
    """All accounts, one page; who may see them is the route's rule."""
    found, values = pages.matching(page, ("name", "display_name"))
    order = pages.order_by(page, _SORT, "name", "id")
    total = database.execute_sql(f"SELECT count(*) FROM users WHERE {found}", values).fetchone()[0]
    rows = User.raw(
        f"SELECT * FROM users WHERE {found} ORDER BY {order} LIMIT ? OFFSET ?",
        *values,
        page.limit,
        page.offset,
    )
    return pages.envelope(page, [record(user) for user in rows], total)
