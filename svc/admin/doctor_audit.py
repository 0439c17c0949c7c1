"""The doctor's check of the audit: is the chain whole, and does it go on from where the last run saw it end.

Who can write the database can write a whole new chain. So root keeps the end
of it in a file of its own and compares at the next run
(docs/decisions/0012-what-the-audit-chain-proves.md). The database itself is
read by a process of its owner's; root touches nothing but that file.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import peewee

from svc.admin.findings import Finding, Host, fail, lines_of, ok
from svc.db.connect import close_database, database, open_database
from svc.db.owner import run_as
from svc.domain import audit
from svc.errors import DatabaseRefused, SvcError

HEADS = "audit-head"
HEAD = re.compile(r"([1-9][0-9]{0,18}) ([0-9a-f]{64}) (/.*)")  # number and hash of the newest row; database
HASH = re.compile(r"(?:[0-9a-f]{64})?")
TRIGGERS = ("audit_keeps_its_rows", "audit_keeps_its_values")


class Found(NamedTuple):
    """What a walk along the chain came to, as svc.domain.audit.verify says it, and what was asked besides."""

    rows: int
    chained: int
    head_id: int
    head_hash: str
    broken_at: int | None
    remembered: str  # the hash that the row of the last run has now
    triggers: list[str]  # those that are gone


def audit_chain(host: Host) -> Iterator[Finding]:
    """The audit's chain; run by root, what it says is remembered for the next run."""
    path = os.path.join(host.settings.state_dir, HEADS)
    heads = dict(_read(path)) if os.geteuid() == 0 else {}
    whose = os.path.abspath(host.database)
    number, hash_ = heads.get(whose, (0, ""))
    try:
        found = _checked(run_as(host.owner, partial(_look, whose, number)))
    except DatabaseRefused:
        return  # told by the check of the database
    wrong = _wrong(found, number, hash_)
    if wrong:
        yield fail(
            "audit_chain",
            wrong,
            f"find out who wrote to {whose}; if it was restored from a backup: sudo rm {path}",
        )
        return
    yield ok("audit_chain", _intact(found))
    if os.geteuid() == 0 and found.head_hash and whose.isprintable():
        _write(path, heads | {whose: (found.head_id, found.head_hash)})


def _look(path: str, number: int) -> dict[str, Any]:
    """As the database's owner: the walk, the hash of the remembered row, the triggers that are gone."""
    open_database(path)
    try:
        there = [
            row[0] for row in database.execute_sql("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        ]
        return audit.verify() | {
            "remembered": audit.hash_of(number) or "",
            "triggers": [name for name in TRIGGERS if name not in there],
        }
    except (peewee.DatabaseError, sqlite3.DatabaseError) as error:
        raise DatabaseRefused(f"{path} is damaged: {error}", hint="svc admin restore") from None
    finally:
        close_database()


def _checked(untrusted: Any) -> Found:
    """The answer of the owner's process, of which root writes something into a file of its own."""
    try:
        found = Found(**untrusted)
        numbers = (found.rows, found.chained, found.head_id, found.broken_at or 0)
        whole = all(type(number) is int for number in numbers)
        if whole and HASH.fullmatch(found.head_hash) and HASH.fullmatch(found.remembered):
            return found
    except TypeError:
        pass
    raise SvcError("the walk along the audit ended without an answer")


def _wrong(found: Found, number: int, hash_: str) -> str:
    """What is wrong with the chain; nothing when it is whole and goes on from the row that is remembered."""
    if found.broken_at is not None:
        return f"row {found.broken_at} is not what was written: changed, taken away, moved or put in"
    if number > found.head_id:
        return f"the rows after {found.head_id} are gone; there were {number} at the last run"
    if number and found.remembered != hash_:
        return f"row {number} is another one than at the last run; the chain was written anew"
    if found.triggers:
        return f"the triggers that keep the rows are gone from the database: {', '.join(found.triggers)}"
    return ""


def _intact(found: Found) -> str:
    older = found.rows - found.chained
    note = f", {older} of them older than the chain" if older else ""
    head = f"; it ends with row {found.head_id}, {found.head_hash}" if found.head_hash else ""
    return f"intact, {found.rows} rows{note}{head}"


# --- root's own file: a line for each database ------------------------------------------------


def _read(path: str) -> Iterator[tuple[str, tuple[int, str]]]:
    for line in lines_of(path):
        match = HEAD.fullmatch(line)
        if match:
            yield match[3], (int(match[1]), match[2])


def _write(path: str, heads: dict[str, tuple[int, str]]) -> None:
    """Replace the file whole or not at all; the directory is root's."""
    lines = [f"{number} {hash_} {whose}\n" for whose, (number, hash_) in heads.items()]
    draft = f"{path}.new-{os.getpid()}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, 0o644)
        file.writelines(lines)
        file.flush()
        os.fsync(descriptor)
    os.rename(draft, path)
    directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
