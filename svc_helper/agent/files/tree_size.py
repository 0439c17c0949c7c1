"""Measure the space that a tree of files takes on its disk; only directories are opened.

Blocks are counted, not lengths, and a file with several names once. Other file systems below the tree
are not entered, and links are not followed. If the tree is too large, the time runs out, or something
cannot be read, the result is what was found so far, marked as incomplete. Runs in the agent, or in the
user's namespace.
"""

from __future__ import annotations

import errno
import os
import time

from svc_helper.agent.files import beneath
from svc_helper.agent.files.sizes import Caller, Size

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_WITHIN = beneath.NO_XDEV | beneath.NO_SYMLINKS
_ELSEWHERE = frozenset({errno.EXDEV, errno.ENOENT, errno.ENOTDIR, errno.ELOOP})  # a mount; gone or replaced
_WAITING_MAX = 100_000  # unread directories kept in memory
_NAMES_MAX = 500_000  # files with several names kept in memory
_CHECK_EVERY = 256  # directories between two checks that the caller still waits
_BLOCK = 512  # bytes; the unit of st_blocks on every file system


def measure(
    caller: Caller, base: int, path: bytes, *, seconds: float, skip: tuple[int, int] = (0, 0)
) -> Size:
    """The size of a directory below another one; raises OSError if that directory cannot be opened.

    `skip` is the device and inode of a directory that is not counted.
    """
    with beneath.closing(beneath.open_(base, path, _FLAGS, resolve=beneath.NO_SYMLINKS)) as top:
        return _Measure(caller, top, skip, time.monotonic() + seconds).run()


class _Measure:
    def __init__(self, caller: Caller, top: int, skip: tuple[int, int], until: float) -> None:
        self.caller, self.top, self.skip, self.until = caller, top, skip, until
        self.waiting = [b""]
        self.seen: set[tuple[int, int]] = set()
        self.blocks = self.files = 0
        self.complete = True

    def run(self) -> Size:
        read = 0
        while self.waiting and self._has_time():
            read += 1
            if read % _CHECK_EVERY == 0:
                self.caller.check()
            try:
                self._read(self.waiting.pop())
            except OSError as error:
                self.complete = self.complete and error.errno in _ELSEWHERE
        return Size(self.blocks * _BLOCK, self.files, self.complete)

    def _has_time(self) -> bool:
        """Asked before each name too, since one directory may hold millions of them."""
        if time.monotonic() <= self.until:
            return True
        self.complete = False
        return False

    def _read(self, path: bytes) -> None:
        with beneath.closing(beneath.open_(self.top, path, _FLAGS, resolve=_WITHIN)) as directory:
            status = os.fstat(directory)
            if (status.st_dev, status.st_ino) == self.skip:
                return
            self.blocks += status.st_blocks
            with os.scandir(directory) as entries:
                for entry in entries:
                    if not self._has_time():
                        return
                    self._count(path, entry)

    def _count(self, path: bytes, entry: os.DirEntry[str]) -> None:
        self.files += 1
        if entry.is_dir(follow_symlinks=False):
            if len(self.waiting) < _WAITING_MAX:
                name = os.fsencode(entry.name)
                self.waiting.append(path + b"/" + name if path else name)
            else:
                self.complete = False
            return
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return
        if status.st_nlink > 1 and len(self.seen) < _NAMES_MAX:
            identity = (status.st_dev, status.st_ino)
            if identity in self.seen:
                return
            self.seen.add(identity)
        self.blocks += status.st_blocks
