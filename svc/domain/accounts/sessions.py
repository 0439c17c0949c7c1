"""Browser sessions: one row for each login, with two secrets that only the browser has.

One is sent in a cookie, which browsers also send to the apps on other ports of this
host; the other in a header, which only the page that logged in can set. The
database has digests of both.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import secrets
from typing import Any, NamedTuple

from itsdangerous import BadSignature, Signer

from svc.actions.table import AUTH_SESSION_END
from svc.db.connect import database, write
from svc.db.faults import UNWRITABLE
from svc.domain import pages
from svc.domain.accounts import keys
from svc.domain.audit import audit
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.errors import NotFound
from svc.host.ids import after, new_id, now
from svc.limits import (
    CLOCK_AHEAD_S,
    SESSION_IDLE_S,
    SESSION_IDLE_SUPERUSER_S,
    SESSION_MAX_S,
    SESSION_MAX_SUPERUSER_S,
    SESSIONS_PER_USER,
    USE_NOTED_S,
)

SECRET_BYTES = 32  # of each secret: 256 random bits cannot be guessed, so a fast digest is enough

_SESSION = (
    "SELECT s.id, s.user_id, s.header_hash, s.address, s.browser, s.created_at, s.last_used_at, u.superuser"
    " FROM sessions AS s JOIN users AS u ON u.id = s.user_id WHERE "
)
_SORT = {"created_at": "s.created_at", "last_used_at": "s.last_used_at"}


class Secrets(NamedTuple):
    """The two secrets for the browser: the signed value of the cookie, and the value of the header."""

    cookie: str
    header: str

    def __repr__(self) -> str:  # keeps them out of logs and tracebacks
        return "Secrets(...)"


class _Row(NamedTuple):
    id: str
    user_id: int
    header_hash: str
    address: str
    browser: str
    created_at: str
    last_used_at: str
    superuser: int


def begin(user_id: int, address: str, browser: str = "") -> tuple[str, Secrets]:
    """Create a session after a successful login; returns its id and its secrets.

    `browser` is a name of browsers.py.
    Beyond SESSIONS_PER_USER the user's oldest session ends.
    """
    value, header = secrets.token_urlsafe(SECRET_BYTES), secrets.token_urlsafe(SECRET_BYTES)
    session_id, at = new_id("ses"), now()
    with write():
        _delete_ended()
        database.execute_sql(
            "INSERT INTO sessions"
            " (id, user_id, cookie_hash, header_hash, address, browser, created_at, last_used_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (session_id, user_id, keys.digest(value), keys.digest(header), address, browser, at, at),
        )
        database.execute_sql(
            "DELETE FROM sessions WHERE user_id = ? AND id NOT IN"
            " (SELECT id FROM sessions WHERE user_id = ? ORDER BY created_at DESC, rowid DESC LIMIT ?)",
            (user_id, user_id, SESSIONS_PER_USER),
        )
    return session_id, Secrets(_signer().sign(value).decode(), header)


def user_of(cookie: str, header: str, *, background: bool = False) -> tuple[str, int] | None:
    """The ids of the session and of its user if both secrets are right and it has not ended, else None.

    Records the use, unless the page sent the request by itself (`background`): a tab
    that nobody looks at becomes idle. A session ends SESSION_IDLE_S after its last use and
    SESSION_MAX_S after its begin (earlier for superusers); its row is then deleted.
    """
    try:
        value = _signer().unsign(cookie).decode()
    except (BadSignature, UnicodeDecodeError):
        return None
    row = _find("s.cookie_hash = ?", keys.digest(value))
    if row is None:
        return None
    at = now()
    # Where the database cannot be written to, reading must still work: the write is left to the next use.
    unless_full = contextlib.suppress(*UNWRITABLE)
    if not _is_alive(row, at):
        with unless_full:
            end(row.id)
        return None
    if not hmac.compare_digest(row.header_hash, keys.digest(header)):
        return None
    if not background:
        with unless_full:
            _note_use(row, at)
    return row.id, row.user_id


def is_open(session_id: str) -> bool:
    """Whether a session has not ended; this does not count as a use of it."""
    row = _find("s.id = ?", session_id)
    return row is not None and _is_alive(row, now())


def get(session_id: str) -> dict[str, Any]:
    """The record of one session; raises NotFound."""
    row = _find("s.id = ?", session_id)
    if row is None:
        raise NotFound("there is no such session")
    return _record(row)


def page_of(caller: Caller, page: Page) -> dict[str, Any]:
    """One page of the caller's sessions that have not ended, the last used first.

    Each is the record with `current`: whether it is the one that asks.
    """
    at = now()
    found, values = pages.matching(page, ("s.address", "s.browser"))
    order = pages.order_by(page, _SORT, "-last_used_at", "s.id")
    rows = database.execute_sql(
        f"{_SESSION}s.user_id = ? AND {found} ORDER BY {order}", (caller.user_id, *values)
    )
    alive = [row for row in map(_Row._make, rows.fetchall()) if _is_alive(row, at)]  # SESSIONS_PER_USER
    return pages.cut(page, [_record(row) | {"current": row.id == caller.credential} for row in alive])


def end_own(caller: Caller, session_id: str) -> None:
    """End one of the caller's sessions, also the present one; raises NotFound."""
    with audit.giving_back(caller), write():
        ended = database.execute_sql(
            "DELETE FROM sessions WHERE id = ? AND user_id = ?", (session_id, caller.user_id)
        ).rowcount
        if not ended:
            raise NotFound("there is no such session", hint="svc api GET /api/auth/sessions")
        audit.add(caller, AUTH_SESSION_END, session_id, "ok")


