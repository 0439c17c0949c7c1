"""Login throttle: failures are counted in the database, before anything is hashed.

There is one count for each user name and one for each client (svc/domain/addresses.py), stored
under a keyed digest because a mistyped name may be a password. Either count alone is enough to
refuse an attempt. A user at a client where the user has logged in before has one count of its
own instead, so that failures of others lock out nobody from there. Wrong passwords in an open
session, which a change of the password asks for, have a count for each account, and so have the new
passwords, which take long to judge.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from datetime import datetime

from svc.db.connect import database, write
from svc.domain import addresses
from svc.domain.accounts import keys
from svc.errors import TooManyRequests
from svc.host.ids import after, now
from svc.limits import (
    LOGIN_FAILURES_MAX,
    LOGIN_PLACE_FAILURES,
    LOGIN_PLACE_S,
    LOGIN_PLACES_PER_USER,
    LOGIN_WINDOW_S,
    NEW_PASSWORDS_MAX,
)

PRUNED_AT_ONCE = 20  # rows; each attempt adds two

_NEWEST = "DELETE FROM login_failures WHERE rowid = (SELECT max(rowid) FROM login_failures WHERE subject = ?)"


def subject(kind: str, name: str) -> str:
    """The digest under which the failures of a user, a client or a user at a client are stored."""
    return hmac.new(keys.derived(b"login failures"), f"{kind}:{name}".encode(), hashlib.sha256).hexdigest()


def enter(name: str, address: str) -> bool:
    """Count an attempt as a failure before the password is verified.

    Returns whether the user has logged in from there before; then failures in a row from
    elsewhere do not count. Raises TooManyRequests (retry_after_s) when a count already has
    LOGIN_FAILURES_MAX within LOGIN_WINDOW_S; a refused attempt is not counted.
    Names that nobody has cause the same statements as others.
    """
    client = addresses.client_of(address)
    with write():
        at = now()  # inside the transaction, so that rows are in the order of their times
        is_known = _is_known(name, client, at)
        wait_s = _count(_subjects(name, client, is_known), at)
        if not wait_s:
            _add_to_row(name, client, is_known, 1)
    if wait_s:
        raise TooManyRequests("too many wrong logins; wait before the next one", retry_after_s=wait_s)
    return is_known


def forgive(name: str, address: str, is_known: bool) -> None:
    """After a success: delete the user's failures and what `enter`, which returned `is_known`, has counted.

    The client is remembered.
    """
    client = addresses.client_of(address)
    with write():
        forget_user(name)
        if not is_known:  # else its newest is somebody else's failure
            database.execute_sql(_NEWEST, (subject("client", client),))
        place = subject("place", f"{client} {name}")
        database.execute_sql("DELETE FROM login_failures WHERE subject = ?", (place,))
        _remember(name, client)


def withdraw(name: str, address: str, is_known: bool) -> None:
    """Undo `enter`, which returned `is_known`, for an attempt that was refused before its hash."""
    client = addresses.client_of(address)
    with write():
        for digest in _subjects(name, client, is_known):
            database.execute_sql(_NEWEST, (digest,))
        _add_to_row(name, client, is_known, -1)


def enter_change(user_id: int) -> None:
    """Count a change's present password as wrong, and its new one as judged, before they are; as `enter`.

    The caller has a session, so strangers cannot use up these counts, and no failures in a row add up.
    """
    with write():
        at = now()
        wait_s = _wait_s(_judged(user_id), at, NEW_PASSWORDS_MAX) or _count((_change(user_id),), at)
        if not wait_s:
            database.execute_sql("INSERT INTO login_failures VALUES (?, ?)", (_judged(user_id), at))
    if wait_s:
        message = "too many wrong passwords; wait before the next change"
        raise TooManyRequests(message, retry_after_s=wait_s)


def withdraw_change(user_id: int) -> None:
    """Undo `enter_change` for a password that was refused before its hash."""
    with write():
        for digest in (_change(user_id), _judged(user_id)):
            database.execute_sql(_NEWEST, (digest,))


def forgive_changes(user_id: int) -> None:
    """Delete the wrong present passwords that `enter_change` has counted: this one was right."""
    with write():
        database.execute_sql("DELETE FROM login_failures WHERE subject = ?", (_change(user_id),))


def forget_changes(user_id: int) -> None:
    """Delete all that `enter_change` has counted: there is another password."""
    with write():
        for digest in (_change(user_id), _judged(user_id)):
            database.execute_sql("DELETE FROM login_failures WHERE subject = ?", (digest,))


def forget_user(name: str) -> None:
    """Delete a user's failures, also those in a row (a password reset, a call on the host socket)."""
    with write():
        database.execute_sql("DELETE FROM login_failures WHERE subject = ?", (subject("user", name),))
        database.execute_sql("UPDATE users SET failed_logins = 0 WHERE name = ?", (name,))


