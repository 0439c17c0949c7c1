"""Personal access tokens: `svc_pat_` secrets for "HTTP calls from other hosts".

"The secret is shown once and is never stored": of it the database has only a
SHA-256 (enough for 256 random bits) and its first characters. Records look like

    {id, name, prefix, status: active|expired, expires_soon, created_at, expires_at,
     last_used_at, last_used_from}
"""

from __future__ import annotations

from typing import Any

from svc.db.connect import database, write
from svc.db.ids import now
from svc.domain.callers import Caller
from svc.domain.pages import Page
from svc.errors import NotAvailable
from svc.limits import TOKEN_DAYS_DEFAULT


def create(caller: Caller, name: str, days: int = TOKEN_DAYS_DEFAULT) -> dict[str, Any]:
    """A new token of the caller: its record with `secret`, which exists nowhere else.

    Raises NameTaken for the name of an active one, ValidationFailed for a
    lifetime that is not "1 to 365 days", Conflict beyond TOKENS_PER_USER.
    """
    raise NotAvailable("tokens")


def page_of(caller: Caller, page: Page) -> dict[str, Any]:
    """The caller's tokens that were not revoked, one page."""
    raise NotAvailable("tokens")


def revoke(caller: Caller, ref: str) -> None:
    """End one of the caller's tokens, by id or by the name of an active one; raises NotFound."""
    raise NotAvailable("tokens")


def revoke_all(user_id: int) -> int:
    """Revoke all tokens of a user ("A password reset does this too"); how many there were."""
    with write():
        return database.execute_sql(
            "UPDATE tokens SET ended_at = ?, end_reason = 'revoked' WHERE user_id = ? AND ended_at IS NULL",
            (now(), user_id),
        ).rowcount


def well_formed(untrusted: str) -> bool:
    """Whether it looks like a token: prefix, length, alphabet and checksum; asks no database."""
    raise NotAvailable("tokens")


def user_of(untrusted: str, address: str) -> tuple[str, int] | None:
    """The token's id and its user's for a secret that is right; None for any other text.

    Raises TokenExpired, "only when the secret matched". Notes the use.
    """
    raise NotAvailable("tokens")
