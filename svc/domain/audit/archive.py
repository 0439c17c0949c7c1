"""Old rows of the audit in a file: written, verified, and only then removed from the database.

An archive is text, one JSON object a line: first `{"svc_audit": 1, "after": {id, hash}}`, then the
rows, with all columns, `detail_json` as the very text that its hash covers, and last
`{"rows": N, "until": {id, hash}}`. The chain goes on from one archive to the next, and from the last one to
the database.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple

from svc.db.connect import database, let_others_write, write
from svc.domain.audit import chain
from svc.domain.audit.chain import COLUMNS, Head
from svc.errors import Conflict, DatabaseRefused, FileRefused
from svc.host.ids import now

FORMAT = 1
STEP = 500  # rows that one transaction removes: writers of the service wait for no more
LINE_MAX = 4 * chain.ROW_MAX  # escaped
NAMES = (*COLUMNS.split(", "), "hash")
DOCTOR = "sudo svc admin doctor"


class Span(NamedTuple):
    """Rows of the chain: behind `after`, `until` the last one."""

    rows: int
    after: Head
    until: Head


def last_before(at: str) -> Head | None:
    """The last row that may be archived; None when no row may.

    It and all before it are older than this time (as `ids.now`), their actions have ended, and the newest
    row stays. Rows are taken from the first one on, whatever the clock did later.
    """
    bounds = (
        "SELECT min(id) FROM audit WHERE at >= ?",
        "SELECT min(audit_id) FROM audit_open WHERE ? <> ''",
        "SELECT max(id) FROM audit WHERE ? <> ''",
    )
    found = [database.execute_sql(bound, (at,)).fetchone()[0] for bound in bounds]
    stops = [row_id for row_id in found if row_id is not None]
    row = database.execute_sql(
        "SELECT id, hash FROM audit WHERE id < ? ORDER BY id DESC LIMIT 1", (min(stops, default=0),)
    ).fetchone()
    return Head(*row) if row else None


def write_file(file: BinaryIO, until: int | None = None) -> Span:
    """Write the rows up to this one (None: all) and make them durable; verifies them on the way.

    Raises DatabaseRefused when the chain is broken, and OSError.
    """
    after = chain.archived()

    def written() -> Iterator[tuple[Any, ...]]:
        last = chain.newest().id if until is None else until
        for row in chain.database_rows(last=last):
            yield row
            _write_line(file, dict(zip(NAMES, row, strict=True)))

    _write_line(file, {"svc_audit": FORMAT, "after": after._asdict()})
    found = chain.follow(written(), after)
    if found.broken_at is not None:
        raise DatabaseRefused(f"row {found.broken_at} of the audit is not what was written", hint=DOCTOR)
    _write_line(file, {"rows": found.rows, "until": found.head._asdict()})
    file.flush()
    os.fsync(file.fileno())
    return Span(found.rows, after, found.head)


def read_file(file: BinaryIO) -> Span:
    """Verify an archive, in bounded memory; raises FileRefused with the line that is wrong."""
    lines = _Lines(file)
    first = lines.read()
    if first.get("svc_audit") != FORMAT:
        raise lines.refusal("this is no archive of the audit")
    after = lines.head(first.get("after"))
    last: dict[str, Any] = {}

    def rows() -> Iterator[tuple[Any, ...]]:
        nonlocal last
        while "rows" not in (last := lines.read()):
            yield tuple(last.get(name) for name in NAMES)

    found = chain.follow(rows(), after)
    if found.broken_at is not None:
        raise lines.refusal(f"row {found.broken_at} is not what was written")
    if (last["rows"], lines.head(last.get("until"))) != (found.rows, found.head) or file.read(1):
        raise lines.refusal("its end does not belong to its rows")
    return Span(found.rows, after, found.head)


def remove(until: Head, progress: Callable[[int], None] = lambda _: None) -> int:
    """Remove the rows up to and with this one from the database; returns their number.

    In steps: after each of them, whatever ends this process, the chain is whole. Raises Conflict when the
    row is not in the database as it is in the archive, or may not go.
    """
    removed, newest = 0, chain.newest().id
    if until.id >= newest or chain.hash_of(until.id) != until.hash:
        raise Conflict(f"row {until.id} of the audit is not that of the archive, or the newest", hint=DOCTOR)
    while (first := chain.archived().id + 1) <= until.id:
        last = min(first + STEP - 1, until.id)
        with write():
            database.execute_sql(
                "INSERT OR REPLACE INTO audit_archived (one, id, hash, at) SELECT 1, id, hash, ? FROM audit"
                " WHERE id = ?",
                (now(), last),
            )
            removed += database.execute_sql("DELETE FROM audit WHERE id <= ?", (last,)).rowcount
        let_others_write()
        progress(removed)
    return removed


def _write_line(file: BinaryIO, document: dict[str, Any]) -> None:
    file.write(json.dumps(document, separators=(",", ":")).encode() + b"\n")


class _Lines:
    """The lines of an archive; nothing in it is trusted."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.number = file, 0

    def read(self) -> dict[str, Any]:
        """The object of the next line."""
        self.number += 1
        line = self.file.readline(LINE_MAX)
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            document = None
        if not line.endswith(b"\n") or not isinstance(document, dict):
            raise self.refusal("it ends early" if not line else "this is no line of an archive")
        return document

    def head(self, untrusted: Any) -> Head:
        if isinstance(untrusted, dict):
            found = Head(untrusted.get("id", 0), untrusted.get("hash", 0))
            if type(found.id) is int and type(found.hash) is str:
                return found
        raise self.refusal("this line names no row")

    def refusal(self, why: str) -> FileRefused:
        return FileRefused(f"line {self.number}: {why}")
