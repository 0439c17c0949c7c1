"""Doctor check of the audit: the chain is intact and continues from the head of the last run.

A process that can write the database can write a whole new chain. So root keeps
the chain's head in a file of its own and compares at the next run
(docs/decisions/0012-what-the-audit-chain-proves.md). A process of the
database's owner reads the database; root opens nothing but that file.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import peewee

from svc.admin.audit_heads import HASH, NONE, RootsHeads
from svc.admin.findings import Finding, Host, fail, ok
from svc.admin.own_files import ARCHIVED
from svc.db.connect import close_database, database, open_database
from svc.db.faults import RESTORE
from svc.db.location import HEADS
from svc.domain.audit.chain import Head, archived, hash_of, verify
from svc.errors import DatabaseRefused, SvcError
from svc.host import restoring
from svc.host.owner import run_as

TRIGGERS = ("audit_keeps_its_rows", "audit_keeps_its_values")


class Chain(NamedTuple):
    """The result of svc.domain.audit.chain.verify, and what else the check needs."""

    rows: int
    chained: int
    head_id: int
    head_hash: str
    broken_at: int | None
    archived_id: int
    archived_hash: str
    recorded: str  # the present hash of the row that was the head at the last run
    triggers: list[str]  # missing ones

    @property
    def archived(self) -> Head:
        """The last row that was moved to an archive, or id 0."""
        return Head(self.archived_id, self.archived_hash)


def audit_chain(host: Host) -> Iterator[Finding]:
    """The audit's chain; as root, its head is recorded for the next run."""
    heads = RootsHeads(host.settings.state_dir, HEADS)
    allowed = RootsHeads(host.settings.state_dir, ARCHIVED)
    path = os.path.abspath(host.database)
    last_run = heads.get(path)
    if restoring.find(host.settings.state_dir, path) is not None:
        return  # reported by the check of the database
    try:
        chain = _checked(run_as(host.owner, partial(_verify, path, last_run.id)))
    except DatabaseRefused:
        return  # reported by the check of the database
    if fault := _fault(chain, last_run):
        files = heads.path
    elif os.geteuid() == 0 and (fault := _archive_fault(chain.archived, allowed.get(path))):
        files = allowed.path
    if fault:
        remedy = f"find out who wrote to {path}; if its file was put back by hand: sudo rm {files}"
        yield fail("audit_chain", fault, remedy)
        return
    yield ok("audit_chain", _intact(chain))
    if chain.head_hash:
        heads.put(path, Head(chain.head_id, chain.head_hash))


def _verify(path: str, number: int) -> dict[str, Any]:
    """As the database's owner: verify the chain, read the recorded row's hash, find missing triggers."""
    open_database(path)
    try:
        rows = database.execute_sql("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        present = [row[0] for row in rows]
        moved, found = archived(), verify()
        return {
            "rows": found.rows,
            "chained": found.chained,
            "head_id": found.head.id,
            "head_hash": found.head.hash,
            "broken_at": found.broken_at,
            "archived_id": moved.id,
            "archived_hash": moved.hash,
            "recorded": hash_of(number) or "",
            "triggers": [name for name in TRIGGERS if name not in present],
        }
    except (peewee.DatabaseError, sqlite3.DatabaseError) as error:
        raise DatabaseRefused(f"{path} is damaged: {error}", hint=RESTORE) from None
    finally:
        close_database()


def _checked(untrusted: Any) -> Chain:
    """The result of the owner's process, checked because root writes parts of it into its own file."""
    try:
        chain = Chain(**untrusted)
        numbers = (chain.rows, chain.chained, chain.head_id, chain.archived_id, chain.broken_at or 0)
        hashes = (chain.head_hash, chain.archived_hash, chain.recorded)
        if all(type(number) is int for number in numbers) and all(HASH.fullmatch(text) for text in hashes):
            return chain
    except TypeError:
        pass
    raise SvcError("verifying the audit returned no usable result")


def _fault(chain: Chain, last_run: Head) -> str:
    """What is wrong with the chain; empty when it is intact and continues from the recorded row."""
    if chain.broken_at is not None:
        return f"row {chain.broken_at} is not what was written: changed, removed, moved or inserted"
    if last_run.id > chain.head_id:
        return f"the rows after {chain.head_id} are gone; there were {last_run.id} at the last run"
    if last_run.id and chain.recorded != last_run.hash:
        return f"row {last_run.id} differs from the last run; the chain was rewritten"
    if chain.triggers:
        return f"the triggers that protect the rows are missing in the database: {', '.join(chain.triggers)}"
    return ""


def _archive_fault(moved: Head, allowed: Head) -> str:
    """What is wrong with the rows that are no longer there; empty when root archived them."""
    if moved.id < allowed.id or moved in (allowed, NONE):
        return ""
    return f"the rows up to {moved.id} were removed, and not by `svc admin audit archive`"


def _intact(chain: Chain) -> str:
    older = chain.rows - chain.chained
    note = f", {older} of them older than the chain" if older else ""
    note += f"; those up to row {chain.archived_id} are in archives" if chain.archived_id else ""
    head = f"; it ends with row {chain.head_id}, {chain.head_hash}" if chain.head_hash else ""
    return f"intact, {chain.rows} rows{note}{head}"
