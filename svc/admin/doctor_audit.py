"""Doctor check of the audit: the chain is intact and continues from the head of the last run.

A process that can write the database can write a whole new chain. So root keeps
the chain's head in a file of its own and compares at the next run
(docs/decisions/0012-what-the-audit-chain-proves.md). A process of the
database's owner reads the database; root opens nothing but that file.
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
from svc_helper import atomic_file

HEADS = "audit-head"
HEAD = re.compile(r"([1-9][0-9]{0,18}) ([0-9a-f]{64}) (/.*)")  # number and hash of the newest row; database
HASH = re.compile(r"(?:[0-9a-f]{64})?")
TRIGGERS = ("audit_keeps_its_rows", "audit_keeps_its_values")


class Chain(NamedTuple):
    """The result of svc.domain.audit.verify, and what else the check needs."""

    rows: int
    chained: int
    head_id: int
    head_hash: str
    broken_at: int | None
    recorded: str  # the present hash of the row that was the head at the last run
    triggers: list[str]  # missing ones


def audit_chain(host: Host) -> Iterator[Finding]:
    """The audit's chain; as root, its head is recorded for the next run."""
    record = os.path.join(host.settings.state_dir, HEADS)
    heads = dict(_read_heads(record)) if os.geteuid() == 0 else {}
    path = os.path.abspath(host.database)
    number, hash_ = heads.get(path, (0, ""))
    try:
        chain = _checked(run_as(host.owner, partial(_verify, path, number)))
    except DatabaseRefused:
        return  # reported by the check of the database
    fault = _fault(chain, number, hash_)
    if fault:
        remedy = f"find out who wrote to {path}; if it was restored from a backup: sudo rm {record}"
        yield fail("audit_chain", fault, remedy)
        return
    yield ok("audit_chain", _intact(chain))
    if os.geteuid() == 0 and chain.head_hash and path.isprintable():
        _write_heads(record, heads | {path: (chain.head_id, chain.head_hash)})


def _verify(path: str, number: int) -> dict[str, Any]:
    """As the database's owner: verify the chain, read the recorded row's hash, find missing triggers."""
    open_database(path)
    try:
        rows = database.execute_sql("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        present = [row[0] for row in rows]
        return audit.verify() | {
            "recorded": audit.hash_of(number) or "",
            "triggers": [name for name in TRIGGERS if name not in present],
        }
    except (peewee.DatabaseError, sqlite3.DatabaseError) as error:
        raise DatabaseRefused(f"{path} is damaged: {error}", hint="svc admin restore") from None
    finally:
        close_database()


def _checked(untrusted: Any) -> Chain:
    """The result of the owner's process, checked because root writes parts of it into its own file."""
    try:
        chain = Chain(**untrusted)
        numbers = (chain.rows, chain.chained, chain.head_id, chain.broken_at or 0)
        whole = all(type(number) is int for number in numbers)
        if whole and HASH.fullmatch(chain.head_hash) and HASH.fullmatch(chain.recorded):
            return chain
    except TypeError:
        pass
    raise SvcError("verifying the audit returned no usable result")


def _fault(chain: Chain, number: int, hash_: str) -> str:
    """What is wrong with the chain; empty when it is intact and continues from the recorded row."""
    if chain.broken_at is not None:
        return f"row {chain.broken_at} is not what was written: changed, removed, moved or inserted"
    if number > chain.head_id:
        return f"the rows after {chain.head_id} are gone; there were {number} at the last run"
    if number and chain.recorded != hash_:
        return f"row {number} differs from the last run; the chain was rewritten"
    if chain.triggers:
        return f"the triggers that protect the rows are missing in the database: {', '.join(chain.triggers)}"
    return ""


def _intact(chain: Chain) -> str:
    older = chain.rows - chain.chained
    note = f", {older} of them older than the chain" if older else ""
    head = f"; it ends with row {chain.head_id}, {chain.head_hash}" if chain.head_hash else ""
    return f"intact, {chain.rows} rows{note}{head}"


# --- root's own file: one line per database ---------------------------------------------------


def _read_heads(path: str) -> Iterator[tuple[str, tuple[int, str]]]:
    for line in lines_of(path):
        match = HEAD.fullmatch(line)
        if match:
            yield match[3], (int(match[1]), match[2])


def _write_heads(path: str, heads: dict[str, tuple[int, str]]) -> None:
    lines = [f"{number} {hash_} {database}\n" for database, (number, hash_) in heads.items()]
    atomic_file.replace(path, "".join(lines).encode(), 0o644)
