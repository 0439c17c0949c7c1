"""The enrolment list: the accounts that the helper acts for, in a file of root's.

`<state_dir>/enrolled` has one line per account, `name uid user|administrator`.
It is separate from the app's database: a compromised app cannot add an account. A name
and its uid belong together, so that a uid that is reused enrols nobody.
"""

from __future__ import annotations

import os
import pwd
import re
import stat
from typing import NamedTuple

from svc_helper.root.log import log
from svc_helper.wire.limits import USER_NAME

LINE = re.compile(rf"({USER_NAME}) ([1-9][0-9]{{0,9}}) (user|administrator)")
NOBODY = (65534, 65535, 2**32 - 2, 2**32 - 1)  # the overflow ids, and -1, of 16 and 32 bits
SIZE_MAX = 4 * 1024 * 1024


class Entry(NamedTuple):
    """One enrolled account."""

    name: str
    uid: int
    administrator: bool


class Enrolment:
    """The list, read again whenever the file changes."""

    def __init__(self, state_dir: str) -> None:
        self.path = os.path.join(state_dir, "enrolled")
        self.version: tuple[int, int, int] | None = None
        self.entries: dict[str, Entry] = {}

    def find(self, name: str | None) -> Entry | None:
        """The entry of that name, if it is enrolled."""
        self._refresh()
        return self.entries.get(name or "")

    def find_administrator(self, uid: int) -> Entry | None:
        """The entry of an administrator with that uid."""
        self._refresh()
        found = (entry for entry in self.entries.values() if entry.uid == uid and entry.administrator)
        return next(found, None)

    def _refresh(self) -> None:
        try:
            status = os.stat(self.path, follow_symlinks=False)
        except FileNotFoundError:
            self.version, self.entries = None, {}
            return
        version = (status.st_ino, status.st_mtime_ns, status.st_size)
        if version != self.version:
            self.entries = {entry.name: entry for entry in read(self.path)}
            self.version = version


class SingleUser:
    """The list in single-user mode: one account, administrator of itself."""

    def __init__(self, uid: int) -> None:
        self.entry = Entry(pwd.getpwuid(uid).pw_name, uid, True)

    def find(self, name: str | None) -> Entry | None:
        """The entry, if that is its name."""
        return self.entry if name == self.entry.name else None

    def find_administrator(self, uid: int) -> Entry | None:
        """The entry, if that is its uid."""
        return self.entry if uid == self.entry.uid else None


def read(path: str) -> list[Entry]:
    """The entries of the file; none, and a critical line in the log, if others than root may write it."""
    try:
        return parse(path)
    except OSError as error:
        log("the enrolment list cannot be trusted; nobody is enrolled", "critical", why=str(error))
        return []


def parse(path: str) -> list[Entry]:
    """The entries; raises OSError if the file cannot be read or others than root may write it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return []
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != 0 or status.st_mode & 0o022:
            raise PermissionError(f"{path} must be a file that only root may write")
        text = os.read(descriptor, SIZE_MAX).decode("ascii", "replace")
    finally:
        os.close(descriptor)
    found = [LINE.fullmatch(line) for line in text.split("\n") if line]
    entries = [Entry(match[1], int(match[2]), match[3] == "administrator") for match in found if match]
    if len(entries) != len(found):
        log("the enrolment list has invalid lines", "error", path=path)
    return [entry for entry in entries if entry.uid not in NOBODY]
