"""The audit table: who did what to what, and the outcome; rows are only ever added.

An action that reaches a container adds two rows with one request id: `begun`
before and the outcome after, so that a crash in between is recorded too. The rows
form a chain: the hash of a row is the SHA-256 of the previous row's hash and the
row's own values. Secrets are removed from all values. Records:

    {id, at, user, via, address, action, target, outcome, request_id, detail, hash}
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from svc.db.connect import database, write
from svc.db.ids import now
from svc.domain import pages
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.errors import SvcError
from svc.log import REDACTED, log, redacted

VIA = {"peer": "socket", "session": "session", "pat": "token", "worker": "worker"}
CREDENTIAL = {
    "session": "session",
    "pat": "token",
}  # the key in `detail` for the id of the caller's credential

# Bounds of a row: length of a text; items, depth and bytes of its detail.
TEXT_MAX, DETAIL_ITEMS_MAX, DETAIL_DEPTH_MAX, DETAIL_MAX = 256, 64, 4, 16384
ROW_MAX = 2 * 1024 * 1024  # bytes: larger than every row that any release wrote
WALK_ROWS = 1000  # rows of one query during verification
LOWEST_ID = -(2**63)  # ids begin with 1; verification also finds forged rows below

_canonical = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_COLUMNS = "id, at, user_id, user_name, via, address, action, target, outcome, request_id, detail_json"
_SECRET_KEY = re.compile(
    r"passw|passphrase|secret|token|cookie|authorization|credential|session", re.IGNORECASE
)
_OWN_ID = re.compile(r"(?:session=ses|token=tok)-[0-9a-z]{8}")  # the id of a row, not a secret
# SQLite's messages for a value longer than ROW_MAX and for text that is not UTF-8.
_FORGED_ROW = ("too big", "Could not decode")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Head(NamedTuple):
    """The newest row of the chain: its id and its hash."""

    id: int
    hash: str


class Actor(NamedTuple):
    """Who acts: `via` is one of VIA or "admin"; `address` is that of a TLS client."""

    user_id: int | None
    name: str
    via: str
    address: str = ""


# --- writing ------------------------------------------------------------------------------


def add(caller: Caller, action: str, target: str, outcome: str, **detail: Any) -> None:
    """Add one row for a caller, as part of the transaction in progress if there is one."""
    if caller.credential and caller.kind in CREDENTIAL:
        detail = {CREDENTIAL[caller.kind]: caller.credential} | detail
    actor = Actor(caller.user_id, caller.name, VIA[caller.kind], caller.address)
    append(actor, action, target, outcome, caller.rid, detail)


def append(actor: Actor, action: str, target: str, outcome: str, rid: str, detail: Mapping[str, Any]) -> None:
    """Add one row, also for actions without a Caller (a failed login, `svc admin`, the worker).

    The previous row is read in the same transaction (BEGIN IMMEDIATE): concurrent
    processes form one chain, and a rollback leaves no gap.
    """
    texts = [_line(text) for text in (*actor[1:], action, target, outcome, rid)]
    document = _document(detail)
    with write():
        row_id, before = _head()
        values = (row_id + 1, now(), actor.user_id, *texts, document)
        database.execute_sql(
            f"INSERT INTO audit ({_COLUMNS}, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*values, link(before, values)),
        )


@contextmanager
def audited(caller: Caller, action: str, target: str, **detail: Any) -> Iterator[dict[str, Any]]:
    """Add a row before the block and one with the outcome after; yields a dict for the latter's detail."""
    add(caller, action, target, "begun", **detail)
    more: dict[str, Any] = {}
    outcome = "internal_error"
    try:
        yield more
        outcome = "ok"
    except SvcError as error:
        outcome = error.code
        raise
    finally:
        _end(caller, action, target, outcome, more)


def _end(caller: Caller, action: str, target: str, outcome: str, detail: dict[str, Any]) -> None:
    """Add the row with the outcome; log the outcome when the database cannot be written (disk full)."""
    try:
        add(caller, action, target, outcome, **detail)
    except SvcError:
        facts = {"rid": caller.rid, "action": action, "target": target, "outcome": outcome}
        log("audit", "the outcome of an action could not be written", "error", user=caller.name, **facts)
        raise


def link(before: str, values: tuple[Any, ...]) -> str:
    """The hash of a row: over the previous row's hash and its own values as JSON, in column order."""
    return hashlib.sha256(f"{before}\n{_canonical(values)}".encode("ascii")).hexdigest()


def _head() -> Head:
    """The newest row, or id 0. Rows of releases without the chain have an empty hash."""
    row = database.execute_sql("SELECT id, hash FROM audit ORDER BY id DESC LIMIT 1").fetchone()
    return Head(*row) if row else Head(0, "")


# --- clean values ------------------------------------------------------------------


def _line(text: str) -> str:
    """One line of bounded text, without secrets and control characters."""
    text = redacted(text[: 4 * TEXT_MAX]).encode("utf-8", "backslashreplace").decode("utf-8")
    text = _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
    return text if len(text) <= TEXT_MAX else text[: TEXT_MAX - 3] + "..."


def _document(detail: Mapping[str, Any]) -> str:
    """The detail as JSON of at most DETAIL_MAX bytes; only its keys when it is longer."""
    plain = _plain(detail, DETAIL_DEPTH_MAX)
    document = _canonical(plain)
    if len(document) <= DETAIL_MAX:
        return document
    return _canonical({"too_long": list(plain)})


