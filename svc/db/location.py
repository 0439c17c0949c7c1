"""Which file the database is, and whose: decided before anything opens it.

For every command that opens the database and for the supervisor; standard
library only. The four rules of the specification ("First match wins": `--db`,
SVC_DB, SVC_DB of /etc/svc/svc.env, `svc.db` in the working directory) are
resolved by svc.settings; here is the trap in the fourth: root must never open
what somebody planted in the directory root happens to stand in.
"""

from __future__ import annotations

import os
import pwd
import stat
from typing import NamedTuple

from svc.errors import DatabaseRefused, HostRefused
from svc.settings import Settings

SERVICE_USER = "svc"


class Owner(NamedTuple):
    """The account that a database belongs to."""

    uid: int
    gid: int

    @property
    def name(self) -> str:
        """The account's name, or its number when it has none."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return f"uid {self.uid}"


def service_owner() -> Owner | None:
    """The system user of the service, when this host has one."""
    try:
        entry = pwd.getpwnam(SERVICE_USER)
    except KeyError:
        return None
    return Owner(entry.pw_uid, entry.pw_gid)


def database_path(settings: Settings) -> str:
    """The absolute path of the database in force, refused where it is no place for one; opens nothing."""
    try:
        path: str = os.path.abspath(settings.db)
    except FileNotFoundError:
        raise DatabaseRefused("the working directory does not exist any more", hint="cd /") from None
    if settings.resolved["SVC_DB"].source == "default" and os.geteuid() == 0 and os.path.lexists(path):
        _refuse_planted(path)
    refuse_irregular(path)
    return path


def refuse_foreign_directory(settings: Settings) -> None:
    """As root, refuse to make a database in a working directory that others may write."""
    if settings.resolved["SVC_DB"].source == "default" and os.geteuid() == 0:
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


def owner_of(path: str) -> Owner:
    """Whose the database is: the file's owner, else that of the directory it would be made in."""
    for place in (path, os.path.dirname(path)):
        try:
            status = os.lstat(place)
        except FileNotFoundError:
            continue
        except PermissionError:
            raise DatabaseRefused(f"{path} is not yours to open", hint="sudo svc admin doctor") from None
        return Owner(status.st_uid, status.st_gid)
    if os.geteuid() != 0:
        return Owner(os.geteuid(), os.getegid())
    return service_owner() or Owner(0, 0)


def become(owner: Owner) -> None:
    """Work as the database's owner from here on, for good; "it never leaves root-owned -wal/-shm behind".

    Whoever is neither root nor the owner is refused. What will be needed must be
    imported before: the interpreter's own files may be root's alone.
    """
    if os.geteuid() == owner.uid:
        return
    if os.geteuid() != 0:
        raise DatabaseRefused(f"the database belongs to {owner.name}", hint="sudo svc admin ...")
    os.setgroups([])
    os.setresgid(owner.gid, owner.gid, owner.gid)
    os.setresuid(owner.uid, owner.uid, owner.uid)
    os.umask(0o077)
    try:
        os.setuid(0)
    except PermissionError:
        return
    raise HostRefused("root could not be given up; stopping here")


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
            f"root does not open {path}, found in the working directory: {reason}",
            hint="name the database: --db PATH, or SVC_DB in /etc/svc/svc.env",
        )
