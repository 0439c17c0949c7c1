"""How often a login may be wrong: counted before anything is hashed, in the database.

Counted are subjects, `user:NAME` and `address:IP` (an IPv6 address by its /64),
under a keyed digest: what was typed as a name may have been a password.
"""

from __future__ import annotations

import hashlib
import hmac

from svc.db.connect import database, write
from svc.domain import keys
from svc.errors import NotAvailable


def subject(kind: str, what: str) -> str:
    """The digest that a user's or an address's failures are kept under."""
    return hmac.new(keys.derived(b"login failures"), f"{kind}:{what}".encode(), hashlib.sha256).hexdigest()


def enter(name: str, address: str) -> None:
    """Count a try as a failure, for the user and for the address, before it is tried.

    Raises TooManyRequests (retry_after_s) when either already has
    LOGIN_FAILURES_MAX within LOGIN_WINDOW_S; such a try is not counted again.
    """
    raise NotAvailable("logins")


def forgive(name: str, address: str) -> None:
    """The try was a success: forget the user's failures, and this one of the address."""
    raise NotAvailable("logins")


def forget_user(name: str) -> None:
    """Forget a user's failures, also those in a row (a password reset, a call on the host socket)."""
    with write():
        database.execute_sql("DELETE FROM login_failures WHERE subject = ?", (subject("user", name),))
        database.execute_sql("UPDATE users SET failed_logins = 0 WHERE name = ?", (name,))
