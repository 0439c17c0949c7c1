"""A snapshot becomes the database: what the database's owner does for `svc admin restore`.

The new database is made whole beside the old one first: copied, migrated, and rid of what must not
come back with it (sessions, revoked tokens, closed accounts, leases, work under way). Replacing the
old one is then a rename, which `switch` may repeat. Each function is for a process of the owner.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import stat
from collections.abc import Iterator
from typing import Any

from svc.actions.table import ADMIN_RESTORE
from svc.admin.actor import note
from svc.admin.backup import owner_copy
from svc.admin.backup.sqlite_descriptor import end_with
from svc.admin.backup.target import FULL
from svc.admin.restore.what_changes import BIRTH
from svc.db import condition, facts, migrate, reserve
from svc.db.connect import close_database, database, open_database, write
from svc.domain.accounts import retirement, users
from svc.domain.audit.chain import archived, newest
from svc.domain.licence import trial
from svc.domain.workspaces.reconcile_rules import RESTORED
from svc.errors import DatabaseRefused, StorageFailed, StorageFull, SvcError
from svc.host import clock
from svc.host.ids import now
from svc.host.restoring import DRAFT, LOGS, remove_draft
from svc.host.root_file import checked
from svc.host.sharing import share
from svc.service_commands import stop_command
from svc_helper.atomic_file import sync_directory

PART = 1024 * 1024
CLOSED = "closed after the snapshot was made; svc admin edit-user NAME --enable opens it again"

# Work that was under way then is under way no more; the worker looks for each container.
AT_REST = (
    "DELETE FROM sessions",
    f"UPDATE workspaces SET status = 'stopped', status_reason = '{RESTORED}', status_since = ?1,"  # noqa: S608 - a constant
    " updated_at = ?1, work = NULL, stale = 0"  # what is stale is removed at a start: it may be in use since
    " WHERE status <> 'deleting' AND (status <> 'stopped' OR container_id IS NOT NULL)",
    "DELETE FROM gpu_leases",
    "UPDATE operations SET status = 'cancelled', cancel_requested = 1, finished_at = ?1, updated_at = ?1"
    " WHERE status IN ('queued', 'running')",
    "UPDATE images SET status = 'missing', updated_at = ?1 WHERE status IN ('pulling', 'building')",
)
# What held GPUs may still run on them: it keeps them, and counts as failed, until it has been looked for.
HOLD = (
    f"UPDATE workspaces SET status = 'failed', status_reason = '{RESTORED}' WHERE id = ?1",  # noqa: S608 - a constant
    "INSERT INTO gpu_leases (gpu, workspace_id, mode, taken_at)"
    " SELECT ?2, w.id, ?3, ?4 FROM workspaces w WHERE w.id = ?1",
)
LEASES = (
    "SELECT l.workspace_id, l.gpu, l.mode, l.taken_at FROM gpu_leases l"
    " JOIN workspaces w ON w.id = l.workspace_id WHERE w.status <> 'deleting'"
)
REVOKE = "UPDATE tokens SET ended_at = ?, end_reason = 'revoked' WHERE id = ? AND ended_at IS NULL"


def prepare(
    path: str, snapshot: int, sha256: str, root_start: str | None, detail: dict[str, Any], parent: int
) -> dict[str, Any]:
    """Make the new database from the snapshot; returns its inode, its audit's rows, and what was ended.

    `root_start` is the trial's start in root's file, `detail` goes into the audit.
    """
    end_with(parent)
    draft = path + DRAFT
    is_new = not os.path.lexists(path)
    known = None if detail["unknown"] else _known(path)
    with _faults_of_the_disk(draft):
        remove_draft(path)
        _copy(snapshot, draft, sha256)
    open_database(draft, create=True)
    try:
        with reserve.entitled():
            applied = migrate.apply(database.connection())
            with write():
                ended = _put_to_rest(known, is_new=is_new)
                trial.resolve(now(), root_start)
                _carry_clock(known)
                note(ADMIN_RESTORE, str(detail["snapshot"]), "ok", **detail, **ended)
        head, moved = newest(), archived()
        _require_sound(database.connection())
        database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        close_database()
    if any(os.path.lexists(draft + log) and os.stat(draft + log).st_size for log in LOGS):
        raise SvcError("the new database could not be closed whole; the old one is untouched")
    with _faults_of_the_disk(draft):
        for log in LOGS:
            _unlink(draft + log)
        share(draft)
        _sync(draft)
    return {
        "inode": os.lstat(draft).st_ino, "applied": len(applied), "head": list(head), "archived": list(moved),
        **ended,
    }  # fmt: skip


def switch(path: str, inode: int, parent: int) -> dict[str, Any]:
    """Put the new database in the place of the old one; may be repeated after an interruption.

    The log of the old one goes first: beside the new one SQLite would apply it.
    """
    end_with(parent)
    draft = path + DRAFT
    if _inode(draft) == inode:
        with _faults_of_the_disk(path):
            for log in LOGS:
                _unlink(path + log)
            _unlink(condition.path_of(path))
            sync_directory(os.path.dirname(path))
            os.rename(draft, path)
            sync_directory(os.path.dirname(path))
    elif _inode(path) != inode:
        raise DatabaseRefused(f"{draft}, which was to become the database, is gone")
    return {}


def flush(path: str, parent: int) -> dict[str, Any]:
    """Write the log back into the database and remove it: {"bytes"} that it had; raises DatabaseRefused."""
    end_with(parent)
    log = f"{path}-wal"
    written = os.lstat(log).st_size if os.path.lexists(log) else 0
    connection = owner_copy.opened(path)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    finally:
        connection.close()
    if busy or any(os.path.lexists(path + suffix) for suffix in LOGS):
        raise DatabaseRefused(f"{path} is still open in another process", hint=stop_command())
    return {"bytes": written}


@contextlib.contextmanager
def _faults_of_the_disk(path: str) -> Iterator[None]:
    """Raise the kernel's errors in the block as StorageFailed."""
    try:
        yield
    except OSError as error:
        raise StorageFailed(
            f"{path} cannot be written: {error.strerror}", hint="sudo svc admin doctor"
        ) from None


