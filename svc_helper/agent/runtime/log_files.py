"""A program's output on disk: rows in numbered files, NAME.0.log, NAME.1.log and so on, each used once.

A row is conmon's, with a head of fixed length: `TIME STREAM F TEXT`. `P` instead of `F`
means that the text goes on without a newline. The stream is stdout, stderr, `output`
(both through one pipe) or `marker`, a line of our own. So each byte of the output has a
time, a stream and a position: the number of its file and the offset of its row, which stay
the same for as long as the file is kept. The user can write to the directory.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator

from svc_helper.agent.user_files import open_regular
from svc_helper.wire.log_frames import FLAG, HEAD, PARTIAL, STREAM, WHOLE
from svc_helper.wire.log_frames import MARKER as MARKER
from svc_helper.wire.quick_typing import NamedTuple

PART = 256 * 1024  # bytes read at once
ROW_MAX = 1024 * 1024  # conmon's have 8 KiB, a shim's 64 KiB; longer ones are nobody's
OUTPUT = b"output"
_TIME = 35  # bytes
_MOMENT = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{18}[+-][0-9]{2}:[0-9]{2}")
TIMED = _TIME + 1  # bytes before each line with times
_NUMBER = r"\.(\d{1,15})\.log"
_NAMES_MAX = 4096
_TRIES = 5


class Position(NamedTuple):
    """The beginning of a row, or the end of a file."""

    number: int
    offset: int


def path(directory: str, name: str, number: int) -> str:
    """The path of one file."""
    return f"{directory}/{name}.{number}.log"


def numbers(directory: str, name: str) -> list[int]:
    """The numbers of the files, in order."""
    pattern = re.compile(re.escape(name) + _NUMBER)
    try:
        found = [pattern.fullmatch(entry) for entry in os.listdir(directory)[:_NAMES_MAX]]
    except FileNotFoundError:
        return []
    return sorted(int(match[1]) for match in found if match)


def row_head(stream: bytes) -> bytes:
    """The head of a row that is written now, up to the flag."""
    now = time.time_ns()
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now // 10**9))
    return f"{moment}.{now % 10**9:09d}+00:00 ".encode() + stream + b" "


def rows_of(stream: bytes, content: bytes) -> bytes:
    """The rows of some output."""
    head = row_head(stream)
    *lines, rest = content.split(b"\n")
    rows = [head + WHOLE + line + b"\n" for line in lines]
    if rest:
        rows.append(head + PARTIAL + rest + b"\n")
    return b"".join(rows)


def output_of(rows: bytes) -> bytes:
    """The output in some rows, without markers."""
    parts: list[bytes] = []
    for row in rows.split(b"\n"):
        flag = row[FLAG]
        if flag == PARTIAL:
            parts.append(row[HEAD:])
        elif flag == WHOLE and row[STREAM] != MARKER:
            parts += (row[HEAD:], b"\n")
    return b"".join(parts)


class Timed:
    """As output_of(), with the time of its first row before each line; goes on over several calls."""

    def __init__(self) -> None:
        self.begins = True  # a line begins with the next row

    def output_of(self, rows: bytes) -> bytes:
        """The output in some rows."""
        parts: list[bytes] = []
        for row in rows.split(b"\n"):
            flag = row[FLAG]
            if flag == PARTIAL or (flag == WHOLE and row[STREAM] != MARKER):
                parts += [_time_of(row)] if self.begins else []
                parts += (row[HEAD:], b"\n" if flag == WHOLE else b"")
                self.begins = flag == WHOLE
        return b"".join(parts)


def renderer(*, times: bool) -> Callable[[bytes], bytes]:
    """A new function that gives the output in some rows, with times or without."""
    return Timed().output_of if times else output_of


def _time_of(row: bytes) -> bytes:
    """The time in the head of a row; whoever may write to the file may have written another head."""
    return (row[:_TIME] if _MOMENT.fullmatch(row[:_TIME]) else b"-".rjust(_TIME)) + b" "


def pieces_of(rows: bytes, output_of: Callable[[bytes], bytes] = output_of) -> Iterator[tuple[bytes, bytes]]:
    """The output in some rows and the markers between: (OUTPUT or MARKER, text)."""
    if MARKER not in rows:
        yield OUTPUT, output_of(rows)
        return
    since: list[bytes] = []
    for row in rows.split(b"\n"):
        if row[STREAM] == MARKER and row[FLAG] == WHOLE:
            yield OUTPUT, output_of(b"\n".join(since))
            yield MARKER, row[HEAD:]
            since = []
        else:
            since.append(row)
    yield OUTPUT, output_of(b"\n".join(since))


class Files:
    """The kept files, open: the newest ones without a gap. To be closed."""

    def __init__(self, directory: str, name: str) -> None:
        self._fds: dict[int, int] = {}
        for _ in range(_TRIES):
            try:
                self._open(directory, name)
                break
            except FileNotFoundError:  # removed since it was listed
                self.close()
        self.first = Position(min(self._fds, default=0), 0)
        self.end = self._end()

    def __enter__(self) -> Files:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def empty(self) -> bool:
        """Whether there are none."""
        return not self._fds

    def close(self) -> None:
        """Close them."""
        while self._fds:
            os.close(self._fds.popitem()[1])

    def _open(self, directory: str, name: str) -> None:
        newest = 0
        for number in reversed(numbers(directory, name)):
            if self._fds and number != newest - 1:
                break
            try:
                self._fds[number] = open_regular(path(directory, name, number))
            except FileNotFoundError:
                raise
            except OSError:  # no file of ours
                break
            newest = number

    def _end(self) -> Position:
        """The end of the last complete row."""
        for number in sorted(self._fds, reverse=True):
            if size := os.fstat(self._fds[number]).st_size:
                return Position(number, self._end_of_rows(number, size))
        return self.first

    def _end_of_rows(self, number: int, size: int) -> int:
        """The end of the last complete row in the first `size` bytes of a file."""
        length = min(size, ROW_MAX)
        return size - length + os.pread(self._fds[number], length, size - length).rfind(b"\n") + 1

    def forward(self, start: Position, end: Position) -> Iterator[bytes]:
        """The rows between two positions, many at once."""
        return (rows for _, rows in self.located(start, end))

    def located(self, start: Position, end: Position) -> Iterator[tuple[Position, bytes]]:
        """The rows between two positions, many at once, each time with the position of the first."""
        for number in range(start.number, end.number + 1):
            if (fd := self._fds.get(number)) is None:
                continue
            at = start.offset if number == start.number else 0
            stop = end.offset if number == end.number else os.fstat(fd).st_size
            rest = b""
            while at < stop and (part := os.pread(fd, min(PART, stop - at), at)):
                first = Position(number, at - len(rest))
                at += len(part)
                rows, newline, rest = (rest + part).rpartition(b"\n")
                if newline:
                    yield first, rows
                elif len(rest) > ROW_MAX:
                    rest = b""

    def backward(self) -> Iterator[tuple[Position, list[bytes]]]:
        """The rows before the end, the last ones first: many at once with the position after them."""
        for number in sorted(self._fds, reverse=True):
            if number > self.end.number:
                continue
            fd = self._fds[number]
            size = self.end.offset if number == self.end.number else os.fstat(fd).st_size
            stop = self._end_of_rows(number, size) if size else 0
            length = PART
            while stop > 0:
                part = os.pread(fd, min(length, stop), max(0, stop - length))
                cut = 0 if len(part) == stop else part.find(b"\n") + 1
                if cut < len(part):
                    yield Position(number, stop), part[cut:-1].split(b"\n")
                    stop, length = stop - len(part) + cut, PART
                elif part and length < ROW_MAX:
                    length *= 2  # no row begins in it
                else:
                    stop -= length


class Start(NamedTuple):
    """Where some of the output begins."""

    position: Position
    truncated: bool  # by `most`: more was asked for, and is kept


def find_start(
    files: Files, tail: int | None, most: int | None, check: Callable[[], None], before_line: int = 0
) -> Start:
    """Where the last `tail` lines begin, at most `most` bytes; None stands for no limit.

    A line ends with a newline; the last one may lack it. What two streams write into one
    line is one, as everywhere where both are printed. `check` is called from time to time; `before_line` are
    bytes that `most` counts for each line.
    """
    left = None  # newlines to pass
    size = 0
    for position, rows in files.backward() if (tail, most) != (None, None) else ():
        check()
        at = position.offset
        for row in reversed(rows):
            flag = row[FLAG]
            if flag in (WHOLE, PARTIAL) and row[STREAM] != MARKER:
                ends_line = flag == WHOLE
                if left is None and tail is not None:
                    left = tail + ends_line
                if left is not None:
                    left -= ends_line
                size += len(row) - HEAD + ends_line * (1 + before_line)
                if left == 0 and (ends_line or tail == 0):
                    return Start(Position(position.number, at), False)
                if most is not None and size + before_line > most:
                    return Start(Position(position.number, at), True)
            at -= len(row) + 1
    return Start(files.first, False)
