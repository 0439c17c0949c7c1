"""Walk a directory tree for an archive, each entry once.

One directory is open at a time, whatever the depth. Each is opened by its path from
the first one with links refused, so that renames meanwhile do not lead the walk out of
the tree. Of directories not yet visited only the names are kept.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Iterator

from svc_helper.agent.calls import Call
from svc_helper.agent.files import beneath
from svc_helper.agent.files.namespace import Namespace
from svc_helper.wire.arguments import path_text
from svc_helper.wire.quick_typing import NamedTuple

_PATH_MAX = 4095 - 256  # bytes, so that the kernel accepts it with the first directory's name before it
_CHECK_EVERY = 256  # entries
_NAMES_MAX = 20  # of skipped entries
_NAMES_BYTES = 16 * 1024  # of these, encoded: they must fit into a message
_LINKS_MAX, _LINKS_BYTES = 10_000, 512 * 1024  # of files with several names: 3 MB of the agent's 10
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_FILE = os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
_SCARCE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class Found(NamedTuple):
    """A directory, or a regular file or link in it."""

    path: bytes  # below the first directory; b"" is that directory
    directory: int  # a descriptor, open until the next directory is visited
    entry: os.DirEntry[str] | None  # None for the directory itself
    name: bytes = b""  # of the entry


class Walk:
    """The entries below a directory, each directory directly followed by its contents.

    Skipped and counted are other types than file, directory and link, entries that are
    not readable, mount points, and too long paths. Incomplete uploads are ignored.
    """

    def __init__(self, call: Call, base: int, namespace: Namespace) -> None:
        self.call, self.base, self.namespace = call, base, namespace
        self.uid = os.geteuid()
        self._open_name = beneath.opener(os.O_RDONLY | _FILE, beneath.NO_XDEV)
        self.skipped = self.gone = 0
        self.skipped_names: list[str] = []
        self._room = _NAMES_BYTES
        self._seen = 0

    def __iter__(self) -> Generator[Found, None, None]:
        # Directories not yet visited: the prefix of their paths, and their names, each with a NUL.
        waiting: list[tuple[bytes, bytearray]] = []
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
        opened = self._open(self.base, path, os.O_DIRECTORY, beneath.NO_SYMLINKS, path)
        if opened is None:
            return
        with beneath.closing(opened) as directory:
            yield Found(path, directory, None)
            try:
                with os.scandir(directory) as entries:
                    yield from self._read(path + b"/" if path else b"", directory, entries, below)
            except OSError as error:
                self._count(path, error)

    def _read(
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
            elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                yield Found(path, directory, entry, name)
            elif entry.is_dir(follow_symlinks=False):
                below += name + b"\0"
            else:
                self.skip(path)

    def open_file(self, found: Found) -> int | None:
        """The descriptor of a file; None, and counted, if it cannot be opened."""
        if found.entry is None:
            return None
        opened = self._open_name(found.directory, found.name)
        return opened if opened >= 0 else self._open(found.directory, found.name, _FILE, 0, found.path)

    def _open(self, directory: int, name: bytes, flags: int, resolve: int, path: bytes) -> int | None:
        try:
            return self.namespace.open_(
                directory, name, os.O_RDONLY | flags, resolve=beneath.NO_XDEV | resolve
            )
        except OSError as error:
            self._count(path, error)
            return None

    def _count(self, path: bytes, error: OSError) -> None:
        """Count an entry that cannot be read; raises the error if the process lacks resources."""
        if error.errno in _SCARCE:
            raise error
        if error.errno in _GONE:
            self.gone += 1
        else:
            self.skip(path)

    def skip(self, path: bytes) -> None:
        """Count an entry that is left out, and keep its name."""
        self.skipped += 1
        name = path_text(path)
        if len(self.skipped_names) < _NAMES_MAX and len(name) <= self._room:
            self._room -= len(name)
            self.skipped_names.append(name)


class Links:
    """The first name of each visited file that has several hard links.

    The number is limited: further files are counted and archived once per name.
    """

    def __init__(self) -> None:
        self._names: dict[tuple[int, int], bytes] = {}
        self._room = _LINKS_BYTES

    def find(self, status: os.stat_result) -> bytes | None:
        """The name under which this file was added."""
        return self._names.get((status.st_dev, status.st_ino)) if status.st_nlink > 1 else None

    def add(self, status: os.stat_result, name: bytes) -> None:
        """Remember the file under this name."""
        if status.st_nlink > 1 and len(self._names) < _LINKS_MAX and len(name) <= self._room:
            self._room -= len(name)
            self._names[status.st_dev, status.st_ino] = name
