"""Which file the database is: decided before anything opens it.

For every command that opens the database and for the supervisor; standard
library only. The four rules of the specification ("First match wins": `--db`,
SVC_DB, SVC_DB of /etc/svc/svc.env, `svc.db` in the working directory) are
resolved by svc.settings; here is the trap in the fourth: root must never open
what somebody planted in the directory root happens to stand in.
"""

from __future__ import annotations

import os
import stat

from svc.db.owner import Owner, service_owner
from svc.errors import DatabaseRefused
from svc.settings import Settings


def database_path(settings: Settings) -> str:
    """The absolute path of the database in force, refused where it is no place for one; opens nothing."""
    try:
        path: str = os.path.abspath(settings.db)
    except FileNotFoundError:
        raise DatabaseRefused("the working directory does not exist any more", hint="cd /") from None
    if _found_by_root(settings) and os.path.lexists(path):
        _refuse_planted(path)
    refuse_irregular(path)
    return path


def refuse_foreign_directory(settings: Settings) -> None:
    """As root, refuse to make a database in a working directory that others may write."""
    if _found_by_root(settings):
        _refuse_planted(os.path.abspath(settings.db))


def refuse_irregular(path: str) -> None:
    """Refuse a symbolic link, FIFO, directory or device; a missing file passes."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode):
        kind = "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
        raise DatabaseRefused(f"{path} is {kind}; a database is a regular file", hint="svc env --all")


def _found_by_root(settings: Settings) -> bool:
    return settings.resolved["SVC_DB"].source == "default" and os.geteuid() == 0


def _refuse_planted(path: str) -> None:
    service = service_owner()
    trusted = {0} | ({service.uid} if service else set())
    directory = os.path.dirname(path)
    home = os.stat(directory)
    reason = ""
    if home.st_uid not in trusted or home.st_mode & 0o022:
        reason = f"{directory} may be written by others"
    elif os.path.lexists(path):
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            reason = "it is a symbolic link"
        elif status.st_uid not in trusted:
            reason = f"it belongs to {Owner(status.st_uid, status.st_gid).name}"
    if reason:
        raise DatabaseRefused(
            f"root does not use {path}, found in the working directory: {reason}",
            hint="name the database: --db PATH, or SVC_DB in /etc/svc/svc.env",
        )
