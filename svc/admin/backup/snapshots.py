"""Snapshots in a directory: their names, their side files, which are complete, which are kept.

    svc-20261122T164523.123Z.db             the database, one plain SQLite file
    svc-20261122T164523.123Z.db.json        the side file: digest, size, schema, rows, ...
    svc-20261122T164523.123Z.db.host.tar    the small files of this host

The side file has a number that grows with each snapshot in the directory: it says which one is newer,
whatever the clock said. It also has the host's name: several hosts may share a directory, and their databases
have the same path.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from svc.admin import reporting
from svc.admin.backup.target import DRAFT, Target, opened
from svc.db.faults import RESTORE
from svc.db.location import database_path
from svc.domain import host_reports
from svc.errors import SvcError
from svc.host.owner import admin_command
from svc.settings import Settings

NAME = re.compile(r"svc-\d{8}T\d{6}\.\d{3}Z\.db")
SIDE, HOST = ".json", ".host.tar"
FILES = re.compile(rf"(?P<name>{NAME.pattern})(?:{re.escape(SIDE)}|{re.escape(HOST)})?")
SIDE_MAX = 64 * 1024
FORMAT = 1


class Snapshot(NamedTuple):
    """A complete snapshot in a directory."""

    number: int
    name: str


def new_name(target: Target) -> str:
    """A name for now that is free in the directory."""
    moment = datetime.now(UTC)
    while True:
        name = moment.strftime("svc-%Y%m%dT%H%M%S.") + f"{moment.microsecond // 1000:03}Z.db"
        if all(target.status(name + suffix) is None for suffix in ("", SIDE, HOST)):
            return name
        moment += timedelta(milliseconds=1)


def complete(target: Target, database: str) -> list[Snapshot]:
    """The complete snapshots of this database of this host, the oldest first.

    Complete is one with a side file that fits it, both of them the caller's own files.
    """
    found, host = [], socket.gethostname()
    for name in filter(NAME.fullmatch, target.names()):
        status, side = target.status(name), read_side(target, name)
        if status is None or side is None or not target.is_own_file(name):
            continue
        number = side.get("number")
        ours = side.get("database") == database and side.get("host") == host
        fits = ours and side.get("size_bytes") == status.st_size
        if fits and type(number) is int:
            found.append(Snapshot(number, name))
    return sorted(found)


def restore_hint(settings: Settings, database: str) -> str:
    """The way back from a lost or damaged database: the newest snapshot, whose name has its time."""
    try:
        directory = settings.backup_dir
        with opened(directory, instead="") as target:
            newest = complete(target, database)[-1].name
    except (SvcError, IndexError):  # none there, or none that this user may see
        return RESTORE
    other = database if settings.resolved["SVC_DB"].source == "flag" else ""
    restore = admin_command(f"restore {shlex.quote(os.path.join(directory, newest))}", other)
    return f"stop the service, then: {restore}"


def report(settings: Settings) -> None:
    """Report the complete snapshots in SVC_BACKUP_DIR, the newest first."""
    if not reporting.is_reported(settings):
        return
    items: list[dict[str, Any]] = []
    try:
        with opened(settings.backup_dir, instead="sudo svc admin doctor") as target:
            for _, name in reversed(complete(target, database_path(settings))):
                side = read_side(target, name) or {}
                items.append({**side, "name": name, "host_files": target.status(name + HOST) is not None})
    except SvcError:
        pass  # the doctor says why; the report is empty
    reporting.write(settings, host_reports.BACKUPS, items)


def read_side(target: Target, name: str) -> dict[str, Any] | None:
    """The side file of a snapshot; None without one that only the caller (or root) could have written."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(name + SIDE, flags, dir_fd=target.descriptor)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        if not target.is_own_file(name + SIDE):
            return None
        try:
            side = json.loads(file.read(SIDE_MAX))
        except (ValueError, RecursionError):
            return None
    return side if isinstance(side, dict) and side.get("format") == FORMAT else None


def prune(target: Target, database: str, keep: int, newest: str) -> list[str]:
    """Remove all complete snapshots but the newest `keep`, never `newest`; returns the removed names."""
    old = [one.name for one in complete(target, database) if one.name != newest]
    removed = old[: max(0, len(old) - (keep - 1))]
    for name in removed:
        for suffix in (
            "",
            HOST,
            SIDE,
        ):  # the side file last: what is left without its snapshot goes next time
            target.remove(name + suffix)
    if removed:
        target.sync()
    return removed


def remove_stale(target: Target) -> None:
    """Remove what interrupted runs have left: drafts, and files beside a snapshot that is not there.

    A snapshot gets its name last: while it is a draft of another host, what is beside it is not stale.
    """
    target.remove_stale_drafts(FILES)
    names = target.names()
    drafts = {match["final"] for match in map(DRAFT.fullmatch, names) if match}
    for name in names:
        match = FILES.fullmatch(name)
        if match is None or name == match["name"] or match["name"] in drafts:
            continue
        if target.status(match["name"]) is None and target.is_own_file(name):
            target.remove(name)
