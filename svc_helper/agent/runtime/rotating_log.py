"""The writing side of a launcher's output: see log_files.py.

Its size is bounded: beside the file that is being written only the one before it is
kept. Written by the shim, read by any agent, also without a shim. The user can write to
the directory, so anything may lie at these names.
"""

from __future__ import annotations

import os

from svc_helper.agent.runtime import log_files
from svc_helper.agent.user_files import open_regular

FILE_BYTES = 8 * 1024 * 1024  # of each of the two
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT
_NEW = _APPEND | os.O_EXCL


class RotatingLog:
    """Appends rows. Output that cannot be written is dropped, and reported once there is space again."""

    def __init__(self, directory: str, name: str) -> None:
        self.directory, self.name = directory, name
        self._fd = -1
        self._number = 0
        self._size = 0
        self.lost = 0  # bytes dropped since the last report

    def write(self, content: bytes) -> int:
        """Append output; never waits and never raises. Returns the bytes written to the disk."""
        if self.lost and not self._report_lost():
            self.lost += len(content)
            return 0
        return self._append(log_files.rows_of(log_files.OUTPUT, content), len(content))

    def mark(self, text: str) -> None:
        """Append a marker: a line of our own."""
        if not self.lost or self._report_lost():
            self._append(log_files.rows_of(log_files.MARKER, f"{text}\n".encode()), 0)

    def _report_lost(self) -> bool:
        lost, self.lost = self.lost, 0
        text = f"{lost} bytes were lost: the disk had no room for them\n"
        if not self._append(log_files.rows_of(log_files.MARKER, text.encode()), 0):
            self.lost = lost
        return not self.lost

    def _append(self, rows: bytes, count: int) -> int:
        """Append whole rows or nothing; `count` is their output in bytes."""
        try:
            if self._fd < 0 or (self._size and self._size + len(rows) > FILE_BYTES):
                self._open_next(len(rows))
            written = os.write(self._fd, rows)
            if written < len(rows):
                os.ftruncate(self._fd, self._size)
                raise OSError("no room for all of it")
        except OSError:
            self.lost += count
            return 0
        self._size += written
        return written

    def _open_next(self, needed: int) -> None:
        """Open the newest file, or a new one if that has no room; remove those before its predecessor."""
        self.close()
        present = log_files.numbers(self.directory, self.name)
        newest = present[-1] if present else 0
        fd = open_regular(self._path(newest), _APPEND)
        size = os.fstat(fd).st_size
        if size and size + needed > FILE_BYTES:
            os.close(fd)
            newest += 1
            fd, size = open_regular(self._path(newest), _NEW), 0
        self._fd, self._number, self._size = fd, newest, size
        for number in present:
            if number < newest - 1:
                os.unlink(self._path(number))

    def _path(self, number: int) -> str:
        return log_files.path(self.directory, self.name, number)

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
