"""The path of the database, checked before anything opens it.

For every command that opens the database and for the supervisor; standard
library only. svc.settings resolves the four sources of the specification ("First
match wins": `--db`, SVC_DB, SVC_DB of /etc/svc/svc.env, `svc.db` in the working
directory). The fourth needs a check: root must never open a file that another user
put into the working directory.
"""

from __future__ import annotations

import contextlib
import os
import stat

from svc.errors import DatabaseRefused
from svc.host.owner import Owner, admin_command, repair_command, service_owner
from svc.settings import Settings

ENROLLED, HEADS = "enrolled", "audit-head"  # root's own files in SVC_STATE_DIR


def database_path(settings: Settings) -> str:
    """The absolute path of the database in force; DatabaseRefused for an unsafe one. Opens nothing."""
    path = absolute_path(settings)
    with contextlib.suppress(OSError):  # a missing file is allowed here
        refuse_irregular(path, os.lstat(path).st_mode)
    return path


def absolute_path(settings: Settings) -> str:
    """As database_path, whatever the file itself is."""
    try:
        path: str = os.path.abspath(settings.db)
    except FileNotFoundError:
        raise DatabaseRefused("the working directory no longer exists", hint="cd /") from None
    if _is_roots_default(settings) and os.path.lexists(path):
        _refuse_unsafe(path)
    return path


def refuse_foreign_directory(settings: Settings) -> None:
    """As root, refuse to create a database in a working directory that others may write."""
    if _is_roots_default(settings):
        _refuse_unsafe(os.path.abspath(settings.db))


def lost_database(settings: Settings, path: str) -> str:
    """What shows that a missing or empty file was a database, as a sentence; else empty.

    An empty one that SQLite opened would take its log, with the newest changes, for another's and remove it.
    Root alone has these records, which the service cannot write.
    """
    with contextlib.suppress(OSError):
        if os.lstat(path).st_size:
            return ""
    what = "empty" if os.path.lexists(path) else "missing"
    if os.geteuid() != 0:
        return ""
    heads = _lines(settings, HEADS)
    if any(line.endswith(f" {path}") for line in heads):
        return f"{path} is {what}; there was a database, whose audit root has recorded"
    enrolled = _lines(settings, ENROLLED) if os.path.abspath(Settings().db) == path else []
    if enrolled:
        return (
            f"{path} is {what}; there was a database, for whose users {len(enrolled)} accounts are enrolled"
        )
    return ""


def _lines(settings: Settings, name: str) -> list[str]:
    try:
        with open(os.path.join(settings.state_dir, name), encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []


def refuse_irregular(path: str, mode: int) -> None:
    """Refuse a symbolic link, FIFO, directory or device, given its mode from lstat."""
    if not stat.S_ISREG(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
        raise DatabaseRefused(f"{path} is {kind}; a database is a regular file", hint=repair_command(path))


def for_database(command: str, settings: Settings) -> str:
    """A command of `svc admin` for a hint, with the --db of this one: no other database is meant."""
    return admin_command(command, named_database(settings))


def named_database(settings: Settings) -> str:
    """The database's path for the --db of a hint; empty where the settings file names it.

    The default is that of a working directory, which the hint's reader may have left, and a variable of the
    shell does not reach a command by sudo. systemd gives the server the file's as variables.
    """
    source = settings.resolved["SVC_DB"].source
    is_files = source not in ("flag", "default") and settings.file.get("SVC_DB") == settings.db
    return "" if is_files else os.path.abspath(settings.db)


def _is_roots_default(settings: Settings) -> bool:
    return settings.resolved["SVC_DB"].source == "default" and os.geteuid() == 0


def _refuse_unsafe(path: str) -> None:
    service = service_owner()
    trusted = {0} | ({service.uid} if service else set())
    directory = os.path.dirname(path)
    home = os.stat(directory)
    # `migrate` lets the group of the app's accounts write in the directory, which nobody else has
    is_shared = service is not None and home.st_gid == service.gid
    others_write = home.st_mode & (0o002 if is_shared else 0o022)
    reason = ""
    if home.st_uid not in trusted or others_write:
        reason = f"{directory} is writable by other users"
    elif os.path.lexists(path):
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            reason = "it is a symbolic link"
        elif status.st_uid not in trusted:
            reason = f"it belongs to {Owner(status.st_uid, status.st_gid).name}"
    if reason:
        raise DatabaseRefused(
            f"refusing to use {path} from the working directory as root: {reason}",
            hint="set the path of the database: --db PATH, or SVC_DB in /etc/svc/svc.env",
        )
