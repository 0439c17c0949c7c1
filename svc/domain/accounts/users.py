"""Account rows: one service account for each Linux account.

An account is created `incomplete`, becomes `ready` when its setup on the host is
complete, and `cleanup_required` when that failed permanently or its Linux account
was removed; a note has the reason. Nothing here changes the host, which is the
helper's task.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, NamedTuple

from svc.db.connect import database, write
from svc.domain import pages
from svc.domain.accounts import sessions, throttle, tokens
from svc.domain.pages import Page
from svc.domain.plain_text import WHY, is_plain
from svc.domain.principal import Caller
from svc.errors import (
    AccountDisabled,
    AdminOnly,
    Conflict,
    NameTaken,
    NotFound,
    PatNotAllowed,
    invalid_field,
)
from svc.helper.helper import Helper
from svc.host.ids import now
from svc.limits import DISPLAY_NAME_MAX, USER_ID
from svc_helper.wire.limits import NEW_USER_NAME, USER_NAME, USER_NAME_MAX

READY, INCOMPLETE, CLEANUP = "ready", "incomplete", "cleanup_required"


class Account(NamedTuple):
    """One row of the table users; flags are 0 or 1."""

    id: int
    name: str
    uid: int  # NULL until the account is ready, and once it is retired
    display_name: str
    superuser: bool
    disabled: bool
    provisioning: str
    provisioning_note: str
    password_hash: str | None
    password_length: int | None
    password_closed: bool
    failed_logins: int
    quota: str | None
    created_at: str
    updated_at: str


# Names of retired accounts (svc.domain.accounts.retirement): no Linux account has a colon in its name.
RETIRED = re.compile(rf"({USER_NAME}):(\d{{1,10}})(?::\d+)?")
RETIRED_BEFORE = re.compile(rf"({NEW_USER_NAME})\.(\d{{1,10}})(?:\.\d+)?")  # by earlier releases
REMOVED = "the Linux account {} (uid {}) was removed"  # how the note of a retired account begins
_SELECT = f"SELECT {', '.join(Account._fields)} FROM users"
_SORT = {"name": "name", "uid": "uid", "created_at": "created_at"}


class Ended(NamedTuple):
    """How many sessions and tokens were ended."""

    sessions: int
    tokens: int


def check_name(name: str) -> str:
    """The user name; ValidationFailed unless it is in the canonical form, the only one that is stored."""
    if not re.fullmatch(USER_NAME, name):
        message = (
            "must be the name of a Linux account: letters, digits, . _ - and @, at most"
            f" {USER_NAME_MAX}, beginning with a letter, a digit or _, and not of digits alone"
        )
        raise invalid_field("name", "invalid", message)
    return name


def check_display_name(display_name: str) -> str:
    """The display name, stripped; ValidationFailed for invisible characters and excessive length."""
    display_name = unicodedata.normalize("NFC", display_name.strip())
    if len(display_name) > DISPLAY_NAME_MAX:
        raise invalid_field("display_name", "invalid", f"must be at most {DISPLAY_NAME_MAX} characters")
    if not is_plain(display_name):
        raise invalid_field("display_name", "invalid", WHY)
    return display_name


def _find(column: str, value: int | str) -> Account | None:
    row = database.execute_sql(f"{_SELECT} WHERE {column} = ?", (value,)).fetchone()
    return Account(*row) if row else None


def find(name: str) -> Account | None:
    """The account with this name, if any."""
    return _find("name", name)


def find_by_uid(uid: int) -> Account | None:
    """The account with this Linux uid, if any."""
    return _find("uid", uid)


def find_by_id(user_id: int) -> Account | None:
    """The account that a session or a token belongs to, if it still exists."""
    return _find("id", user_id)


def get(name: str) -> Account:
    """The account with this name; NotFound when there is none."""
    account = find(name)
    if account is None:
        raise NotFound(f"there is no account {name}", hint="sudo svc admin list-users")
    return account


def find_owner(owner: str) -> Account | None:
    """The account of an `--owner <server_userid>`: a user name, or the id that `svc whoami` prints."""
    return find_by_uid(int(owner)) if re.fullmatch(USER_ID, owner) else find(owner)


def every() -> list[Account]:
    """All accounts by name."""
    return [Account(*row) for row in database.execute_sql(f"{_SELECT} ORDER BY name")]


def create(
    name: str,
    *,
    uid: int | None = None,
    display_name: str = "",
    superuser: bool = False,
    provisioning: str = INCOMPLETE,
) -> Account:
    """Create an account row; NameTaken when the name or the uid has one.

    Ids are never reused, even of removed accounts, since audit rows refer to their
    owner by id, and Dockerfiles to their author.
    """
    check_name(name)
    with write():
        for other in (find(name), find_by_uid(uid) if uid is not None else None):
            if other is not None:
                raise NameTaken(
                    f"there is an account {other.name} (uid {other.uid})", hint="sudo svc admin list-users"
                )
        at = now()
        database.execute_sql(
            "INSERT INTO users (id, name, uid, display_name, superuser, provisioning, created_at, updated_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (_next_id(), name, uid, check_display_name(display_name), superuser, provisioning, at, at),
        )
    return get(name)


def _next_id() -> int:
    """The id after the last one, which a trigger keeps; in the caller's write transaction."""
    return int(database.execute_sql("SELECT 1 + id FROM last_account_id").fetchone()[0])


