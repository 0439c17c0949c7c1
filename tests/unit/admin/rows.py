"""Rows of a database before and after a restore."""

from __future__ import annotations

import os
import signal
import sqlite3
from typing import Any

AT = "2026-11-01T00:00:00.000Z"


def change(database: str, *statements: str) -> None:
    connection = sqlite3.connect(database, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def ask(database: str, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    rows = connection.execute(query).fetchall()
    connection.close()
    return rows


def user(number: int, name: str) -> str:
    return (
        "INSERT INTO users (id, name, uid, provisioning, created_at, updated_at)"
        f" VALUES ({number}, '{name}', {number + 5000}, 'ready', '{AT}', '{AT}')"
    )


def token(number: int, owner: int = 1) -> str:
    return (
        "INSERT INTO tokens (id, user_id, name, prefix, secret_hash, created_at, expires_at)"
        f" VALUES ('tok-{number}', {owner}, 't{number}', 'x', 'hash-{number}', '{AT}', '2027-11-01')"
    )


def workspace(number: int, status: str, container: str = "'c'") -> str:
    return (
        "INSERT INTO workspaces (id, owner_id, name, template_id, template_revision, image_ref, container_id,"
        " status, status_since, created_at, updated_at)"
        f" VALUES ('ws-{number}', 1, 'w{number}', 'tpl', 1, 'i',"
        f" {container}, '{status}', '{AT}', '{AT}', '{AT}')"
    )


def leave_log(database: str) -> None:
    """Add an account by a process that is killed, so that the row is in the log only."""
    pid = os.fork()
    if pid == 0:
        connection = sqlite3.connect(database, isolation_level=None)
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute(user(40, "late"))
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
