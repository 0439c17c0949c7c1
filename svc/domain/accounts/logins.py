"""Logging in with the service password, and changing it: only through the TLS listener."""

from __future__ import annotations

import contextlib
import unicodedata
from typing import Any, NamedTuple

from svc.db.connect import write
from svc.domain import audit
from svc.domain.accounts import account_status, hashing, passwords, sessions, throttle, users
from svc.domain.accounts.sessions import Secrets
from svc.domain.accounts.users import Account
from svc.domain.principal import Asks, Caller
from svc.errors import (
    Conflict,
    PasswordResetRequired,
    SvcError,
    TooManyRequests,
    Unauthenticated,
    ValidationFailed,
)
from svc.limits import LOGIN_FAILURES_IN_A_ROW

WRONG = "the user name or the password is not right"
UNKNOWN = "(unknown)"  # what was typed as a name may have been a password: it is never written down
_COMPARED = ("id", "password_hash", "password_closed", "superuser", "disabled")


class Login(NamedTuple):
    """A login that succeeded."""

    secrets: Secrets
    session: dict[str, Any]  # as sessions.get
    user: Account


def log_in(name: str, password: str, *, address: str, helper: Asks, rid: str) -> Login:
    """Begin a session for whoever knows the password.

    In this order: the throttle, one hash (of nobody's password for an unknown
    name), the verdict. Raises TooManyRequests (also when too many wait for a hash),
    Unauthenticated (one text for a wrong name, a wrong password, no
    password), and only for a right password AccountDisabled, AccountIncomplete,
    PasswordResetRequired, or Conflict when the account changes meanwhile. An old
    hash is made anew. Every try that was hashed is audited.
    """
    user = users.find(name)  # with its failures in a row before this try
    right = _try(user, name, password, address)
    try:
        if user is None or not right:
            raise Unauthenticated(WRONG)
        account = users.find_by_id(user.id)
        if account is None:
            raise Unauthenticated(WRONG)
        account_status.require(account, helper, rid)
        if user.password_closed:
            raise PasswordResetRequired(
                "an administrator's password must be longer than this one",
                hint=f"sudo svc admin set-password {user.name}",
            )
        return _begin(user, _fresh_hash(user, password), address, rid)
    except SvcError as error:
        _note(user, address, rid, error.code)
        raise


def log_out(caller: Caller) -> None:
    """End the session that the caller came with."""
    with write():
        sessions.end(caller.credential)
        audit.add(caller, "auth.logout", caller.name, "ok")


def change_password(caller: Caller, current: str, new: str) -> None:
    """Change the caller's own password; "ends all sessions and tokens", this session too.

    Throttled as a login. Raises ValidationFailed, field `current_password` when
    that is wrong, `password` when the new one is refused.
    """
    user = users.get(caller.name)
    normalised = passwords.check(
        new, user=user.name, display_name=user.display_name, superuser=bool(user.superuser)
    )
    if not _try(user, user.name, current, caller.address):
        audit.add(caller, "auth.password", user.name, ValidationFailed.code)
        message = "is not the present password"
        raise ValidationFailed(
            f"current_password: {message}",
            fields=[{"field": "current_password", "code": "wrong", "message": message}],
        )
    hashed = hashing.hash_password(normalised)
    with write():
        _require_unchanged(user)
        users.set_password(user, hashed, len(normalised))
        audit.add(caller, "auth.password", user.name, "ok")


def _try(user: Account | None, name: str, password: str, address: str) -> bool:
    """Whether the password opens the account: counted first, and as long in the answer where nothing can.

    After LOGIN_FAILURES_IN_A_ROW nothing does, until the host itself says otherwise.
    """
    throttle.enter(name, address)
    is_open = user is not None and user.failed_logins < LOGIN_FAILURES_IN_A_ROW
    try:
        right = hashing.verify(password, user.password_hash if user is not None and is_open else None)
    except TooManyRequests:
        throttle.withdraw(name, address)  # it waits for a hash, and was no failure
        raise
    if right:
        throttle.forgive(name, address)
    return right


def _require_unchanged(user: Account) -> None:
    """Raise Conflict unless what the password was compared with still stands in this transaction."""
    today = users.find(user.name)
    if today is None or any(getattr(today, name) != getattr(user, name) for name in _COMPARED):
        raise Conflict("the account was changed just now; try again")


def _fresh_hash(user: Account, password: str) -> dict[str, Any]:
    """The columns that "existing passwords" of an older release get at a login; often none.

    When too many wait for a hash, the next login does it.
    """
    if not passwords.needs_rehash(user.password_hash):
        return {}
    normalised = unicodedata.normalize("NFKC", password)
    with contextlib.suppress(TooManyRequests):
        return {"password_hash": hashing.hash_password(normalised), "password_length": len(normalised)}
    return {}


def _begin(user: Account, fresh: dict[str, Any], address: str, rid: str) -> Login:
    """The session and its audit row, unless the password or the account changed since it was compared."""
    with write():
        _require_unchanged(user)
        if fresh:
            users.update(user, **fresh)
        session_id, secrets = sessions.begin(user.id, address)
        _note(user, address, rid, "ok", session=session_id)
        return Login(secrets, sessions.get(session_id), user)


def _note(user: Account | None, address: str, rid: str, outcome: str, **detail: str) -> None:
    """One audit row of a try; an account's owner sees the wrong ones too."""
    name = user.name if user is not None else UNKNOWN
    audit.append(
        user_id=user.id if user is not None else None,
        user_name=name,
        via="session",
        address=address,
        action="auth.login",
        target=name,
        outcome=outcome,
        rid=rid,
        detail=detail,
    )
