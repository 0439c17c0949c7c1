"""Personal access tokens: `svc_pat_` secrets for "HTTP calls from other hosts".

"The secret is shown once and is never stored": the database has its SHA-256
(enough for 256 random bits) and its first characters. Records:

    {id, name, prefix, scopes, status: active|expired, expires_soon, created_at, expires_at,
     last_used_at, last_used_from}

Of the owner's files a token reaches none, unless it was created with the scope `files`; of the programs of
workspaces none, unless with the scope `apps`. One that was created for an app opens that, and nothing else.
"""

from __future__ import annotations

import re
import secrets
import unicodedata
import zlib
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from svc.actions.access import APPS, FILES, ONE_APP
from svc.actions.table import TOKEN_CREATE, TOKEN_REVOKE
from svc.db.connect import database, write
from svc.db.faults import UNWRITABLE
from svc.domain import pages
from svc.domain.accounts import keys
from svc.domain.audit import audit
from svc.domain.names import taken
from svc.domain.pages import Page
from svc.domain.plain_text import WHY, is_plain
from svc.domain.principal import Caller
from svc.errors import (
    AccountDisabled,
    Conflict,
    NotFound,
    TokenExpired,
    invalid_field,
)
from svc.host.ids import ALPHABET, LENGTH, after, new_id, now
from svc.limits import (
    CLOCK_AHEAD_S,
    TOKEN_DAYS_DEFAULT,
    TOKEN_DAYS_MAX,
    TOKEN_EXPIRES_SOON_DAYS,
    TOKEN_NAME_MAX,
    TOKENS_PER_USER,
    USE_NOTED_S,
)

MARK = "svc_pat_"  # identifies a token to people and secret scanners
SCOPES = (APPS, FILES)  # what a token may be given besides
ALL_APPS = "*"  # in the column `apps`
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
RANDOM_BYTES, RANDOM_CHARS, CHECK_CHARS = 32, 43, 6
PREFIX_CHARS = len(MARK) + 4  # enough to distinguish one's own tokens
DAY_S = 24 * 3600

_FORM = re.compile(f"({MARK}[0-9A-Za-z]{{{RANDOM_CHARS}}})([0-9A-Za-z]{{{CHECK_CHARS}}})")
_ID = re.compile(f"tok-[{ALPHABET}]{{{LENGTH}}}")
_COLUMNS = "id, name, prefix, scopes, apps, created_at, expires_at, last_used_at, last_used_from, ended_at"
_STATUS = "CASE WHEN ended_at IS NULL THEN 'active' ELSE 'expired' END"
_KEPT = "end_reason IS NOT 'revoked'"  # tokens that the owner's list has
_SORT = {key: key for key in ("name", "created_at", "expires_at", "last_used_at")} | {"status": _STATUS}


def create(
    caller: Caller, name: str, days: int = TOKEN_DAYS_DEFAULT, scopes: Sequence[str] = (), app: str = ""
) -> dict[str, Any]:
    """Create a token of the caller; returns its record with `secret`, which is stored nowhere.

    `scopes` are of SCOPES; with an `app` (WORKSPACE/PORT, the workspace by its id) there are none, and
    the token opens nothing else. Raises NameTaken for the name of an active token, ValidationFailed for a
    lifetime that is not "1 to 365 days", Conflict beyond TOKENS_PER_USER,
    AccountDisabled when the account was disabled during the request.
    """
    name, secret, token_id = _check_name(name), _new_secret(), new_id("tok")
    _check_days(days)
    scopes = _check_scopes(scopes, app)
    with write():
        at = now()
        _require_open(caller)
        _end_expired(caller.user_id, at)
        _require_room(caller.user_id, name)
        database.execute_sql(
            "INSERT INTO tokens"
            " (id, user_id, name, prefix, secret_hash, created_at, expires_at, scopes, apps)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                token_id, caller.user_id, name, secret[:PREFIX_CHARS], keys.digest(secret),
                at, after(at, days * DAY_S), FILES if FILES in scopes else "",
                app or (ALL_APPS if APPS in scopes else ""),
            ),
        )  # fmt: skip
        audit.add(caller, TOKEN_CREATE, token_id, "ok", name=name, days=days, **_scopes_detail(scopes, app))
        row = database.execute_sql(f"SELECT {_COLUMNS} FROM tokens WHERE id = ?", (token_id,)).fetchone()
    return _record(row, at) | {"secret": secret}