def _plain(value: Any, depth: int) -> Any:
    """The value as bounded JSON, with the values of secret keys redacted."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return _line(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if depth == 0 or not isinstance(value, Mapping | list | tuple):
        return f"({type(value).__name__})"  # other types may hold secrets
    if isinstance(value, Mapping):
        pairs = list(value.items())[:DETAIL_ITEMS_MAX]
        return {_line(str(key)): _unless_secret(str(key), item, depth - 1) for key, item in pairs}
    items = [_plain(item, depth - 1) for item in value[:DETAIL_ITEMS_MAX]]
    return items if len(value) <= DETAIL_ITEMS_MAX else [*items, "..."]


def _unless_secret(key: str, value: Any, depth: int) -> Any:
    """The value, redacted under a secret key; keeps numbers, booleans and ids of sessions and tokens."""
    harmless = value is None or isinstance(value, bool | int)
    if harmless or not _SECRET_KEY.search(key) or _OWN_ID.fullmatch(f"{key}={value}"):
        return _plain(value, depth)
    return REDACTED


# --- reading ------------------------------------------------------------------------------


def page_of(
    page: Page,
    *,
    owner_id: int | None = None,
    user: str = "",
    action: str = "",
    outcome: str = "",
    request_id: str = "",
    since: str = "",
    until: str = "",
) -> dict[str, Any]:
    """One page of rows, newest first: those of one owner, or all rows with their hashes.

    `action` may be a noun alone (`auth`); `since` is inclusive, `until` exclusive.
    The route checks who may read what.
    """
    chosen = {
        "user_id = ?": owner_id, "user_name = ?": user, "outcome = ?": outcome, "request_id = ?": request_id,
        "at >= ?": since, "at < ?": until,
    }  # fmt: skip
    filters = {sql: value for sql, value in chosen.items() if value not in (None, "")}
    found, values = pages.matching(page, ("user_name", "action", "target", "address"))
    conditions, parameters = [found, *filters], [*values, *filters.values()]
    if action:
        conditions.append("(action = ? OR substr(action, 1, ?) = ?)")
        parameters += [action, len(action) + 1, f"{action}."]
    order = pages.order_by(page, {"at": "id"}, "-at", "id")
    source, with_hash = f"FROM audit WHERE {' AND '.join(conditions)}", owner_id is None
    columns = f"{_COLUMNS}, hash"
    return pages.select(
        page, columns, source, parameters, order, lambda row: _record(row, with_hash=with_hash)
    )


def _record(row: tuple[Any, ...], *, with_hash: bool) -> dict[str, Any]:
    row_id, at, _user_id, user, via, address, action, target, outcome, request_id, detail, hash_ = row
    record = {
        "id": row_id, "at": at, "user": user, "via": via, "address": address, "action": action,
        "target": target, "outcome": outcome, "request_id": request_id, "detail": _read(detail),
    }  # fmt: skip
    return record | {"hash": hash_} if with_hash else record


def _read(document: str) -> Any:
    """The detail; text that is not JSON, after tampering, is returned as it is."""
    try:
        return json.loads(document)
    except ValueError:
        return {"unreadable": document[:TEXT_MAX]}


# --- the chain ----------------------------------------------------------------------------


def verify() -> dict[str, Any]:
    """Verify the chain from its first row, in bounded memory.

    Returns {rows, chained, head_id, head_hash, broken_at}: the number of intact
    `rows`, of which `chained` have a hash (older ones come first and have none), the
    last intact row, and the id of the first row that was changed, removed, moved
    or inserted, or None.
    """
    connection = database.connection()
    usual = connection.setlimit(
        sqlite3.SQLITE_LIMIT_LENGTH, ROW_MAX
    )  # forged values that are longer are not read
    rows = chained = 0
    head = Head(0, "")
    broken = False
    try:
        for row in _rows(connection):
            old = not chained and row[-1] == ""
            broken = row[0] != head.id + 1 or not (old or row[-1] == _link(head.hash, row[:-1]))
            if broken:
                break
            rows, chained, head = rows + 1, chained + (not old), Head(row[0], row[-1])
    except sqlite3.DatabaseError as error:
        if not any(text in str(error) for text in _FORGED_ROW):
            raise
        broken = True
    finally:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, usual)
    return {
        "rows": rows, "chained": chained, "head_id": head.id, "head_hash": head.hash,
        "broken_at": head.id + 1 if broken else None,
    }  # fmt: skip


def hash_of(row_id: int) -> str | None:
    """The hash of the row with this id, or None."""
    row = database.execute_sql("SELECT hash FROM audit WHERE id = ?", (row_id,)).fetchone()
    return str(row[0]) if row else None


def _rows(connection: sqlite3.Connection) -> Iterator[tuple[Any, ...]]:
    """All rows in order, in batches: a long read transaction would keep the WAL from being truncated."""
    number, step, more = LOWEST_ID, WALK_ROWS, True
    query = f"SELECT {_COLUMNS}, hash FROM audit WHERE id >= ? ORDER BY id LIMIT ?"
    while more:
        more = False
        try:
            for row in connection.execute(query, (number, step)):
                yield row
                number, more = row[0] + 1, True
        except sqlite3.DatabaseError:
            if step == 1:
                raise
            step, more = 1, True  # sqlite3 reads one row ahead: row by row the error belongs to the next one


def _link(before: str, untrusted_values: tuple[Any, ...]) -> str | None:
    """As `link`, for an untrusted row; None when its values cannot be those of a genuine row."""
    try:
        return link(before, untrusted_values)
    except (TypeError, ValueError):
        return None
