"""Doctor checks of the database: schema, damage, unfinished accounts, room on its disk, SQLite itself."""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from svc.admin.command import for_database
from svc.admin.database import require_not_lost
from svc.admin.findings import Finding, Host, fail, ok, warn
from svc.db import check, condition, reserve
from svc.db.connect import close_database, open_database
from svc.db.connect import database as db
from svc.db.faults import RESTORE
from svc.domain.accounts import removal, users
from svc.errors import DatabaseDamaged, DatabaseRefused, SvcError
from svc.host import restoring
from svc.host.ids import after, now
from svc.host.owner import RUN_S, run_as
from svc_helper.wire.limits import USER_NAME

DISK = "database_disk"
MIB = 1024 * 1024
GROWTH_MAX = 100_000  # rows of the audit since yesterday: some 60 MB, which only an archive takes away
ONE_CHECKPOINTER = (3, 51, 3)  # the first SQLite whose WAL survives several checkpointers


class Disk(NamedTuple):
    """A condition of the database, as svc.db.condition has it; free bytes; whether those are too few."""

    code: str
    reason: str
    at: str
    room: int
    full: bool


def database(host: Host) -> Iterator[Finding]:
    """The database, opened as its owner: schema, damage, incomplete accounts."""
    restoring.require_none(host.settings.state_dir, host.database)
    require_not_lost(host.settings, host.database)
    found = run_as(host.owner, partial(_inspect_database, host.database))
    if lost := found.get("lost"):
        go_on = f"sudo runuser -u {host.owner.name} -- rm {shlex.quote(check.head_path(host.database))}"
        yield fail("database", str(lost), f"{RESTORE}; or, to go on with what is left: {go_on}")
        return
    yield ok("database", f"{host.database} (of {host.owner.name}), schema {found['schema']}, intact")
    for name, status, note, is_leaving in found["unfinished"]:
        # from the database, hence untrusted: no command for root to paste with an invalid name
        command = f"{'delete' if is_leaving else 'create'}-user {name}"
        command = command if re.fullmatch(USER_NAME, name) else "list-users"
        yield warn("accounts", f"{name} is {status}: {note}", for_database(command, host.settings))
    yield from _growth(host, *found["grown"])
    if not found["root_password"]:
        remedy = for_database("set-password root", host.settings)
        yield warn("root_password", "the superuser root has no service password", remedy)


def _growth(host: Host, rows: int, most: int, untrusted_name: str, since: str) -> Iterator[Finding]:
    """A warning when the audit has grown by more than a usual use of the service makes."""
    if rows > GROWTH_MAX:
        name = untrusted_name if re.fullmatch(USER_NAME, untrusted_name) else "somebody without account"
        found = f"the audit has {rows} new rows since {since}, {most} of them of {name}"
        remedy = for_database(
            f"audit archive --before {since} --out /root/audit-{since}.jsonl", host.settings
        )
        yield warn("audit_growth", found, remedy)


def _grown() -> tuple[int, int, str, str]:
    """The rows of the audit since yesterday, those of who has most of them, that name, and yesterday."""
    since = after(now(), -24 * 3600)[:10]
    rows = db.execute_sql(
        "SELECT user_name, count(*) FROM audit"
        " WHERE id >= (SELECT min(first_id) FROM audit_days WHERE day >= ?) GROUP BY 1 ORDER BY 2 DESC",
        (since,),
    ).fetchall()
    name, most = rows[0] if rows else ("", 0)
    return sum(row[1] for row in rows), most, name, since


def _inspect_database(path: str) -> dict[str, Any]:
    open_database(path)
    try:
        if lost := check.loss(db.connection(), path):
            return {"lost": lost}
        fault = check.fault_of(db.connection(), path, RUN_S, indexes=True)
    except sqlite3.DatabaseError as error:
        fault = str(error)
    if fault:
        raise DatabaseRefused(f"{path} is damaged: {fault}", hint=RESTORE)
    accounts = users.every()
    found = {
        "schema": db.execute_sql("PRAGMA user_version").fetchone()[0],
        "unfinished": [
            (user.name, users.status_name(user), user.provisioning_note, removal.is_begun(user))
            for user in accounts
            if user.provisioning != users.READY and not users.is_retired(user)
        ],
        "grown": _grown(),
        "root_password": any(user.uid == 0 and user.password_hash for user in accounts),
    }
    close_database()
    return found


def database_disk(host: Host) -> Iterator[Finding]:
    """Room on the database's disk, its last errors, and damage for which the service writes nothing."""
    if not os.path.lexists(host.database):
        return  # reported by the check of the database
    directory = os.path.dirname(host.database)
    disk = _checked(run_as(host.owner, partial(_inspect_disk, host.database)))
    free = f"{disk.room // MIB} MiB are free in {directory}"
    if disk.code == DatabaseDamaged.code:
        # where the check of the database finds nothing any more, the worker's next one ends this
        yield fail(DISK, f"since {disk.at} {disk.reason}", RESTORE)
    elif disk.reason:
        yield fail(DISK, disk.reason, "sudo dmesg --level=err,warn")
    elif disk.full:
        yield fail(DISK, f"only {free}; stopping and deleting still work", f"df -h {directory}")
    else:
        yield ok(DISK, free)


def _checked(untrusted: Any) -> Disk:
    """The result of the owner's process; raises SvcError for another shape."""
    try:
        disk = Disk(**untrusted)
    except TypeError:
        disk = None
    if disk is None or [type(value) for value in disk] != [str, str, str, int, bool]:
        raise SvcError("checking the database's disk returned no usable result")
    return disk


def _inspect_disk(path: str) -> dict[str, Any]:
    """As the database's owner, whose files these are."""
    found, room = condition.find(path), 0
    try:
        reserve.probe(path)
        room = reserve.room(path)
    except SvcError as error:
        found = found or condition.Condition(error.code, error.message, now())
    found = found or condition.Condition("", "", "")
    return found._asdict() | {"room": room, "full": reserve.is_full(path)}


def sqlite_version(_host: Host) -> Iterator[Finding]:
    """Whether this SQLite is safe with several processes that checkpoint."""
    if sqlite3.sqlite_version_info < ONE_CHECKPOINTER:
        yield warn(
            "sqlite_version",
            f"SQLite {sqlite3.sqlite_version} can lose pages when two processes checkpoint (svc has one)",
            "do not open the database with another program while the service runs",
        )
    else:
        yield ok("sqlite_version", f"SQLite {sqlite3.sqlite_version}")
