"""Sole use of the database: its lock, the lock of backups, and no process that still has it open."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager

from svc.admin.backup.snapshot import Source
from svc.admin.backup.target import alone
from svc.db.lock import hold
from svc.errors import DatabaseRefused
from svc.service_commands import stop_command

FILES = ("", "-wal", "-shm")


@contextmanager
def offline(source: Source, what: str) -> Iterator[None]:
    """Nobody else uses the database or backs it up during the block; raises who does."""
    with alone(source.lock, what), hold(source.database, holder=f"svc admin {what}"):
        require_closed(source.database)
        yield


def require_closed(database: str) -> None:
    """Raise DatabaseRefused while another process has the database open: it would write into the old file.

    The lock is the server's; this finds processes that an ended server has left, and other programs.
    """
    names = {os.path.realpath(database) + suffix for suffix in FILES}
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        if int(pid) != os.getpid() and names & set(_open_files(pid)):
            raise DatabaseRefused(
                f"{database} is open in {_name(pid)} (pid {pid})",
                hint=stop_command("   (or end that process)"),
            )


def _open_files(pid: str) -> Iterator[str]:
    """The paths of a process's open files; none of one that is gone, or of somebody else's."""
    directory = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        for number in os.listdir(directory):
            with contextlib.suppress(OSError):
                yield os.readlink(f"{directory}/{number}")


def _name(pid: str) -> str:
    """What the kernel calls the process; it chose that itself, so only letters are shown."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="ascii", errors="replace") as file:
        return (
            "".join(letter for letter in file.read(16) if letter.isalnum() or letter in "-_.") or "a process"
        )
    return "a process"
