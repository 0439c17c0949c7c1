"""Account rows: one service account per Linux account.

An account is made `incomplete`, becomes `ready` when the host side of it is
whole, and `cleanup_required` when that failed for good or when its Linux account
is no more; each with a note of why. Nothing here touches the host: that is the
helper's work.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, NamedTuple

from svc.db.connect import database, write
from svc.db.ids import now
from svc.db.models import User
from svc.domain import pages
from svc.domain.accounts import sessions, throttle, tokens
from svc.domain.pages import Page
from svc.domain.principal import Asks, Caller
from svc.errors import (
    AccountDisabled,
    AdminOnly,
    Conflict,
    NameTaken,
    NotFound,
    PatNotAllowed,
    ValidationFailed,
)
from svc.limits import DISPLAY_NAME_MAX, USER_NAME

READY, INCOMPLETE, CLEANUP = "ready", "incomplete", "cleanup_required"


class Ended(NamedTuple):
    """How many ways into an account have just ended."""

    sessions: int
    tokens: int


def check_name(name: str) -> str:
    """The user name as it is, or ValidationFailed: only the canonical form is ever stored or compared."""
    if not re.fullmatch(USER_NAME, name):
        raise _invalid(
            "name", "must be a Linux user name: a-z, 0-9, _ and -, at most 32, starting with a-z or _"
        )
    return name


def check_display_name(display_name: str) -> str:
    """The display name without surrounding space; ValidationFailed for control characters or too many."""
    display_name = unicodedata.normalize("NFC", display_name.strip())
    if len(display_name) > DISPLAY_NAME_MAX:
        raise _invalid("display_name", f"must be at most {DISPLAY_NAME_MAX} characters")
    if any(unicodedata.category(character) in ("Cc", "Cs", "Cn", "Zl", "Zp") for character in display_name):
        raise _invalid("display_name", "must not contain control characters")
    return display_name


def _invalid(field: str, message: str) -> ValidationFailed:
    return ValidationFailed(
        f"the {field} is refused", fields=[{"field": field, "code": "invalid", "message": message}]
    )


def find(name: str) -> User | None:
    """The account of that name, if there is one."""
    # not get_or_none: its exception takes time, which would tell a login who has no account
    found: User | None = User.select().where(User.name == name).first()
    return found


def find_by_uid(uid: int) -> User | None:
    """The account of that Linux uid, if there is one."""
    found: User | None = User.get_or_none(User.uid == uid)
    return found


def get(name: str) -> User:
    """The account of that name; NotFound when there is none."""
    user = find(name)
    if user is None:
        raise NotFound(f"there is no account {name}", hint="svc admin list-users")
    return user


def every() -> list[User]:
    """All accounts by name."""
    return list(User.select().order_by(User.name))


def create(
    name: str,
    *,
    uid: int | None = None,
    display_name: str = "",
    superuser: bool = False,
    provisioning: str = INCOMPLETE,
) -> User:
    """A new account row; NameTaken when the name or the uid has one.

    Its id was never another account's, also not one's that was removed: audit
    rows know their owner by it.
    """
    check_name(name)
    with write():
        for other in (find(name), find_by_uid(uid) if uid is not None else None):
            if other is not None:
                raise NameTaken(
                    f"there is an account {other.name} (uid {other.uid})", hint="svc admin list-users"
                )
        at = now()
        return User.create(
            id=_next_id(),
            name=name,
            uid=uid,
            display_name=check_display_name(display_name),
            superuser=superuser,
            provisioning=provisioning,
            created_at=at,
            updated_at=at,
        )


def _next_id() -> int:
    row = database.execute_sql(
        "SELECT 1 + max(coalesce(max(id), 0), coalesce((SELECT max(user_id) FROM audit), 0)) FROM users"
    ).fetchone()
    return int(row[0])


def update(user: User, **changes: Any) -> None:
    """Write these columns of the row, and the time."""
    with write():
        User.update(updated_at=now(), **changes).where(User.id == user.id).execute()
    for name, value in changes.items():
        setattr(user, name, value)


def remove(user: User) -> None:
    """Take away a row that nothing refers to."""
    with write():
        User.delete().where(User.id == user.id).execute()


def set_password(user: User, password_hash: str, password_length: int) -> Ended:
    """Rotate the service password (the Linux password is another thing), which ends sessions and tokens.

    It opens a login that was closed: for a password too short, or after too many wrong ones.
    Raises Conflict when the account has become another or a superuser's since it was read,
    and with it the rules that the password was held against.
    """
    with write():
        today = find(user.name)
        if today is None or (today.id, today.superuser) != (user.id, user.superuser):
            raise Conflict(f"the account {user.name} was changed just now; try again")
        update(
            user,
            password_hash=password_hash,
            password_length=password_length,
            password_closed=False,
            failed_logins=0,
        )
        throttle.forget_user(user.name)
        return end_access(user.id)


def end_access(user_id: int) -> Ended:
    """End all sessions and tokens of a user, in the transaction of whatever is the reason; how many."""
    with write():
        return Ended(sessions.end_all(user_id), tokens.revoke_all(user_id))


def record(user: User) -> dict[str, Any]:
    """The account as `svc admin list-users --json` shows it; the password itself never leaves the row."""
    return {
        "name": user.name,
        "uid": user.uid,
        "display_name": user.display_name,
        "superuser": bool(user.superuser),
        "disabled": bool(user.disabled),
        "status": status_name(user),
        "note": user.provisioning_note,
        "has_password": user.password_hash is not None,
        "password_closed": bool(user.password_closed),
        "quota": user.quota_id,
        "created_at": user.created_at,
        "updated_at": user.updated_at,
    }


def status_name(user: User) -> str:
    """READY, DISABLED, PROVISIONING_INCOMPLETE or PROVISIONING_CLEANUP_REQUIRED."""
    if user.provisioning == CLEANUP:
        return "PROVISIONING_CLEANUP_REQUIRED"
    if user.provisioning == INCOMPLETE:
        return "PROVISIONING_INCOMPLETE"
    return "DISABLED" if user.disabled else "READY"


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
    failed_logins: int


_ACCOUNT = "SELECT id, name, uid, display_name, superuser, disabled, provisioning, failed_logins FROM users"
_SORT = {"name": "name", "uid": "uid", "created_at": "created_at"}


def account_of_uid(uid: int) -> Account | None:
    """The account of the uid that the kernel gave, for every request on the host socket."""
    row = database.execute_sql(f"{_ACCOUNT} WHERE uid = ?", (uid,)).fetchone()
    return Account(*row) if row else None


def account_of_id(user_id: int) -> Account | None:
    """The account that a session or a token belongs to."""
    row = database.execute_sql(f"{_ACCOUNT} WHERE id = ?", (user_id,)).fetchone()
    return Account(*row) if row else None


def acting_for(user_id: int, helper: Asks, rid: str) -> Caller:
    """The caller as whom the worker goes on with a user's operation; raises AccountDisabled, NotFound."""
    account = account_of_id(user_id)
    if account is None:
        raise NotFound("the operation's owner is gone")
    if account.disabled or account.provisioning != READY:
        raise AccountDisabled(f"the account {account.name} is disabled or incomplete")
    return Caller("worker", account.id, account.name, account.uid, False, rid, "", helper)


def owner_id(caller: Caller, owner: str | None) -> int:
    """The id behind `?owner=`, the caller's own without one; anybody else's is for administrators."""
    if owner is None or owner == caller.name:
        return caller.user_id
    if caller.kind == "pat":
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
