"""App sessions: one row for each browser that is signed in to an app, with a secret that only it has.

The secret is a cookie of the app's own address, and opens that app there and nothing else. A row ends with
the session that it came from, with a new password of the account, with the account, the workspace and the
port; by itself as sessions do.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from svc.db.connect import database, write
from svc.db.faults import UNWRITABLE
from svc.domain.accounts import keys, sessions
from svc.domain.accounts.tickets import Holder
from svc.host.ids import after, new_id, now
from svc.limits import APP_SESSIONS_PER_USER, CLOCK_AHEAD_S, USE_NOTED_S

SECRET_BYTES = 32
_FORM = re.compile(r"[A-Za-z0-9_-]{43}")

_WHERE = "cookie_hash = ? AND workspace_id = ? AND port = ? AND origin = ?"
_SELECT = (
    "SELECT a.id, a.user_id, a.kind, a.credential, a.created_at, a.last_used_at, u.superuser"
    " FROM app_sessions AS a JOIN users AS u ON u.id = a.user_id"
    f" WHERE {_WHERE}"
)


class Where(NamedTuple):
    """An app at an address: what a cookie opens."""

    workspace_id: str
    port: str
    origin: str


class Visit(NamedTuple):
    """A row that has not ended."""

    id: str
    user_id: int
    kind: str
    credential: str
    created_at: str
    last_used_at: str
    superuser: int


def begin(holder: Holder, where: Where, address: str) -> tuple[str, str]:
    """Sign the holder of a ticket in; the id of the row, and the cookie's value.

    Beyond APP_SESSIONS_PER_USER the account's oldest one ends.
    """
    value = secrets.token_urlsafe(SECRET_BYTES)
    visit_id, at = new_id("app"), now()
    with write():
        database.execute_sql(
            "INSERT INTO app_sessions"
            " (id, cookie_hash, user_id, kind, credential, workspace_id, port, origin, address, created_at,"
            " last_used_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                visit_id, keys.digest(value), holder.user_id, holder.kind, holder.credential, *where, address,
                at, at,
            ),
        )  # fmt: skip
        database.execute_sql(
            "DELETE FROM app_sessions WHERE user_id = ? AND id NOT IN"
            " (SELECT id FROM app_sessions WHERE user_id = ? ORDER BY created_at DESC, rowid DESC LIMIT ?)",
            (holder.user_id, holder.user_id, APP_SESSIONS_PER_USER),
        )
    return visit_id, value


def find(untrusted: str, where: Where, *, background: bool = False) -> Visit | None:
    """Who is signed in there with this cookie, None if nobody is; records the use, unless `background`."""
    if not _FORM.fullmatch(untrusted):
        return None
    row = database.execute_sql(_SELECT, (keys.digest(untrusted), *where)).fetchone()
    if row is None:
        return None
    visit, at = Visit(*row), now()
    is_alive = sessions.is_within(visit.created_at, visit.last_used_at, visit.superuser, at)
    if not is_alive or (visit.kind == "session" and not sessions.is_open(visit.credential)):
        with suppress(*UNWRITABLE):
            _delete(visit.id)
        return None
    if not background:
        with suppress(*UNWRITABLE):
            _note_use(visit, at)
    return visit


def ended(ids: Sequence[str]) -> list[str]:
    """Those of these app sessions that are gone, and of these tokens that have ended."""
    marks = ", ".join("?" * len(ids))
    rows = database.execute_sql(
        f"SELECT id FROM app_sessions WHERE id IN ({marks})"
        f" UNION ALL SELECT id FROM tokens WHERE id IN ({marks}) AND ended_at IS NULL",
        (*ids, *ids),
    )
    found = {row[0] for row in rows}
    return [each for each in ids if each not in found]


def end(untrusted: str, where: Where) -> None:
    """Sign out; a cookie that opens nothing is no error."""
    if _FORM.fullmatch(untrusted):
        with write():
            database.execute_sql(f"DELETE FROM app_sessions WHERE {_WHERE}", (keys.digest(untrusted), *where))


def _delete(visit_id: str) -> None:
    with write():
        database.execute_sql("DELETE FROM app_sessions WHERE id = ?", (visit_id,))


def _note_use(visit: Visit, at: str) -> None:
    if after(visit.last_used_at, -CLOCK_AHEAD_S) < at < after(visit.last_used_at, USE_NOTED_S):
        return
    with write():
        database.execute_sql(
            "UPDATE app_sessions SET last_used_at = ? WHERE id = ? AND last_used_at = ?",
            (at, visit.id, visit.last_used_at),
        )
