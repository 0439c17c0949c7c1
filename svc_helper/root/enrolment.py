"""Who may be acted for: the root-owned list of accounts.

`<state_dir>/enrolled` has one line per account, `name uid user|administrator`.
It is not the app's database: a compromised app cannot add itself to it. Name
and uid are kept together, so that a uid given to somebody else enrols nobody.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import re
import stat
from collections.abc import Iterator
from typing import NamedTuple

from svc_helper import atomic_file
from svc_helper.root.log import log
from svc_helper.wire.limits import USER_NAME

LINE = re.compile(rf"({USER_NAME}) ([1-9][0-9]{{0,9}}) (user|administrator)")
NOBODY = 65534
SIZE_MAX = 4 * 1024 * 1024


class Entry(NamedTuple):
    """One enrolled account."""

    name: str
    uid: int
    administrator: bool


class Enrolment:
    """The list, read again whenever the file is another or changed."""

    def __init__(self, state_dir: str) -> None:
        self.path = os.path.join(state_dir, "enrolled")
        self.mark: tuple[int, int, int] | None = None
        self.entries: dict[str, Entry] = {}

    def find(self, name: str | None) -> Entry | None:
        """The account of that name, if it is enrolled."""
        self._refresh()
        return self.entries.get(name or "")

    def find_administrator(self, uid: int) -> Entry | None:
        """An enrolled administrator of that uid."""
        self._refresh()
        found = (entry for entry in self.entries.values() if entry.uid == uid and entry.administrator)
        return next(found, None)

    def _refresh(self) -> None:
        try:
            status = os.stat(self.path, follow_symlinks=False)
        except FileNotFoundError:
            self.mark, self.entries = None, {}
            return
        mark = (status.st_ino, status.st_mtime_ns, status.st_size)
        if mark != self.mark:
            self.entries = {entry.name: entry for entry in read(self.path)}
            self.mark = mark


class OnlyMe:
    """In place of the list in single-user mode: one account, which may do everything for itself."""

    def __init__(self, uid: int) -> None:
        self.me = Entry(pwd.getpwuid(uid).pw_name, uid, True)

    def find(self, name: str | None) -> Entry | None:
        """The account, if that is its name."""
        return self.me if name == self.me.name else None

    def find_administrator(self, uid: int) -> Entry | None:
        """The account, if that is its uid."""
        return self.me if uid == self.me.uid else None


def read(path: str) -> list[Entry]:
    """The entries of the file; none, and a loud line in the log, when it is not root's alone."""
    try:
        return _parse(path)
    except OSError as error:
        log("the enrolment list cannot be trusted; nobody is enrolled", "critical", why=str(error))
        return []


def _parse(path: str) -> list[Entry]:
    """The entries; raises OSError for a file that cannot be read or that others than root may write."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != 0 or status.st_mode & 0o022:
            raise PermissionError(f"{path} is not a file that only root may write")
        text = os.read(descriptor, SIZE_MAX).decode("ascii", "replace")
    finally:
        os.close(descriptor)
    found = [LINE.fullmatch(line) for line in text.split("\n") if line]
    entries = [Entry(match[1], int(match[2]), match[3] == "administrator") for match in found if match]
    if len(entries) != len(found):
        log("the enrolment list has lines that say nothing", "error", path=path)
    return [entry for entry in entries if entry.uid != NOBODY]


@contextlib.contextmanager
def changing(state_dir: str) -> Iterator[dict[str, Entry]]:
    """The entries by name, to be changed in place; written back when the block ends.

    One change at a time, also between the server's helper and `svc admin`'s. The
    lock is a file that only root can open: who may open one may hold it. A list
    that cannot be trusted is not built upon: OSError.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(os.path.join(state_dir, "enrolled.lock"), flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = os.path.join(state_dir, "enrolled")
        entries = {entry.name: entry for entry in _parse(path)}
        yield entries
        lines = [
            f"{entry.name} {entry.uid} {'administrator' if entry.administrator else 'user'}\n"
            for entry in sorted(entries.values())
        ]
        atomic_file.replace(path, "".join(lines).encode(), 0o644)
    finally:
        os.close(lock)
