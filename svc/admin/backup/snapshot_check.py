"""The check of a snapshot: digest, integrity, foreign keys, schema and rows of the file itself.

For a process of the service's account, which gets the file as a descriptor to read. What it finds is
untrusted: `checked` looks at the shape before root uses it.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import threading
from typing import Any, NamedTuple

from svc.admin.backup.sqlite_descriptor import as_path, end_with
from svc.db import migrate
from svc.errors import DatabaseRefused, SvcError

PART = 1024 * 1024
MAPPED_MAX = 2**31  # saves the check a third of its time; the file is complete and nobody writes it
TEXT_MAX = 300
TABLE = re.compile(r"[a-z][a-z0-9_]{0,63}")
TABLES_MAX = 200
SHA256 = re.compile(r"[0-9a-f]{64}")


class Check(NamedTuple):
    """What was found: `fault` is damage, `foreign` a violated key, `refused` why it cannot be restored."""

    sha256: str
    fault: str
    foreign: str
    schema: int
    pending: int
    refused: str
    rows: dict[str, int]
    sqlite_version: str

    @property
    def problem(self) -> str:
        """Why it cannot be restored; empty when it can."""
        return self.fault or self.foreign or self.refused


def check(descriptor: int, migrations: list[migrate.Migration], parent: int) -> dict[str, Any]:
    """Check the file; the digest is computed meanwhile, on another processor."""
    end_with(parent)
    digest: list[str] = []
    reader = threading.Thread(target=lambda: digest.append(sha256_of(descriptor)))
    reader.start()
    try:
        found = _check(descriptor, migrations)
    finally:
        reader.join()
    if not digest:
        raise SvcError("the file cannot be read whole")
    return found._replace(sha256=digest[0])._asdict()


def sha256_of(descriptor: int) -> str:
    """The SHA-256 of the file, in hexadecimal."""
    digest, at = hashlib.sha256(), 0
    while part := os.pread(descriptor, PART, at):
        digest.update(part)
        at += len(part)
    return digest.hexdigest()


def checked(untrusted: Any) -> Check:
    """The result of the other process, with the types that it must have; raises SvcError."""
    try:
        found = Check(**untrusted)
        texts = (found.sha256, found.fault, found.foreign, found.refused, found.sqlite_version)
        numbers = (found.schema, found.pending, *found.rows.values())
        right = (
            all(type(text) is str and len(text) <= TEXT_MAX for text in texts)
            and all(type(number) is int and 0 <= number < 2**63 for number in numbers)
            and len(found.rows) <= TABLES_MAX
            and all(map(TABLE.fullmatch, found.rows))
            and SHA256.fullmatch(found.sha256)
        )
        if right:
            return found
    except (TypeError, AttributeError):
        pass
    raise SvcError("the check of the snapshot returned no usable result")


def _check(descriptor: int, migrations: list[migrate.Migration]) -> Check:
    found = Check("", "", "", 0, 0, "", {}, sqlite3.sqlite_version)
    with as_path(descriptor) as path:
        connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True, isolation_level=None)
        try:
            for pragma in ("trusted_schema = OFF", "cell_size_check = ON", f"mmap_size = {MAPPED_MAX}"):
                connection.execute(f"PRAGMA {pragma}")
            schema = _number(connection, "user_version")
            found = found._replace(schema=max(0, schema), fault=_fault(connection))
            if found.fault:
                return found
            return _contents(connection, found, migrations)
        except sqlite3.Error as error:
            return found._replace(fault=_text(error))
        finally:
            connection.close()


def _fault(connection: sqlite3.Connection) -> str:
    """What SQLite's whole check finds, entries of indexes included; empty when all is well."""
    report = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    return "" if report == "ok" else _text(report.splitlines()[-1])  # below a title


def _contents(connection: sqlite3.Connection, found: Check, migrations: list[migrate.Migration]) -> Check:
    broken = connection.execute("PRAGMA foreign_key_check").fetchone()
    if broken:
        found = found._replace(foreign=_text(f"a row of {broken[0]} refers to a missing row of {broken[2]}"))
    names = connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' LIMIT ?",
        (TABLES_MAX,),
    )
    tables = [
        name for (name,) in names.fetchall() if TABLE.fullmatch(name) and not name.startswith("sqlite_")
    ]
    rows = {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in tables}  # noqa: S608  matches TABLE
    found = found._replace(rows=rows)
    if _number(connection, "application_id") != migrate.APPLICATION_ID:
        return found._replace(refused="it is a database of another program")
    try:
        pending = migrate.pending_of(migrate.applied(connection), migrations)
    except DatabaseRefused as error:
        return found._replace(refused=_text(error.message))
    except (TypeError, ValueError):  # forged rows
        return found._replace(refused="its list of applied migrations cannot be read")
    return found._replace(pending=len(pending))


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


def _text(value: object) -> str:
    return str(value)[:TEXT_MAX]
