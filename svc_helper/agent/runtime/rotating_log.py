"""A launcher's output on disk: the newest part in NAME.log, the part before it in NAME.log.1.

The size is bounded: a full NAME.log replaces NAME.log.1. Written by the shim,
read by any agent, also without a shim. The user can write to the directory, so
anything may lie at these names.
"""

from __future__ import annotations

import os

from svc_helper.agent.user_files import open_regular

FILE_BYTES = 1024 * 1024  # of each of the two
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT
_TRIES = 5


class RotatingLog:
    """The writing side. Output that cannot be written is dropped, and reported once there is space again."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1
        self._size = 0
        self._in_line = False  # the last byte was not a newline
        self.lost = 0  # bytes dropped since the last report

    def write(self, content: bytes) -> None:
        """Append output; never waits and never raises."""
        if self.lost and not self._report_lost():
            self.lost += len(content)
            return
        self._append(content)

    def note(self, text: str) -> None:
        """Append a line of our own, `-- text --`."""
        self.write((b"\n" if self._in_line else b"") + f"-- {text} --\n".encode())

    def _report_lost(self) -> bool:
        lost, self.lost = self.lost, 0
        self.note(f"{lost} bytes were lost: the disk had no room for them")
        if self.lost:
            self.lost = lost
        return not self.lost

    def _append(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            try:
                if self._fd < 0 or self._size >= FILE_BYTES:
                    self._open_next()
                count = os.write(self._fd, rest[: FILE_BYTES - self._size])
            except OSError:
                self.lost += len(rest)
                return
            self._size += count
            self._in_line = rest[count - 1] != ord("\n")
            rest = rest[count:]

    def _open_next(self) -> None:
        """Open NAME.log, after rotating it when it is full."""
        self.close()
        fd = open_regular(self.path, _APPEND)
        status = os.fstat(fd)
        if status.st_size >= FILE_BYTES:
            os.close(fd)
            os.replace(self.path, f"{self.path}.1")
            fd = open_regular(self.path, _APPEND)
            status = os.fstat(fd)
        self._fd, self._size = fd, status.st_size

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def read(path: str, limit: int) -> tuple[bytes, bool]:
    """The newest bytes of both files, at most `limit`, and whether there were more."""
    files: list[int] = []
    try:
        files = _open_both(path)
        sizes = [min(os.fstat(fd).st_size, FILE_BYTES) for fd in files]
        skip = max(0, sum(sizes) - limit)
        content = b""
        for fd, size in zip(files, sizes, strict=True):
            passed = min(skip, size)
            skip -= passed
            content += os.pread(fd, size - passed, passed)
        return content, sum(sizes) > limit
    finally:
        for fd in files:
            os.close(fd)


def _open_both(path: str) -> list[int]:
    """The files that exist, the older first; never the same file twice."""
    for _ in range(_TRIES):
        files = []
        for name in (path, f"{path}.1"):
            try:
                files.append(open_regular(name))
            except OSError:
                continue
        # The newest was rotated between the two calls.
        if len(files) == 2 and os.path.sameopenfile(*files):
            os.close(files.pop())
            os.close(files.pop())
            continue
        return files[::-1]
    return []
