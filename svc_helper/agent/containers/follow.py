"""Follows the output of a container or a launcher.

Both are files that conmon or a shim writes and replaces when full: conmon by a
new file of the same name, the shim after renaming the old one. The open file is
read to its end first, so a reader that keeps up loses nothing; a slow one loses
the middle, and the writer never waits. Files are polled five times a second.
"""

from __future__ import annotations

import codecs
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from svc_helper.agent import paths
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import logs, running
from svc_helper.agent.containers.running import First
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import crun, launcher_states, records, userns_open
from svc_helper.agent.user_files import open_regular
from svc_helper.wire.limits import LOG_BYTES_MAX

FOLLOWS_MAX = 8  # of one user at once, so that other calls have places
_PAUSE_S = 0.2
_PART = 64 * 1024
_ROW_MAX = 64 * 1024
_PIECE_MAX = 32 * 1024  # bytes of one message
_ESCAPED_MAX = 60 * 1024  # as JSON, where a control character takes six bytes
_TRIES = 5
_CONMON_S = 2.0  # for conmon to write a container's last output

_places = threading.BoundedSemaphore(FOLLOWS_MAX)


def follow(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Send the last `tail` lines and all later output, in progress messages {"text"}.

    Ends when the caller goes, or with {"ended": true} when the container (with
    `launcher`, that launcher) has ended and all is sent. Raises Failure
    `not_found` for one that never ran.
    """
    if not _places.acquire(blocking=False):
        raise Failure("unavailable", "too many outputs are being followed at once")
    try:
        if args["launcher"] is None:
            source: Source | None = _container(podman, call, args["id"])
        else:
            source = _Launcher(podman, call, args["id"], args["launcher"])
        if source is not None:
            _follow(call, source, args["tail"])
    finally:
        _places.release()
    return {"ended": True}


def _follow(call: Call, source: Source, tail: int) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def send(content: bytes, *, final: bool = False) -> None:
        for text in _pieces(decoder.decode(content, final)):
            call.progress({"text": text}, wait=True)

    try:
        fd = source.open()
    except FileNotFoundError:
        return  # created, but never started
    try:
        content, at = source.start(fd, tail)
        send(content)
        while True:
            ended = source.has_ended()  # checked before reading, so that all output before the end is read
            replaced = source.is_replaced(fd)  # likewise
            at = _read_on(call, source, fd, at, send)
            if replaced:
                os.close(fd)
                fd, at = -1, 0
                fd = _reopened(call, source)
            elif ended:
                break
            else:
                call.sleep(_PAUSE_S)
        send(b"", final=True)
    except FileNotFoundError:
        return  # removed meanwhile
    finally:
        if fd >= 0:
            os.close(fd)


def _read_on(call: Call, source: Source, fd: int, at: int, send: Callable[[bytes], None]) -> int:
    """Send what has been added; the new offset."""
    if os.fstat(fd).st_size < at:
        at = 0  # the file was truncated
    while part := os.pread(fd, _PART, at):
        at += len(part)
        send(source.output(part))
        call.check()
    return at


def _reopened(call: Call, source: Source) -> int:
    for _ in range(_TRIES):
        try:
            return source.open()
        except FileNotFoundError:
            call.sleep(_PAUSE_S)  # being replaced once more
    return source.open()


def _pieces(text: str) -> Iterator[str]:
    while text:
        piece = text[:_PIECE_MAX]
        while len(piece.encode()) > _PIECE_MAX or len(json.dumps(piece)) > _ESCAPED_MAX:
            piece = piece[: len(piece) // 2]
        yield piece
        text = text[len(piece) :]


# --- a container -----------------------------------------------------------------------------


def _container(podman: Podman, call: Call, workspace_id: str) -> Source | None:
    """None for a container that was created but never started."""
    first = running.find(podman, call, workspace_id)
    record = records.recall(podman.home, workspace_id)
    return None if record is None else _Container(podman, record, first)


class _Container:
    """The file of rows that conmon writes; for their format see logs.tail_of()."""

    def __init__(self, podman: Podman, record: records.Record, first: First | None) -> None:
        self.podman, self.first = podman, first
        self.path = f"{record.bundle}/ctr.log"
        self.exits = f"{podman.home.runtime}/libpod/tmp/exits/{record.container_id}"
        self.rest = b""  # of an incomplete row
        self.ended_at: float | None = None

    def open(self) -> int:
        """Open the current file; raises OSError."""
        self.rest = b""
        try:
            return open_regular(self.path)
        except PermissionError:  # the file of a container with ids of its own
            return userns_open.open_inside(self.podman.home, self.path)

    def is_replaced(self, fd: int) -> bool:
        """Whether later output goes to another file."""
        return os.fstat(fd).st_nlink == 0

    def has_ended(self) -> bool:
        """Whether the file is complete."""
        if self.first is None:
            return True
        if crun.start_time(self.first.pid) == self.first.started:
            return False
        now = time.monotonic()
        self.ended_at = self.ended_at or now
        # The first process may have ended before conmon has written all output; then conmon writes this file.
        return os.path.exists(self.exits) or now - self.ended_at > _CONMON_S

    def start(self, fd: int, tail: int) -> tuple[bytes, int]:
        """The last lines, and the offset to continue at."""
        size = os.fstat(fd).st_size
        last = os.pread(fd, _PART, max(0, size - _PART))
        end = size - len(last) + last.rfind(b"\n") + 1  # of the last complete row
        lines, _ = logs.tail_lines(fd, end, tail)
        final = last[: last.rfind(b"\n") + 1].splitlines()[-1:]
        unfinished = bool(final) and final[0].split(b" ", 3)[2:3] == [b"P"]
        content = b"\n".join(lines) + (b"\n" if lines and not unfinished else b"")
        return content[-LOG_BYTES_MAX:], end

    def output(self, raw: bytes) -> bytes:
        """The output in a part of the file."""
        *rows, self.rest = (self.rest + raw).split(b"\n")
        self.rest = self.rest[:_ROW_MAX]
        lines = []
        for row in rows:
            parts = row.split(b" ", 3)
            if len(parts) == 4 and parts[2] in (b"F", b"P"):
                lines.append(parts[3] if parts[2] == b"P" else parts[3] + b"\n")
        return b"".join(lines)


# --- a launcher --------------------------------------------------------------------------------


class _Launcher:
    """The file of bytes that the shim writes: see runtime/rotating_log.py. Methods as of _Container."""

    def __init__(self, podman: Podman, call: Call, workspace_id: str, name: str) -> None:
        self.first = running.find(podman, call, workspace_id)
        self.directory = paths.launchers(podman.home.home, workspace_id)
        self.name = name
        self.path = f"{self.directory}/{name}.log"
        if not os.path.lexists(self.path) and launcher_states.read(self.directory, name) is None:
            raise Failure("not_found", "the launcher was never started")

    def open(self) -> int:
        return open_regular(self.path)

    def is_replaced(self, fd: int) -> bool:
        try:
            return not os.path.samestat(os.stat(self.path, follow_symlinks=False), os.fstat(fd))
        except FileNotFoundError:
            return False  # the old one is renamed, the new one not created yet

    def has_ended(self) -> bool:
        if self.first is None or crun.start_time(self.first.pid) != self.first.started:
            return True
        state = launcher_states.read(self.directory, self.name)
        return state is None or state.state != launcher_states.STARTED

    def start(self, fd: int, tail: int) -> tuple[bytes, int]:
        end = os.fstat(fd).st_size
        content = self._older(fd) + os.pread(fd, LOG_BYTES_MAX, max(0, end - LOG_BYTES_MAX))
        lines = content[-LOG_BYTES_MAX:].split(b"\n")
        count = tail + 1 if lines[-1] == b"" else tail  # the last item is no line after a newline
        return b"\n".join(lines[-count:]), end

    def _older(self, fd: int) -> bytes:
        """The content of the older file; empty when the open file has just been renamed to it."""
        try:
            older = open_regular(f"{self.path}.1")
        except OSError:
            return b""
        try:
            if os.path.sameopenfile(older, fd):
                return b""
            size = os.fstat(older).st_size
            return os.pread(older, LOG_BYTES_MAX, max(0, size - LOG_BYTES_MAX))
        finally:
            os.close(older)

    def output(self, raw: bytes) -> bytes:
        return raw


Source = _Container | _Launcher
