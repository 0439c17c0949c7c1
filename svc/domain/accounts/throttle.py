"""Login throttle: failures are counted in the database, before anything is hashed.

There is one count for each user name and one for each address (an IPv6 address by
its /64), stored under a keyed digest because a mistyped name may be a password.
Either count alone is enough to refuse an attempt.
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

PRUNED_AT_ONCE = 20  # rows; each attempt adds two

_NEWEST = "DELETE FROM login_failures WHERE rowid = (SELECT max(rowid) FROM login_failures WHERE subject = ?)"


def subject(kind: str, name: str) -> str:
    """The digest under which the failures of a user or an address are stored."""
    return hmac.new(keys.derived(b"login failures"), f"{kind}:{name}".encode(), hashlib.sha256).hexdigest()


def network(address: str) -> str:
    """The network of one client: an IPv4 address, also from its IPv6 mapping, or a /64."""
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
    """Count an attempt as a failure of the user and of the address before the password is verified.

    Raises TooManyRequests (retry_after_s) when either already has
    LOGIN_FAILURES_MAX within LOGIN_WINDOW_S; a refused attempt is not counted.
    Unknown and known names cause the same statements.
    """
    user, client = _subjects(name, address)
    with write():
        at = now()  # inside the transaction, so that rows are in the order of their times
        _prune(user, client, at)
        wait_s = max(_wait_s(user, at), _wait_s(client, at))
        if not wait_s:
            database.execute_sql("INSERT INTO login_failures VALUES (?, ?), (?, ?)", (user, at, client, at))
            database.execute_sql("UPDATE users SET failed_logins = failed_logins + 1 WHERE name = ?", (name,))
    if wait_s:
        raise TooManyRequests("too many wrong logins; wait before the next one", retry_after_s=wait_s)


def forgive(name: str, address: str) -> None:
    """After a success: delete the user's failures, and this attempt's of the address."""
    with write():
        forget_user(name)
        database.execute_sql(_NEWEST, (subject("address", network(address)),))


def withdraw(name: str, address: str) -> None:
    """Undo `enter` for an attempt that was refused before its hash."""
    with write():
        for digest in _subjects(name, address):
            database.execute_sql(_NEWEST, (digest,))
        database.execute_sql(
            "UPDATE users SET failed_logins = max(failed_logins - 1, 0) WHERE name = ?", (name,)
        )


def forget_user(name: str) -> None:
    """Delete a user's failures, also those in a row (a password reset, a call on the host socket)."""
    with write():
        database.execute_sql("DELETE FROM login_failures WHERE subject = ?", (subject("user", name),))
        database.execute_sql("UPDATE users SET failed_logins = 0 WHERE name = ?", (name,))


def _subjects(name: str, address: str) -> tuple[str, str]:
    return subject("user", name), subject("address", network(address))


def _prune(user: str, client: str, at: str) -> None:
    """Delete expired rows, oldest first, and set the time of rows from the future to now.

    After the clock was set back, failures still count, but for no longer than one window.
    """
    oldest = f"rowid IN (SELECT rowid FROM login_failures ORDER BY rowid LIMIT {PRUNED_AT_ONCE})"
    database.execute_sql(
        f"UPDATE login_failures SET at = ? WHERE at > ? AND (subject IN (?, ?) OR {oldest})",
        (at, at, user, client),
    )
    database.execute_sql(
        f"DELETE FROM login_failures WHERE at <= ? AND {oldest}", (after(at, -LOGIN_WINDOW_S),)
    )


def _wait_s(digest: str, at: str) -> int:
    """Whole seconds until the next attempt is allowed, 0 if it is allowed now."""
    row = database.execute_sql(
        "SELECT at FROM login_failures WHERE subject = ? AND at > ? ORDER BY at DESC LIMIT 1 OFFSET ?",
        (digest, after(at, -LOGIN_WINDOW_S), LOGIN_FAILURES_MAX - 1),
    ).fetchone()
    if row is None:
        return 0
    ends_at = datetime.fromisoformat(after(row[0], LOGIN_WINDOW_S))
    return math.ceil((ends_at - datetime.fromisoformat(at)).total_seconds())
