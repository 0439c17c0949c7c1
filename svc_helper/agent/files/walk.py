"""A walk through a directory, everything below it once, for an archive of it.

One directory is open at a time, however deep the tree is, and each is opened anew
from the first, link by link refused: nobody who renames something meanwhile leads
the walk elsewhere. Of those still to come only the names are kept.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Iterator
from typing import NamedTuple

from svc_helper.agent.calls import Call
from svc_helper.agent.files import beneath
from svc_helper.wire.arguments import path_text

_PATH_MAX = 4095 - 256  # bytes: with the first directory's name before it the kernel still takes it
_CHECK_EVERY = 256  # entries
_NAMES_MAX = 20  # of what was skipped
_NAMES_BYTES = 16 * 1024  # of those, encoded: they must fit a message
_LINKS_MAX, _LINKS_BYTES = 10_000, 512 * 1024  # of files with several names: 3 MB of the agent's 10
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class Found(NamedTuple):
    """A directory, or a regular file or link in it."""

    path: bytes  # below the first directory; b"" for itself
    directory: int  # the descriptor, open until the next one is asked for
    entry: os.DirEntry[str] | None  # None for the directory itself


class Walk:
    """What is below a directory; each directory comes before what is in it, and all that directly after it.

    Left out and noted are: what is neither file, directory nor link, what may not
    be read, what is mounted there, what has too long a path. svc's own drafts are
    not there at all.
    """

    def __init__(self, call: Call, base: int) -> None:
        self.call, self.base = call, base
        self.skipped = self.gone = 0
        self.skipped_names: list[str] = []
        self._room = _NAMES_BYTES
        self._seen = 0

    def __iter__(self) -> Generator[Found, None, None]:
        waiting: list[
            tuple[bytes, bytearray]
        ] = []  # what stands before the names; the names, each with a NUL
        path = b""
        while True:
            below = bytearray()
            yield from self._enter(path, below)
            if below:
                waiting.append((path + b"/" if path else b"", below))
            while waiting and not waiting[-1][1]:
                waiting.pop()
            if not waiting:
                return
            before, names = waiting[-1]
            start = names.rfind(b"\0", 0, -1) + 1
            path = before + bytes(names[start:-1])
            del names[start:]

    def _enter(self, path: bytes, below: bytearray) -> Iterator[Found]:
        directory = self._open(path)
        if directory is None:
            return
        try:
            yield Found(path, directory, None)
            with os.scandir(directory) as entries:
                yield from self._look(path + b"/" if path else b"", directory, entries, below)
        except OSError as error:  # of scandir
            self._note(path, error)
        finally:
            os.close(directory)

    def _look(
        self, before: bytes, directory: int, entries: Iterator[os.DirEntry[str]], below: bytearray
    ) -> Iterator[Found]:
        for entry in entries:
            self._seen += 1
            if self._seen % _CHECK_EVERY == 0:
                self.call.check()
            name = os.fsencode(entry.name)
            if beneath.is_draft(name):
                continue
            path = before + name
            if len(path) > _PATH_MAX:
                self.skip(path)
            elif entry.is_dir(follow_symlinks=False):
                below += name + b"\0"
            elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                yield Found(path, directory, entry)
            else:
                self.skip(path)

    def _open(self, path: bytes) -> int | None:
        try:
            flags = os.O_RDONLY | os.O_DIRECTORY
            return beneath.open_(self.base, path, flags, resolve=beneath.NO_XDEV | beneath.NO_SYMLINKS)
        except OSError as error:
            self._note(path, error)
            return None

    def open_file(self, found: Found) -> int | None:
        """The descriptor of a file; None, and noted, for one that is not to be had."""
        if found.entry is None:
            return None
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
        try:
            return beneath.open_(
                found.directory, os.fsencode(found.entry.name), flags, resolve=beneath.NO_XDEV
            )
        except OSError as error:
            self._note(found.path, error)
            return None

    def _note(self, path: bytes, error: OSError) -> None:
        if error.errno in _SCARCE:
            raise error
        if error.errno in _GONE:
            self.gone += 1
        else:
            self.skip(path)

    def skip(self, path: bytes) -> None:
        """Note what is left out."""
        self.skipped += 1
        name = path_text(path)
        if len(self.skipped_names) < _NAMES_MAX and len(name) <= self._room:
            self._room -= len(name)
            self.skipped_names.append(name)


class Links:
    """The files with several names that have been met, and the first of each one's names.

    Of very many not all are remembered: those then count, and are archived, once per name.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[int, int], bytes] = {}
        self._room = _LINKS_BYTES

    def find(self, facts: os.stat_result) -> bytes | None:
        """The name by which this file was met before."""
        return self._names.get((facts.st_dev, facts.st_ino)) if facts.st_nlink > 1 else None

    def add(self, facts: os.stat_result, name: bytes) -> None:
        """Remember the file by this name."""
        if facts.st_nlink > 1 and len(self._names) < _LINKS_MAX and len(name) <= self._room:
            self._room -= len(name)
            self._names[facts.st_dev, facts.st_ino] = name