def _copy(snapshot: int, draft: str, sha256: str) -> None:
    """Copy the snapshot's bytes into a new file, which must have that digest."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    digest, at = hashlib.sha256(), 0
    try:
        with open(os.open(draft, flags, 0o600), "wb") as file:  # buffered: it goes on after a part is written
            while part := os.pread(snapshot, PART, at):
                file.write(part)
                digest.update(part)
                at += len(part)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        _unlink(draft)
        kind = StorageFull if error.errno in FULL else StorageFailed
        raise kind(
            f"the snapshot cannot be copied beside the database: {error.strerror}; nothing was changed",
            hint="sudo svc admin doctor",
        ) from None
    if digest.hexdigest() != sha256:
        _unlink(draft)
        raise SvcError("the snapshot was changed while it was restored; nothing was replaced")


def _known(path: str) -> dict[str, Any] | None:
    """What the old database says of tokens, accounts and times; None when it cannot be read."""
    if not os.path.lexists(path):
        return None
    try:
        connection = owner_copy.opened(path)
        known = {
            "tokens": {row[0] for row in connection.execute("SELECT id FROM tokens WHERE ended_at IS NULL")},
            "users": {
                row[0]: row[1:]
                for row in connection.execute(
                    "SELECT id, name, disabled, password_closed, superuser FROM users"
                )
            },
            "birth": connection.execute(BIRTH).fetchone(),
            "facts": dict(connection.execute("SELECT name, value FROM facts").fetchall()),
            "leases": connection.execute(LEASES).fetchall(),
        }
        owner_copy.close_unwritten(connection, path)
    except (sqlite3.Error, SvcError):
        return None
    return known


def _put_to_rest(known: dict[str, Any] | None, *, is_new: bool) -> dict[str, int]:
    """Put the restored rows to rest, and keep closed what was closed since; returns how much was ended.

    `is_new`: there was no database, so that no workspace of it runs.
    """
    at = now()
    leases = known["leases"] if known else [] if is_new else database.execute_sql(LEASES).fetchall()
    if known is not None and known["birth"] != database.execute_sql(BIRTH).fetchone():
        known, leases = None, []  # of another installation: what it does not have was not ended
    sessions = database.execute_sql("SELECT count(*) FROM sessions").fetchone()[0]
    open_before = _open_tokens()
    closed = _close_accounts(known["users"]) if known else 0
    for statement in AT_REST:
        database.execute_sql(statement, (at,) if "?1" in statement else ())
    for workspace_id, gpu, mode, taken_at in leases:
        database.execute_sql(HOLD[0], (workspace_id,))
        database.execute_sql(HOLD[1], (workspace_id, gpu, mode, taken_at))
    for id_ in _open_tokens():
        if known is None or id_ not in known["tokens"]:
            database.execute_sql(REVOKE, (at, id_))
    return {"sessions": sessions, "revoked": len(open_before) - len(_open_tokens()), "closed": closed}


def _open_tokens() -> list[str]:
    return [row[0] for row in database.execute_sql("SELECT id FROM tokens WHERE ended_at IS NULL").fetchall()]


def _close_accounts(present: dict[int, tuple[Any, ...]]) -> int:
    """Close again what was deleted, disabled or retired since; nobody gets a privilege back."""
    closed = 0
    for user in users.every():
        if user.uid == 0 or users.is_retired(user):
            continue
        name, disabled, password_closed, superuser = present.get(user.id, ("", 1, 1, 0))
        if name not in ("", user.name):  # retired since: nothing else changes a name
            retirement.retire(user)  # its uid may be another person's by now
            closed += 1
            continue
        if not name or (disabled and not user.disabled):
            users.end_access(user.id)
            users.update(user, disabled=True, provisioning_note=CLOSED.replace("NAME", user.name))
            closed += 1
        superuser = bool(user.superuser and superuser)
        closes = bool(user.password_closed or password_closed) and (
            superuser or not name
        )  # too short for one
        if (superuser, closes) != (bool(user.superuser), bool(user.password_closed)):
            users.update(user, superuser=superuser, password_closed=closes)
    return closed


def _carry_clock(known: dict[str, Any] | None) -> None:
    """Keep what the old database knew of time: an older snapshot lengthens neither trial nor licence."""
    if known is None:
        return
    record = clock.latest(clock.of_facts(known["facts"]), clock.of_facts(facts.find(*clock.FACTS)))
    facts.put(clock.facts_of(record))
    trial.resolve(now(), checked(known["facts"].get(trial.FACT, "")))


def _require_sound(connection: sqlite3.Connection) -> None:
    fault = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    broken = connection.execute("PRAGMA foreign_key_check").fetchone()
    if fault != "ok" or broken:
        raise SvcError(f"the restored database is not sound: {fault[:200]}; the old one is untouched")


def _inode(path: str) -> int:
    """The inode of a regular file; 0 when there is none."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return 0
    return status.st_ino if stat.S_ISREG(status.st_mode) else 0


def _sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(os.path.dirname(path))


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
