"""Sessions of browsers: a row per login, opened by two secrets that only the browser has.

One travels in a cookie, which every app on this host's other ports would get
too; the other in a header, which only the page that logged in knows. Of both
the database has only a digest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from svc.db.connect import database, write
from svc.errors import NotAvailable


class Secrets(NamedTuple):
    """What the browser is given once: the cookie's value (signed) and the header's."""

    cookie: str
    header: str


def begin(user_id: int, address: str) -> tuple[str, Secrets]:
    """A new session for a user who has just proved a password: its id and its secrets.

    Beyond SESSIONS_PER_USER the user's oldest session ends.
    """
    raise NotAvailable("sessions")


def user_of(cookie: str, header: str) -> tuple[str, int] | None:
    """The session's id and its user's, when both secrets are right and it has not ended; else None.

    Notes the use. A session ends SESSION_IDLE_S after its last use and
    SESSION_MAX_S after it began (a superuser's sooner), and its row with it.
    """
    raise NotAvailable("sessions")


def get(session_id: str) -> dict[str, Any]:
    """The record {id, address, created_at, last_used_at, idle_ends_at, ends_at}; raises NotFound."""
    raise NotAvailable("sessions")


def end(session_id: str) -> None:
    """End one session (logout)."""
    raise NotAvailable("sessions")


def end_all(user_id: int) -> int:
    """End a user's sessions ("A password change or reset ends all sessions and tokens"); how many."""
    with write():
        return database.execute_sql("DELETE FROM sessions WHERE user_id = ?", (user_id,)).rowcount
