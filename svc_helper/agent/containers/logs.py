"""A container's output, out of the bounded file that conmon writes.

Read straight from that file where the agent can: it works for a stopped
workspace and needs no Podman. A container with ids of its own keeps the file to
itself; then Podman is asked.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Any

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import containers
from svc_helper.agent.containers.spec import container_name
from svc_helper.agent.podman.http import not_understood, whole
from svc_helper.agent.podman.podman import LIBPOD, Podman, refusal
from svc_helper.agent.runtime import records
from svc_helper.wire.limits import LOG_BYTES_MAX

_LINE_EXTRA = 64  # a line of the file is that much longer than what it says: time, stream, flag
_FIRST_READ = 64 * 1024
_FRAME_HEAD = 8


def logs(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """The last `tail` lines of both streams, at most 1 MiB; `truncated` when that limit cut them."""
    record = records.recall(podman.home, args["id"])
    if record is None:
        if containers.look(podman, call, args["id"]) is None:
            raise Failure("not_found", "the container does not exist")
        record = records.recall(podman.home, args["id"])
    if record is None:
        return {"text": "", "truncated": False}  # made, and never started
    try:
        content, truncated = _from_file(f"{record.bundle}/ctr.log", args["tail"])
    except OSError:
        content, truncated = _from_podman(podman, call, args["id"], args["tail"])
    return {"text": content.decode(errors="replace"), "truncated": truncated}


def _from_file(path: str, tail: int) -> tuple[bytes, bool]:
    fd = open_regular(path)
    try:
        lines, cut = tail_lines(fd, os.fstat(fd).st_size, tail)
    finally:
        os.close(fd)
    return _bounded(lines, cut=cut)


def open_regular(path: str) -> int:
    """Open a file of the user's for reading; raises OSError for anything else that lies there.

    A FIFO must not block, a device not be touched.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError("not a regular file")
    return fd


def tail_lines(fd: int, size: int, tail: int) -> tuple[list[bytes], bool]:
    """The last lines of the rows in the file's first `size` bytes, and whether a limit cut them."""
    limit = min(size, LOG_BYTES_MAX + tail * _LINE_EXTRA)
    length = min(_FIRST_READ, limit)
    while True:
        raw = os.pread(fd, length, size - length)
        lines = tail_of(raw, tail + 1, from_start=length == size)
        # One more than wanted: the first may have begun before the part that was read.
        if len(lines) > tail or length >= limit:
            return lines[-tail:], len(lines) < tail and length < size
        length = min(length * 4, limit)


def tail_of(raw: bytes, tail: int, *, from_start: bool) -> list[bytes]:
    """The last lines of raw rows `TIME STREAM F|P TEXT`, where P goes on in the stream's next row."""
    rows = raw.split(b"\n")
    if not from_start:
        rows = rows[1:]  # cut somewhere in the middle
    lines: list[list[bytes]] = []
    unfinished: dict[bytes, list[bytes]] = {}  # by stream
    for row in rows:
        parts = row.split(b" ", 3)
        if len(parts) < 4 or parts[2] not in (b"F", b"P"):
            continue
        line = unfinished.pop(parts[1], None)
        if line is None:
            line = []
            lines.append(line)
        line.append(parts[3])
        if parts[2] == b"P":
            unfinished[parts[1]] = line
    return [b"".join(line) for line in lines[-tail:]]


def _bounded(lines: list[bytes], *, cut: bool) -> tuple[bytes, bool]:
    content = b"".join(line + b"\n" for line in lines)
    return content[-LOG_BYTES_MAX:], cut or len(content) > LOG_BYTES_MAX


def _from_podman(podman: Podman, call: Call, workspace_id: str, tail: int) -> tuple[bytes, bool]:
    query = f"stdout=true&stderr=true&tail={tail}"
    path = f"{LIBPOD}/containers/{container_name(workspace_id)}/logs?{query}"
    with podman.open(call, "GET", path) as wire:
        status, parts = wire.answer()
        if status == 404:
            raise Failure("not_found", "the container does not exist")
        if status != 200:
            raise refusal(call, whole(parts, LOG_BYTES_MAX).decode(errors="replace"))
        kept = bytearray()
        truncated = False
        for piece in frames(parts):
            kept += piece
            if len(kept) > 2 * LOG_BYTES_MAX:
                del kept[:-LOG_BYTES_MAX]
                truncated = True
    return bytes(kept[-LOG_BYTES_MAX:]), truncated or len(kept) > LOG_BYTES_MAX


def frames(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The payloads of Podman's multiplexed stream: stream number, three zeros, length, payload."""
    buffer = b""
    for part in parts:
        buffer += part
        while len(buffer) >= _FRAME_HEAD:
            end = _FRAME_HEAD + int.from_bytes(buffer[4:_FRAME_HEAD], "big")
            if end > _FRAME_HEAD + LOG_BYTES_MAX:
                raise not_understood()
            if len(buffer) < end:
                break
            yield buffer[_FRAME_HEAD:end]
            buffer = buffer[end:]
