"""A container's output, from the bounded file that conmon writes.

Read directly where possible, which needs no Podman and works for a stopped
workspace. The agent cannot read the file of a container with ids of its own;
then Podman is asked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import containers
from svc_helper.agent.containers.spec import container_name
from svc_helper.agent.podman.http import not_understood, whole
from svc_helper.agent.podman.podman import LIBPOD, Podman, refusal
from svc_helper.agent.runtime import records
from svc_helper.agent.user_files import open_regular
from svc_helper.wire.limits import LOG_BYTES_MAX

_LINE_EXTRA = 64  # of a line in the file: time, stream, flag
_FIRST_READ = 64 * 1024
_FRAME_HEAD = 8


def logs(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """The last `tail` lines of both streams, at most 1 MiB; `truncated` if that limit applied."""
    record = records.recall(podman.home, args["id"])
    if record is None:
        if containers.find_container(podman, call, args["id"]) is None:
            raise Failure("not_found", "the container does not exist")
        record = records.recall(podman.home, args["id"])
    if record is None:
        return {"text": "", "truncated": False}  # created, but never started
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
    content = b"".join(line + b"\n" for line in lines)
    return content[-LOG_BYTES_MAX:], cut or len(content) > LOG_BYTES_MAX


def tail_lines(fd: int, size: int, tail: int) -> tuple[list[bytes], bool]:
    """The last lines in the file's first `size` bytes, and whether a limit cut them off."""
    limit = min(size, LOG_BYTES_MAX + tail * _LINE_EXTRA)
    length = min(_FIRST_READ, limit)
    while True:
        raw = os.pread(fd, length, size - length)
        lines = tail_of(raw, tail + 1, from_start=length == size)
        # One more than requested: the first may begin before the part that was read.
        if len(lines) > tail or length >= limit:
            return lines[-tail:], len(lines) < tail and length < size
        length = min(length * 4, limit)


def tail_of(raw: bytes, tail: int, *, from_start: bool) -> list[bytes]:
    """The last lines of raw rows `TIME STREAM F|P TEXT`; P continues in the stream's next row."""
    rows = raw.split(b"\n")
    if not from_start:
        rows = rows[1:]  # not complete
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
