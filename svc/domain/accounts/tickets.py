"""One-time tickets: a plain link or a WebSocket of a page carries one where it can send no header.

A ticket opens one thing (a purpose and a subject) once, within TICKET_S or as long as its purpose has it,
for the account and by the session, token or peer that it was issued to. The database has a digest of it.
It ends with its session or token, and when the account is disabled (triggers of
schema/migrations/0009_tickets.sql).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import Any, NamedTuple

from svc.db.connect import database, write
from svc.domain.accounts import keys
from svc.domain.principal import Caller
from svc.errors import TooManyRequests
from svc.host.ids import after, now
from svc.limits import TICKET_LONGEST_S, TICKET_S, TICKETS_PER_USER

MARK = "svc_tkt_"  # by which the log redacts it
SECRET_BYTES = 32
_COLUMNS = "kind, credential, user_id, purpose, subject, expires_at"
_FORM = re.compile(f"{MARK}[0-9a-f]{{{2 * SECRET_BYTES}}}")


class Ticket(NamedTuple):
    """A new ticket, with its secret, and when it expires."""

    secret: str
    expires_at: str

    def __repr__(self) -> str:  # keeps it out of logs and tracebacks
        return "Ticket(...)"


class Holder(NamedTuple):
    """To whom a redeemed ticket was issued: a kind of Caller, the id of its credential, its account."""

    kind: str
    credential: str
    user_id: int


def issue(caller: Caller, purpose: str, subject: str, lifetime_s: int = TICKET_S) -> Ticket:
    """Issue a ticket of the caller; raises TooManyRequests beyond TICKETS_PER_USER unused ones."""
    secret, at = MARK + secrets.token_hex(SECRET_BYTES), now()
    expires_at = after(at, lifetime_s)
    with write():
        database.execute_sql(
            "DELETE FROM tickets WHERE expires_at <= ? OR expires_at > ?", (at, after(at, TICKET_LONGEST_S))
        )
        row = database.execute_sql("SELECT count(*) FROM tickets WHERE user_id = ?", (caller.user_id,))
        if row.fetchone()[0] >= TICKETS_PER_USER:
            raise TooManyRequests(
                f"you have {TICKETS_PER_USER} tickets that were not used yet", retry_after_s=lifetime_s
            )
        database.execute_sql(
            "INSERT INTO tickets (secret_hash, user_id, kind, credential, purpose, subject, expires_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                keys.digest(secret), caller.user_id, caller.kind, caller.credential, purpose,
                _digest(subject), expires_at,
            ),
        )  # fmt: skip
    return Ticket(secret, expires_at)


def redeem(untrusted: str, purpose: str, subject: str, lifetime_s: int = TICKET_S) -> Holder | None:
    """The holder of a ticket for this purpose and subject, else None; either way it opens nothing more."""
    if not _FORM.fullmatch(untrusted) or not _is_known(untrusted):
        return None
    with write():
        rows = database.execute_sql(
            f"DELETE FROM tickets WHERE secret_hash = ? RETURNING {_COLUMNS}", (keys.digest(untrusted),)
        ).fetchall()
    return _fitting(rows[0], purpose, subject, lifetime_s) if rows else None


def holder_of(untrusted: str, purpose: str, subject: str, lifetime_s: int = TICKET_S) -> Holder | None:
    """As redeem(), but the ticket still opens what it opens."""
    if not _FORM.fullmatch(untrusted):
        return None
    row = database.execute_sql(
        f"SELECT {_COLUMNS} FROM tickets WHERE secret_hash = ?", (keys.digest(untrusted),)
    ).fetchone()
    return _fitting(row, purpose, subject, lifetime_s) if row else None


def _is_known(untrusted: str) -> bool:
    """Whether there is such a ticket: whoever makes some up keeps nobody waiting for the database's lock."""
    row = database.execute_sql("SELECT 1 FROM tickets WHERE secret_hash = ?", (keys.digest(untrusted),))
    return row.fetchone() is not None


def _fitting(row: tuple[Any, ...], purpose: str, subject: str, lifetime_s: int) -> Holder | None:
    *holder, its_purpose, its_subject, expires_at = row
    at = now()
    in_time = at < expires_at <= after(at, lifetime_s)  # a clock that was set back revives nothing
    fits = its_purpose == purpose and hmac.compare_digest(its_subject, _digest(subject))
    return Holder(*holder) if in_time and fits else None


def _digest(subject: str) -> str:
    return hashlib.sha256(subject.encode("utf-8", "surrogatepass")).hexdigest()