def page_of(caller: Caller, page: Page) -> dict[str, Any]:
    """One page of the caller's tokens that were not revoked."""
    at = now()
    with suppress(*UNWRITABLE):
        _end_expired(caller.user_id, at)
    found, values = pages.matching(page, ("name",))
    with_status, states = pages.with_status(page, _STATUS)
    order = pages.order_by(page, _SORT, "-created_at", "id")
    source = f"FROM tokens WHERE user_id = ? AND {_KEPT} AND {found} AND {with_status}"
    parameters = (caller.user_id, *values, *states)
    return pages.select(page, _COLUMNS, source, parameters, order, lambda row: _record(row, at))


def revoke(caller: Caller, ref: str) -> None:
    """End one of the caller's tokens, by id or by the name of an active one; raises NotFound.

    An expired token can be removed from the list by its id.
    """
    ref = unicodedata.normalize("NFC", ref)
    with audit.giving_back(caller), write():
        at = now()
        row = database.execute_sql(
            f"SELECT id, name FROM tokens WHERE user_id = ?1 AND {_KEPT}"
            " AND (id = ?2 OR (name = ?2 AND ended_at IS NULL AND expires_at > ?3))"
            " ORDER BY id = ?2 DESC LIMIT 1",
            (caller.user_id, ref, at),
        ).fetchone()
        if row is None:
            raise NotFound("there is no such token", hint="svc token list")
        database.execute_sql(
            "UPDATE tokens SET ended_at = ?, end_reason = 'revoked' WHERE id = ?", (at, row[0])
        )
        audit.add(caller, TOKEN_REVOKE, row[0], "ok", name=row[1])


def revoke_all(user_id: int) -> int:
    """Revoke all tokens of a user ("A password reset does this too"); returns their number."""
    with write():
        return database.execute_sql(
            "UPDATE tokens SET ended_at = ?, end_reason = 'revoked' WHERE user_id = ? AND ended_at IS NULL",
            (now(), user_id),
        ).rowcount


def well_formed(untrusted: str) -> bool:
    """Whether the text has the form of a token: prefix, length, alphabet and checksum."""
    match = _FORM.fullmatch(untrusted)
    return match is not None and match[2] == _checksum(match[1])


def user_of(untrusted: str, address: str) -> tuple[str, int] | None:
    """The ids of the token and of its user for a valid secret, else None; for its scopes see scopes_of().

    Raises TokenExpired, "only when the secret matched". Records the use.
    """
    if not well_formed(untrusted):
        return None
    row = database.execute_sql(
        "SELECT id, user_id, created_at, expires_at, last_used_at, end_reason FROM tokens"
        " WHERE secret_hash = ?",
        (keys.digest(untrusted),),
    ).fetchone()
    del untrusted
    if row is None:
        return None
    token_id, user_id, created_at, expires_at, last_used_at, end_reason = row
    at = now()
    if end_reason == "revoked" or created_at > after(at, CLOCK_AHEAD_S):
        return None
    if end_reason == "expired" or expires_at <= at:
        with suppress(*UNWRITABLE):
            _end_expired(user_id, at)
        raise TokenExpired("the token has expired", hint="svc token create --help")
    # a last use in the future, from before the clock was set back, is overwritten
    if last_used_at is None or not after(at, -USE_NOTED_S) < last_used_at <= at:
        _note_use(token_id, at, address)
    return token_id, user_id


def is_active(token_id: str) -> bool:
    """Whether a token has neither expired nor been revoked."""
    sql = "SELECT 1 FROM tokens WHERE id = ? AND ended_at IS NULL AND expires_at > ?"
    return database.execute_sql(sql, (token_id, now())).fetchone() is not None


def scopes_of(token_id: str) -> frozenset[str]:
    """The additional scopes of a token."""
    row = database.execute_sql("SELECT scopes, apps FROM tokens WHERE id = ?", (token_id,)).fetchone()
    return frozenset(_scopes(*row)) if row else frozenset()


def _scopes(scopes: str, apps: str) -> list[str]:
    """The additional scopes of a row's columns, in order."""
    of_apps = {"": [], ALL_APPS: [APPS]}.get(apps, [f"{ONE_APP}{apps}"])
    return sorted([*scopes.split(), *of_apps])


# --- secrets and fields ------------------------------------------------------------


def _new_secret() -> str:
    number = int.from_bytes(secrets.token_bytes(RANDOM_BYTES))
    body = MARK + _base62(number, RANDOM_CHARS)
    return body + _checksum(body)


