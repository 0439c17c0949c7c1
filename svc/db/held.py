"""Work under way: numbers that a process holds, each until its work is over or the process is gone.

A number is a byte of the file `<db>.held` that its process has locked. The kernel releases the
locks of a process when that ends, however it ends: work whose number nobody holds is done by nobody
any more. Rows keep the number of the work that they are part of.

The locks are POSIX record locks (fcntl): of a process, not of a descriptor. Closing one descriptor of
the file would release all of them, so a process has at most one, and a fork must not happen while
it is open.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from svc.errors import Maintenance
from svc.host.owner import repair_command
from svc.host.sharing import mode_beside

SUFFIX = ".held"
NUMBERS = 2**62  # random, so that no number is ever used again; a position in a file has 63 bits


class Numbers:
    """The numbers that this process holds, and whether somebody holds a number."""

    def __init__(self) -> None:
        self.database = ""  # the path; the file stands beside it
        self.lock = threading.Lock()
        self.mine: set[int] = set()
        self.descriptor = -1  # open while `mine` is not empty

    @contextmanager
    def holding(self) -> Iterator[int]:
        """Hold a new number for the length of the block; Maintenance when the file cannot be opened."""
        number = secrets.randbelow(NUMBERS)
        with self.lock:
            if not self.mine:
                self.descriptor = self._open()
            self.mine.add(number)
            fcntl.lockf(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
        try:
            yield number
        finally:
            with self.lock:
                fcntl.lockf(self.descriptor, fcntl.LOCK_UN, 1, number)
                self.mine.discard(number)
                if not self.mine:
                    os.close(self.descriptor)

    def is_held(self, number: int | None) -> bool:
        """Whether a process that lives holds the number; False for None, which a row without work has."""
        if number is None:
            return False
        with self.lock:
            if number in self.mine:
                return True
            descriptor = self.descriptor if self.mine else self._open()
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
            except (BlockingIOError, PermissionError):  # EAGAIN or EACCES, fcntl(2)
                return True
            finally:
                if not self.mine:
                    os.close(descriptor)
            if self.mine:
                fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, number)
            return False

    def _open(self) -> int:
        path = f"{self.database}{SUFFIX}"
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            try:
                return os.open(path, flags)
            except FileNotFoundError:
                return self._create(path, flags)
        except OSError as error:
            message, hint = f"{path} cannot be opened: {error.strerror}", repair_command(self.database)
            raise Maintenance(message, hint=hint, retry_after_s=5) from None

    def _create(self, path: str, flags: int) -> int:
        """Create the file, for whoever may write the database; another process may have been first."""
        descriptor = os.open(path, flags | os.O_CREAT, 0o600)
        if os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, mode_beside(self.database))
        return descriptor


numbers = Numbers()