def end_others(caller: Caller) -> int:
    """End the caller's sessions except the one that asks; returns their number."""
    with audit.giving_back(caller), write():
        ended = database.execute_sql(
            "DELETE FROM sessions WHERE user_id = ? AND id <> ?", (caller.user_id, caller.credential)
        ).rowcount
        audit.add(caller, AUTH_SESSION_END, caller.name, "ok", ended=ended)
    return ended


def end(session_id: str) -> None:
    """End one session (logout)."""
    with write():
        database.execute_sql("DELETE FROM sessions WHERE id = ?", (session_id,))


def end_all(user_id: int) -> int:
    """End a user's sessions ("A password change or reset ends all sessions and tokens"); their number."""
    with write():
        return database.execute_sql("DELETE FROM sessions WHERE user_id = ?", (user_id,)).rowcount


def _record(row: _Row) -> dict[str, Any]:
    """{id, address, browser, created_at, last_used_at, idle_ends_at, ends_at}; no secret, no digest."""
    idle_s, most_s = _lifetime(row.superuser)
    ends_at = after(row.created_at, most_s)
    return {
        "id": row.id, "address": row.address, "browser": row.browser, "created_at": row.created_at,
        "last_used_at": row.last_used_at, "idle_ends_at": min(after(row.last_used_at, idle_s), ends_at),
        "ends_at": ends_at,
    }  # fmt: skip


def _signer() -> Signer:
    key = keys.derived(b"session cookies")
    return Signer(key, salt=b"svc session", key_derivation="hmac", digest_method=hashlib.sha256)


def _find(condition: str, value: str) -> _Row | None:
    row = database.execute_sql(_SESSION + condition, (value,)).fetchone()
    return _Row(*row) if row else None


def _lifetime(superuser: int) -> tuple[int, int]:
    """The maximum idle time and the maximum age of a session, by the user's present superuser flag."""
    if superuser:
        return SESSION_IDLE_SUPERUSER_S, SESSION_MAX_SUPERUSER_S
    return SESSION_IDLE_S, SESSION_MAX_S


def _bounds(superuser: int, at: str) -> tuple[str, str, str]:
    """The earliest and the latest begin of a valid session, and its earliest last use.

    A session with a begin in the future predates a change of the clock, so its age is unknown.
    """
    idle_s, most_s = _lifetime(superuser)
    return after(at, -most_s), after(at, CLOCK_AHEAD_S), after(at, -idle_s)


def is_within(created_at: str, last_used_at: str, superuser: int, at: str) -> bool:
    """Whether a session of those times has not ended by itself."""
    began_after, began_until, used_after = _bounds(superuser, at)
    return began_after < created_at <= began_until and last_used_at > used_after


def _is_alive(row: _Row, at: str) -> bool:
    return is_within(row.created_at, row.last_used_at, row.superuser, at)


def _delete_ended() -> None:
    """Delete all sessions that have ended, since most browsers never return."""
    at = now()
    for superuser in (0, 1):
        database.execute_sql(
            "DELETE FROM sessions WHERE user_id IN (SELECT id FROM users WHERE superuser = ?)"
            " AND NOT (created_at > ? AND created_at <= ? AND last_used_at > ?)",
            (superuser, *_bounds(superuser, at)),
        )


def _note_use(row: _Row, at: str) -> None:
    if after(row.last_used_at, -CLOCK_AHEAD_S) < at < after(row.last_used_at, USE_NOTED_S):
        return
    with write():
        database.execute_sql(
            "UPDATE sessions SET last_used_at = ? WHERE id = ? AND last_used_at = ?",
            (at, row.id, row.last_used_at),
        )
