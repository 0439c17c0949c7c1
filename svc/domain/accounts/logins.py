"""Logins with the service password and changes of it, through the TLS listener only."""

from __future__ import annotations

import contextlib
import unicodedata
from typing import Any, NamedTuple

from svc.actions.table import AUTH_LOGIN, AUTH_LOGOUT, AUTH_PASSWORD
from svc.db.connect import write
from svc.domain.accounts import account_status, hashing, passwords, sessions, throttle, users
from svc.domain.accounts.sessions import Secrets
from svc.domain.accounts.users import Account
from svc.domain.audit import audit, budget
from svc.domain.principal import Caller
from svc.errors import (
    Conflict,
    PasswordResetRequired,
    SvcError,
    TooManyRequests,
    Unauthenticated,
    ValidationFailed,
    invalid_field,
)
from svc.helper.helper import Helper
from svc.limits import LOGIN_FAILURES_IN_A_ROW

WRONG = "the user name or the password is wrong"
UNKNOWN = "(unknown)"  # a mistyped name may be a password, so it is never recorded
_COMPARED = ("id", "password_hash", "password_closed", "superuser", "disabled")


class Login(NamedTuple):
    """A successful login."""

    secrets: Secrets
    session: dict[str, Any]  # as sessions.get
    user: Account


class Place(NamedTuple):
    """Where a login comes from: the client's address, and the name of its browser (browsers.py)."""

    address: str
    browser: str


def log_in(
    name: str,
    password: str,
    *,
    address: str,
    helper: Helper,
    rid: str,
    browser: str = "",
    client: str = "",
) -> Login:
    """Verify the password and begin a session.

    The order is throttle, one hash (a dummy for unknown names), account status. Attempts are counted
    for the `client`, or for that of the address.
    Raises TooManyRequests (also when too many logins wait for a hash),
    Unauthenticated (with one message for a wrong name, a wrong password and no
    password), and only for the right password AccountDisabled, AccountIncomplete,
    PasswordResetRequired, or Conflict when the account changes in between. Hashes of
    an earlier format are replaced. Every attempt that was hashed is audited.
    """
    user = users.find(name)  # read first: failed_logins without this attempt
    right = _attempt(user, name, password, client or address)
    try:
        if user is None or not right:
            raise Unauthenticated(WRONG)
        account = users.find_by_id(user.id)
        if account is None:
            raise Unauthenticated(WRONG)
        account_status.require(account, helper, rid)
        if user.password_closed:
            raise PasswordResetRequired(
                "this password is too short for an administrator",
                hint=f"sudo svc admin set-password {user.name}",
            )
        return _begin(user, _fresh_hash(user, password), Place(address, browser), rid)
    except SvcError as error:
        _note(user, address, rid, error.code)
        raise


def log_out(caller: Caller) -> None:
    """End the caller's session."""
    with audit.giving_back(caller), write():
        sessions.end(caller.credential)
        audit.add(caller, AUTH_LOGOUT, caller.name, "ok")


def change_password(caller: Caller, current: str, new: str) -> None:
    """Change the caller's own password; "ends all sessions and tokens", including this session.

    Throttled as a login is, before anything that takes long, but counted apart. Raises ValidationFailed
    with the field `current_password` when that is wrong, `password` when the new one is refused.
    """
    user = users.get(caller.name)
    if not _is_present(user, current):
        audit.add(caller, AUTH_PASSWORD, user.name, ValidationFailed.code)
        raise invalid_field("current_password", "wrong", "is not the current password")
    normalised = passwords.check(
        new, user=user.name, display_name=user.display_name, superuser=bool(user.superuser)
    )
    hashed = hashing.hash_password(user.name, normalised)
    with write():
        _require_unchanged(user)
        users.set_password(user, hashed, len(normalised))
        audit.add(caller, AUTH_PASSWORD, user.name, "ok")


def _is_present(user: Account, password: str) -> bool:
    """Whether this is the password of a user who has a session; counts it as wrong first.

    The count is the account's own: strangers' logins lock nobody out of a new password, and whoever
    took over a session has as many guesses as one address at the login.
    """
    throttle.enter_change(user.id)
    try:
        right = hashing.verify(user.name, password, user.password_hash)
    except TooManyRequests:
        throttle.withdraw_change(user.id)  # refused before hashing: not a failure
        raise
    if right:
        throttle.forgive_changes(user.id)
    return right


def _attempt(user: Account | None, name: str, password: str, client: str) -> bool:
    """Whether the password is right. Counts the attempt first, and always takes as long.

    After LOGIN_FAILURES_IN_A_ROW no password is right until the account is unlocked on the host,
    except where its user has logged in before.
    """
    is_known = throttle.enter(name, client)
    is_open = user is not None and (is_known or user.failed_logins < LOGIN_FAILURES_IN_A_ROW)
    try:
        stored = user.password_hash if user is not None and is_open else None
        right = hashing.verify(name, password, stored)
    except TooManyRequests:
        throttle.withdraw(name, client, is_known)  # refused before hashing: not a failure
        raise
    if right:
        throttle.forgive(name, client, is_known)
    return right


def _require_unchanged(user: Account) -> None:
    """Raise Conflict, inside a transaction, when the account changed since its password was verified."""
    today = users.find(user.name)
    if today is None or any(getattr(today, name) != getattr(user, name) for name in _COMPARED):
        raise Conflict("the account has just changed; try again")


def _fresh_hash(user: Account, password: str) -> dict[str, Any]:
    """The new columns for "existing passwords" of an older release; empty for all others.

    When too many logins wait for a hash, this is left to the next login.
    """
    if not passwords.needs_rehash(user.password_hash):
        return {}
    normalised = unicodedata.normalize("NFKC", password)
    with contextlib.suppress(TooManyRequests):
        return {
            "password_hash": hashing.hash_password(user.name, normalised),
            "password_length": len(normalised),
        }
    return {}


def _begin(user: Account, fresh: dict[str, Any], place: Place, rid: str) -> Login:
    """Begin the session and audit it, unless the account changed since its password was verified."""
    with write():
        _require_unchanged(user)
        if fresh:
            users.update(user, **fresh)
        session_id, secrets = sessions.begin(user.id, place.address, place.browser)
        _note(user, place.address, rid, "ok", session=session_id)
        return Login(secrets, sessions.get(session_id), user)


def _note(user: Account | None, address: str, rid: str, outcome: str, **detail: str) -> None:
    """Audit an attempt for the account; its owner can read failed attempts too.

    Attempts for no account are counted beyond the budget of all strangers.
    """
    user_id, name = (user.id, user.name) if user is not None else (None, UNKNOWN)
    if user is None and budget.is_spent(None):
        audit.count(budget.Who(None, name, "session"), AUTH_LOGIN, name, outcome)
        return
    actor = audit.Actor(user_id, name, "session", address)
    audit.append(actor, AUTH_LOGIN, name, outcome, rid, detail)