def forget_places(user_id: int) -> None:
    """Forget where a user has logged in (another password: whoever had the last one may have been there)."""
    with write():
        database.execute_sql("DELETE FROM login_places WHERE user_id = ?", (user_id,))


def _change(user_id: int) -> str:
    return subject("change", str(user_id))


def _judged(user_id: int) -> str:
    return subject("judged", str(user_id))


def _subjects(name: str, client: str, is_known: bool) -> tuple[str, ...]:
    if is_known:
        return (subject("place", f"{client} {name}"),)
    return subject("user", name), subject("client", client)


def _is_known(name: str, client: str, at: str) -> bool:
    """Whether the user has logged in from there in LOGIN_PLACE_S, with few failures in a row since."""
    return (
        database.execute_sql(
            "SELECT 1 FROM login_places AS p JOIN users AS u ON u.id = p.user_id"
            " WHERE u.name = ? AND p.client = ? AND p.at > ? AND p.failures < ?",
            (name, client, after(at, -LOGIN_PLACE_S), LOGIN_PLACE_FAILURES),
        ).fetchone()
        is not None
    )


def _add_to_row(name: str, client: str, is_known: bool, count: int) -> None:
    """Add to the failures in a row: those from a known client are its own."""
    if is_known:
        database.execute_sql(
            "UPDATE login_places SET failures = max(failures + ?, 0)"
            " WHERE client = ? AND user_id = (SELECT id FROM users WHERE name = ?)",
            (count, client, name),
        )
        return
    database.execute_sql(
        "UPDATE users SET failed_logins = max(failed_logins + ?, 0) WHERE name = ?", (count, name)
    )


def _remember(name: str, client: str) -> None:
    """The user has just logged in from there; of each user the newest LOGIN_PLACES_PER_USER are kept."""
    database.execute_sql(
        "INSERT INTO login_places (user_id, client, at) SELECT id, ?, ? FROM users WHERE name = ?"
        " ON CONFLICT (user_id, client) DO UPDATE SET at = excluded.at, failures = 0",
        (client, now(), name),
    )
    database.execute_sql(
        "DELETE FROM login_places WHERE user_id = (SELECT id FROM users WHERE name = ?) AND client NOT IN"
        " (SELECT client FROM login_places WHERE user_id = (SELECT id FROM users WHERE name = ?)"
        " ORDER BY at DESC LIMIT ?)",
        (name, name, LOGIN_PLACES_PER_USER),
    )


def _count(subjects: tuple[str, ...], at: str) -> int:
    """Add a failure of each subject, unless one has as many as may be; returns the seconds to wait, or 0."""
    _prune(subjects, at)
    wait_s = max(_wait_s(digest, at) for digest in subjects)
    if not wait_s:
        for digest in subjects:
            database.execute_sql("INSERT INTO login_failures VALUES (?, ?)", (digest, at))
    return wait_s


def _prune(subjects: tuple[str, ...], at: str) -> None:
    """Delete expired rows, oldest first, and set the time of rows from the future to now.

    After the clock was set back, failures still count, but for no longer than one window.
    """
    oldest = f"rowid IN (SELECT rowid FROM login_failures ORDER BY rowid LIMIT {PRUNED_AT_ONCE})"
    database.execute_sql(
        f"UPDATE login_failures SET at = ? WHERE at > ? AND (subject IN (?, ?) OR {oldest})",
        (at, at, subjects[0], subjects[-1]),
    )
    database.execute_sql(
        f"DELETE FROM login_failures WHERE at <= ? AND {oldest}", (after(at, -LOGIN_WINDOW_S),)
    )


def _wait_s(digest: str, at: str, most: int = LOGIN_FAILURES_MAX) -> int:
    """Whole seconds until the next attempt is allowed, 0 if it is allowed now."""
    row = database.execute_sql(
        "SELECT at FROM login_failures WHERE subject = ? AND at > ? ORDER BY at DESC LIMIT 1 OFFSET ?",
        (digest, after(at, -LOGIN_WINDOW_S), most - 1),
    ).fetchone()
    if row is None:
        return 0
    ends_at = datetime.fromisoformat(after(row[0], LOGIN_WINDOW_S))
    return math.ceil((ends_at - datetime.fromisoformat(at)).total_seconds())