def _checksum(body: str) -> str:
    """Six characters that detect a mistyped or truncated token without the database."""
    return _base62(zlib.crc32(body.encode()), CHECK_CHARS)


def _base62(number: int, length: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 62)
        digits = BASE62[digit] + digits
    return digits.rjust(length, BASE62[0])


def _check_name(name: str) -> str:
    name = unicodedata.normalize("NFC", name.strip())
    if not 1 <= len(name) <= TOKEN_NAME_MAX:
        raise invalid_field("name", "invalid", f"must have 1 to {TOKEN_NAME_MAX} characters")
    if not is_plain(name):
        raise invalid_field("name", "invalid", WHY)
    if _ID.fullmatch(name):  # by which revoke finds another one
        raise invalid_field("name", "invalid", "has the form of an id; choose another name")
    if MARK in name:
        raise invalid_field("name", "invalid", "must not be a token's secret")
    return name


def _check_days(days: int) -> None:
    if type(days) is not int or not 1 <= days <= TOKEN_DAYS_MAX:
        raise invalid_field("expires_days", "invalid", f"must be a whole number from 1 to {TOKEN_DAYS_MAX}")


def _check_scopes(scopes: Sequence[str], app: str) -> list[str]:
    if scopes and app:
        raise invalid_field("app", "invalid", "a token for one app has no scopes")
    if unknown := set(scopes) - set(SCOPES):
        raise invalid_field("scopes", "invalid", f"must be of: {', '.join(SCOPES)}; not {min(unknown)}")
    return sorted(set(scopes))


def _scopes_detail(scopes: Sequence[str], app: str) -> dict[str, Any]:
    """The scopes for the audit, if there are any."""
    found = [f"{ONE_APP}{app}"] if app else list(scopes)
    return {"scopes": found} if found else {}


# --- rows -------------------------------------------------------------------------------


def _require_open(caller: Caller) -> None:
    """Raise AccountDisabled when the account was disabled since the request was authenticated."""
    row = database.execute_sql("SELECT disabled FROM users WHERE id = ?", (caller.user_id,)).fetchone()
    if row is None or row[0]:
        raise AccountDisabled(f"the service account {caller.name} is disabled")


def _require_room(user_id: int, name: str) -> None:
    """Raise NameTaken, or Conflict beyond TOKENS_PER_USER, inside the transaction that adds a token."""
    rows = database.execute_sql("SELECT name FROM tokens WHERE user_id = ? AND ended_at IS NULL", (user_id,))
    active = [name for (name,) in rows]
    if name in active:
        raise taken("token", name)
    if len(active) >= TOKENS_PER_USER:
        raise Conflict(
            f"you have {TOKENS_PER_USER} active tokens, the maximum; revoke one first",
            hint="svc token list",
            details={"limit": TOKENS_PER_USER},
        )


def _record(row: tuple[Any, ...], at: str) -> dict[str, Any]:
    token_id, name, prefix, scopes, apps, created_at, expires_at, last_used_at, last_used_from, ended_at = row
    active = ended_at is None and expires_at > at
    return {
        "id": token_id, "name": name, "prefix": prefix, "scopes": _scopes(scopes, apps),
        "status": "active" if active else "expired",
        "expires_soon": active and expires_at <= after(at, TOKEN_EXPIRES_SOON_DAYS * DAY_S),
        "created_at": created_at, "expires_at": expires_at,
        "last_used_at": last_used_at, "last_used_from": last_used_from,
    }  # fmt: skip


def _end_expired(user_id: int, at: str) -> None:
    """Mark a user's expired tokens, so that they stay expired when the clock is set back."""
    over = "user_id = ? AND ended_at IS NULL AND expires_at <= ?"
    if database.execute_sql(f"SELECT 1 FROM tokens WHERE {over} LIMIT 1", (user_id, at)).fetchone() is None:
        return
    with write():
        database.execute_sql(
            f"UPDATE tokens SET ended_at = ?, end_reason = 'expired' WHERE {over}", (at, user_id, at)
        )


def _note_use(token_id: str, at: str, address: str) -> None:
    """Record a use, at most once in USE_NOTED_S; a full disk does not fail the request."""
    with suppress(*UNWRITABLE), write():
        database.execute_sql(
            "UPDATE tokens SET last_used_at = ?, last_used_from = ? WHERE id = ?", (at, address, token_id)
        )
