"""One-time tickets: a plain link or a WebSocket of a page carries one where it can send no header.

A ticket opens one thing (a purpose and a subject) once, within TICKET_S, for the account and by the
session, token or peer that it was issued to. The database has a digest of it. It ends with its session
or token, and when the account is disabled (triggers of schema/migrations/0009_tickets.sql).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

from svc.db.connect import database, write
from svc.domain.accounts import keys
from svc.domain.principal import Caller
from svc.errors import TooManyRequests
from svc.host.ids import after, now
from svc.limits import TICKET_S, TICKETS_PER_USER

MARK = "svc_tkt_"  # by which the log redacts it
SECRET_BYTES = 32
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


def issue(caller: Caller, purpose: str, subject: str) -> Ticket:
    """Issue a ticket of the caller; raises TooManyRequests beyond TICKETS_PER_USER unused ones."""
    secret, at = MARK + secrets.token_hex(SECRET_BYTES), now()
    expires_at = after(at, TICKET_S)
    with write():
        database.execute_sql("DELETE FROM tickets WHERE expires_at <= ? OR expires_at > ?", (at, expires_at))
        row = database.execute_sql("SELECT count(*) FROM tickets WHERE user_id = ?", (caller.user_id,))
        if row.fetchone()[0] >= TICKETS_PER_USER:
            raise TooManyRequests(
                f"you have {TICKETS_PER_USER} tickets that were not used yet", retry_after_s=TICKET_S
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


def redeem(untrusted: str, purpose: str, subject: str) -> Holder | None:
    """The holder of a ticket for this purpose and subject, else None; either way it opens nothing more."""
    if not _FORM.fullmatch(untrusted):
        return None
    with write():
        rows = database.execute_sql(
            "DELETE FROM tickets WHERE secret_hash = ?"
            " RETURNING kind, credential, user_id, purpose, subject, expires_at",
            (keys.digest(untrusted),),
        ).fetchall()
    if not rows:
        return None
    *holder, its_purpose, its_subject, expires_at = rows[0]
    at = now()
    in_time = at < expires_at <= after(at, TICKET_S)  # a clock that was set back revives nothing
    fits = its_purpose == purpose and hmac.compare_digest(its_subject, _digest(subject))
    return Holder(*holder) if in_time and fits else None


def _digest(subject: str) -> str:
    return hashlib.sha256(subject.encode("utf-8", "surrogatepass")).hexdigest()
