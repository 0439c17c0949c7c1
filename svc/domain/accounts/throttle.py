"""How often a login may be wrong: counted before anything is hashed, in the database.

Counted are subjects, `user:NAME` and `address:IP` (an IPv6 address by its /64),
under a keyed digest: what was typed as a name may have been a password. Each
of the two is by itself enough to have to wait.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
from datetime import datetime

from svc.db.connect import database, write
from svc.db.ids import after, now
from svc.domain.accounts import keys
from svc.errors import TooManyRequests
from svc.limits import LOGIN_FAILURES_MAX, LOGIN_WINDOW_S

TIDIED_AT_ONCE = 20  # rows; each try adds two

_NEWEST = "DELETE FROM login_failures WHERE rowid = (SELECT max(rowid) FROM login_failures WHERE subject = ?)"


def subject(kind: str, what: str) -> str:
    """The digest that a user's or an address's failures are kept under."""
    return hmac.new(keys.derived(b"login failures"), f"{kind}:{what}".encode(), hashlib.sha256).hexdigest()


def network(address: str) -> str:
    """What one client has: an IPv4 address, also when IPv6 carries it, or a /64."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))


def enter(name: str, address: str) -> None:
    """Count a try as a failure, for the user and for the address, before it is tried.

    Raises TooManyRequests (retry_after_s) when either already has
    LOGIN_FAILURES_MAX within LOGIN_WINDOW_S; such a try is not counted again.
    An unknown name costs the same statements as a known one.
    """
    user, client = _subjects(name, address)
    with write():
        at = now()  # with the write lock held: tries are counted in the order of their times
        _tidy(user, client, at)
        wait_s = max(_wait_s(user, at), _wait_s(client, at))
        if not wait_s:
            database.execute_sql("INSERT INTO login_failures VALUES (?, ?), (?, ?)", (user, at, client, at))
            database.execute_sql("UPDATE users SET failed_logins = failed_logins + 1 WHERE name = ?", (name,))
    if wait_s:
        raise TooManyRequests("too many wrong logins; wait before the next one", retry_after_s=wait_s)


def forgive(name: str, address: str) -> None:
    """The try was a success: forget the user's failures, and this one of the address."""
    with write():
        forget_user(name)
        database.execute_sql(_NEWEST, (subject("address", network(address)),))


def withdraw(name: str, address: str) -> None:
    """The try was not made after all (no hash was to be had): as if it had never entered."""
    with write():
        for what in _subjects(name, address):
            database.execute_sql(_NEWEST, (what,))
        database.execute_sql(
            "UPDATE users SET failed_logins = max(failed_logins - 1, 0) WHERE name = ?", (name,)
        )


def forget_user(name: str) -> None:
    """Forget a user's failures, also those in a row (a password reset, a call on the host socket)."""
    with write():
        database.execute_sql("DELETE FROM login_failures WHERE subject = ?", (subject("user", name),))
        database.execute_sql("UPDATE users SET failed_logins = 0 WHERE name = ?", (name,))


def _subjects(name: str, address: str) -> tuple[str, str]:
    return subject("user", name), subject("address", network(address))


def _tidy(user: str, client: str, at: str) -> None:
    """Remove what is too old, from the oldest rows on; a row from the future becomes one of now.

    So a clock that was set back opens nothing, and keeps nothing closed for
    longer than one window.
    """
    oldest = f"rowid IN (SELECT rowid FROM login_failures ORDER BY rowid LIMIT {TIDIED_AT_ONCE})"
    database.execute_sql(
        f"UPDATE login_failures SET at = ? WHERE at > ? AND (subject IN (?, ?) OR {oldest})",
        (at, at, user, client),
    )
    database.execute_sql(
        f"DELETE FROM login_failures WHERE at <= ? AND {oldest}", (after(at, -LOGIN_WINDOW_S),)
    )


def _wait_s(what: str, at: str) -> int:
    """Whole seconds until the subject may try again, 0 for now: until one failure too many is over."""
    row = database.execute_sql(
        "SELECT at FROM login_failures WHERE subject = ? AND at > ? ORDER BY at DESC LIMIT 1 OFFSET ?",
        (what, after(at, -LOGIN_WINDOW_S), LOGIN_FAILURES_MAX - 1),
    ).fetchone()
    if row is None:
        return 0
    ends_at = datetime.fromisoformat(after(row[0], LOGIN_WINDOW_S))
    return math.ceil((ends_at - datetime.fromisoformat(at)).total_seconds())