def update(account: Account, **columns: Any) -> None:
    """Write these columns of the row, and the time."""
    columns = {"updated_at": now()} | columns
    changes = ", ".join(f"{name} = ?" for name in columns)
    with write():
        database.execute_sql(f"UPDATE users SET {changes} WHERE id = ?", (*columns.values(), account.id))


def remove(account: Account) -> None:
    """Delete a row that nothing refers to."""
    with write():
        database.execute_sql("DELETE FROM users WHERE id = ?", (account.id,))


def set_password(user: Account, password_hash: str, password_length: int) -> Ended:
    """Replace the service password (not the Linux password) and end all sessions and tokens.

    Reopens a login that was closed for a short password or after too many failures. Raises
    Conflict when the account was replaced or its superuser flag changed since it was read,
    because other rules may then apply to the password.
    """
    with write():
        today = find(user.name)
        if today is None or (today.id, today.superuser) != (user.id, user.superuser):
            raise Conflict(f"the account {user.name} has just changed; try again")
        update(
            user, password_hash=password_hash, password_length=password_length, password_closed=False,
            failed_logins=0,
        )  # fmt: skip
        throttle.forget_user(user.name)
        throttle.forget_places(user.id)
        throttle.forget_changes(user.id)
        return end_access(user.id)


def end_access(user_id: int) -> Ended:
    """End all sessions and tokens of a user, in the transaction in progress; returns their numbers.

    Those of apps end too, also what a link on the host has opened.
    """
    with write():
        database.execute_sql("DELETE FROM app_sessions WHERE user_id = ?", (user_id,))
        return Ended(sessions.end_all(user_id), tokens.revoke_all(user_id))


def record(user: Account) -> dict[str, Any]:
    """The account's record as in `svc admin list-users --json`, without the password hash."""
    return {
        "name": user.name, "uid": user.uid, "display_name": user.display_name,
        "superuser": bool(user.superuser), "disabled": bool(user.disabled), "retired": is_retired(user),
        "status": status_name(user), "note": user.provisioning_note,
        "has_password": user.password_hash is not None, "password_closed": bool(user.password_closed),
        "quota": user.quota, "created_at": user.created_at, "updated_at": user.updated_at,
    }  # fmt: skip


def status_name(user: Account) -> str:
    """READY, DISABLED, PROVISIONING_INCOMPLETE or PROVISIONING_CLEANUP_REQUIRED."""
    if user.provisioning == CLEANUP:
        return "PROVISIONING_CLEANUP_REQUIRED"
    if user.provisioning == INCOMPLETE:
        return "PROVISIONING_INCOMPLETE"
    return "DISABLED" if user.disabled else "READY"


def former_linux_account(user: Account) -> tuple[str, int] | None:
    """The name and uid of the Linux account that a retired account had; None for any other account.

    A name that earlier releases gave, ada.2001, may be somebody's: there the note decides.
    """
    found = RETIRED.fullmatch(user.name)
    if found is None and user.uid is None and user.provisioning == CLEANUP:
        found = RETIRED_BEFORE.fullmatch(user.name)
        if found and not user.provisioning_note.startswith(REMOVED.format(found[1], found[2])):
            found = None
    return (found[1], int(found[2])) if found else None


def is_retired(user: Account) -> bool:
    """Whether the account is a retired one, which nobody can ever use again."""
    return former_linux_account(user) is not None


# --- requests ------------------------------------------------


def acting_for(user_id: int, helper: Helper, rid: str) -> Caller:
    """The caller for the worker's part of a user's operation; raises AccountDisabled, NotFound."""
    account = find_by_id(user_id)
    if account is None:
        raise NotFound("the owner of the operation no longer exists")
    if account.disabled or account.provisioning != READY:
        raise AccountDisabled(f"the account {account.name} is disabled or incomplete")
    return Caller("worker", account.id, account.name, account.uid, False, rid, "", helper)


def owner_id(caller: Caller, owner: str | None, noun: str = "ws") -> int:
    """The user id of `?owner=`, by default the caller's; other owners are for administrators.

    `noun` is the group of commands, for hints.
    """
    if owner is None or owner in (caller.name, str(caller.uid)):
        return caller.user_id
    require_for_others(caller, noun)
    account = find_owner(owner)
    if account is None:
        raise NotFound(f"there is no account {owner}", hint="svc api GET /api/users")
    return account.id


def require_for_others(caller: Caller, noun: str = "ws") -> None:
    """Raise PatNotAllowed or AdminOnly unless the caller may look at what others own."""
    if caller.kind == "pat":
        raise PatNotAllowed("a token can only act for its own user")
    if not caller.administers:
        raise AdminOnly("only an administrator sees what others own", hint=f"svc {noun} list")


def page_of(page: Page) -> dict[str, Any]:
    """One page of all accounts; the route checks who may read them."""
    found, values = pages.matching(page, ("name", "display_name"))
    order = pages.order_by(page, _SORT, "name", "id")
    total = database.execute_sql(f"SELECT count(*) FROM users WHERE {found}", values).fetchone()[0]
    rows = database.execute_sql(
        f"{_SELECT} WHERE {found} ORDER BY {order} LIMIT ? OFFSET ?", (*values, page.limit, page.offset)
    )
    return pages.envelope(page, [record(Account(*row)) for row in rows], total)
