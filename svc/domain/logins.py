"""Logging in with the service password, and changing it: only through the TLS door."""

from __future__ import annotations

from typing import Any, NamedTuple

from svc.domain.callers import Asks, Caller
from svc.domain.sessions import Secrets
from svc.errors import NotAvailable


class Login(NamedTuple):
    """A login that succeeded."""

    secrets: Secrets
    session: dict[str, Any]  # as sessions.get
    user: str


def log_in(name: str, password: str, *, address: str, helper: Asks, rid: str) -> Login:
    """Begin a session for whoever knows the password.

    In this order: the throttle, one hash (of nobody's password for an unknown
    name), the verdict. Raises TooManyRequests (also when too many wait for a hash),
    Unauthenticated (one text for a wrong name, a wrong password, no
    password), and only for a right password AccountDisabled, AccountIncomplete or
    PasswordResetRequired. An old hash is made anew. Every try that was hashed is audited.
    """
    raise NotAvailable("logins")


def log_out(caller: Caller) -> None:
    """End the session that the caller came with."""
    raise NotAvailable("logins")


def change_password(caller: Caller, current: str, new: str) -> None:
    """Change the caller's own password; "ends all sessions and tokens", this session too.

    Throttled as a login. Raises ValidationFailed, field `current_password` when
    that is wrong, `password` when the new one is refused.
    """
    raise NotAvailable("logins")
