"""A launcher's output on disk: the newest in NAME.log, what came before it in NAME.log.1.

Bounded by that: a NAME.log that is full takes the other's place. Written by the
shim, read by whoever asks, also when no shim runs. The directory is the
user's, so whatever is at these names may be anything.
"""

from __future__ import annotations

import os
import stat

RING_BYTES = 1024 * 1024  # of each of the two
_CREATE = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_TRIES = 5


class Ring:
    """The writing side. What cannot be written is dropped, and that is said once there is room again."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd = -1
        self._size = 0
        self._in_line = False  # the last byte was no line's end
        self.lost = 0  # bytes that the disk had no room for

    def write(self, content: bytes) -> None:
        """Take output as it comes; never waits and never raises."""
        if self.lost and not self._say_lost():
            self.lost += len(content)
            return
        self._append(content)

    def note(self, text: str) -> None:
        """A line of our own, `-- text --`, at the start of a line."""
        self.write((b"\n" if self._in_line else b"") + f"-- {text} --\n".encode())

    def _say_lost(self) -> bool:
        lost, self.lost = self.lost, 0
        line = (
            f"{chr(10) if self._in_line else ''}-- {lost} bytes were lost: the disk had no room for them --\n"
        )
        self._append(line.encode())
        if self.lost:
            self.lost = lost
        return not self.lost

    def _append(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            try:
                if self._fd < 0 or self._size >= RING_BYTES:
                    self._turn_over()
                count = os.write(self._fd, rest[: RING_BYTES - self._size])
            except OSError:
                self.lost += len(rest)
                return
            self._size += count
            self._in_line = rest[count - 1] != ord("\n")
            rest = rest[count:]

    def _turn_over(self) -> None:
        """Open NAME.log, in whose place there is a new one when it is full."""
        self.close()
        fd = _open_file(self.path, _CREATE)
        status = os.fstat(fd)
        if status.st_size >= RING_BYTES:
            os.close(fd)
            os.replace(self.path, f"{self.path}.1")
            fd = _open_file(self.path, _CREATE)
            status = os.fstat(fd)
        self._fd, self._size = fd, status.st_size

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _open_file(path: str, flags: int) -> int:
    fd = os.open(path, flags, 0o600)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError("not a regular file")
    return fd


def read(path: str, limit: int) -> tuple[bytes, bool]:
    """The newest bytes of both files, at most limit, and whether there were more."""
    files: list[int] = []
    try:
        files = _open_both(path)
        sizes = [min(os.fstat(fd).st_size, RING_BYTES) for fd in files]
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
    """Those of the two files that are there, the older first, of one and the same moment."""
    for _ in range(_TRIES):
        files = []
        for name in (path, f"{path}.1"):
            try:
                files.append(_open_file(name, _READ))
            except OSError:
                continue
        # The newest became the older one between the two looks?
        if len(files) == 2 and os.path.sameopenfile(*files):
            os.close(files.pop())
            os.close(files.pop())
            continue
        return files[::-1]
    return []
