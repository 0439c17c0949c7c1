"""A file's bytes into the app's line: `fs.read`, a conversation.

The agent says what the file is, the app says which part it wants, and the kernel
moves that part; the agent holds none of it. The app never reads a descriptor of
the agent's, and the agent opens nothing but regular files.
"""

from __future__ import annotations

import errno
import os
import select
import stat
from typing import Any

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.files import beneath
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.arguments import path_bytes

_PART = 1024 * 1024  # moved at once: what the app's pipe holds
_COPIED = 64 * 1024  # at once, from a file system that the kernel cannot move from
_CHECK_EVERY = 64 * _PART


def read(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """`fs.read`: progress {"size", "mtime_ns", "inode", "device"}, word {"go": [offset, count]}, {"sent"}.

    Exactly `count` bytes go into the pipe, or fewer and a Failure: "a file may shrink
    meanwhile", and nothing is put in the place of what has gone.
    """
    path = path_bytes(args["path"])
    pipe = given_pipe(call, "output")
    try:
        with beneath.refusing(path):
            file = _open(podman, args["root"], path)
            try:
                return {"sent": _converse(call, file, pipe, path)}
            finally:
                os.close(file)
    finally:
        os.close(pipe)  # before the answer: whoever reads it meets the end


def given_pipe(call: Call, what: str) -> int:
    """The line that came with the call, never to be waited for but in Call.wait(); the caller's to close.

    The app gives a socket: a pipe's two ends share a lock, for which its threads would
    wait while this process moves something slow. To this end a pipe does as well.
    """
    pipe = call.take_fd(what)
    try:
        mode = os.fstat(pipe).st_mode
        if not stat.S_ISSOCK(mode) and not stat.S_ISFIFO(mode):
            raise Failure("protocol", "no line came with the call")
        os.set_blocking(pipe, False)
    except (Failure, OSError):
        os.close(pipe)
        raise
    return pipe


def _open(podman: Podman, root_name: str, path: bytes) -> int:
    root = beneath.root(podman.home, root_name)
    try:
        found = beneath.open_(root, path, os.O_PATH)
    finally:
        os.close(root)
    try:
        require_regular(os.fstat(found).st_mode, path)
        # Now that it is known to be one: opening a device or a FIFO would already do something.
        return os.open(f"/proc/self/fd/{found}", os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    finally:
        os.close(found)


def require_regular(mode: int, path: bytes) -> None:
    """Raise Failure for what is no regular file."""
    if stat.S_ISDIR(mode):
        raise Failure("conflict", f"{beneath.shown(path)}: it is a directory")
    if not stat.S_ISREG(mode):
        raise Failure("conflict", f"{beneath.shown(path)}: it is not a regular file")


def _converse(call: Call, file: int, pipe: int, path: bytes) -> int:
    facts = os.fstat(file)
    call.progress(identity(facts), wait=True)
    wanted = call.receive("go")
    if type(wanted) is not list or len(wanted) != 2 or any(type(number) is not int for number in wanted):
        raise Failure("protocol", "not an offset and a count")
    offset, count = wanted
    if offset < 0 or count < 0 or offset + count > facts.st_size:
        raise Failure("protocol", "not a part of the file")
    try:
        moved = pump(call, file, pipe, offset, count)
    except BrokenPipeError:
        raise Failure("cancelled", "the caller has gone") from None
    if moved < count:
        raise Failure("conflict", f"{beneath.shown(path)}: the file became shorter while it was read")
    return int(count)


def identity(facts: os.stat_result) -> dict[str, int]:
    """What tells a file's content from another's: its size in bytes, its time, and where it is kept."""
    return {
        "size": facts.st_size,
        "mtime_ns": facts.st_mtime_ns,
        "inode": facts.st_ino,
        "device": facts.st_dev,
    }


def pump(call: Call, file: int, pipe: int, offset: int, count: int) -> int:
    """Move that part of a file into a pipe, as its reader takes it; the bytes moved: fewer when it ends.

    Raises Failure as Call.wait() does, BrokenPipeError when nobody reads the pipe any more.
    """
    at, end, check = offset, offset + count, offset + _CHECK_EVERY
    move = _send if stat.S_ISSOCK(os.fstat(pipe).st_mode) else _splice
    while at < end:
        try:
            moved = move(file, pipe, at, end - at)
        except BlockingIOError:
            call.wait({pipe: select.POLLOUT})
            continue
        if not moved:
            break
        at += moved
        if at >= check:  # a quick reader is never waited for
            call.check()
            check = at + _CHECK_EVERY
    return at - offset


def _splice(file: int, pipe: int, at: int, count: int) -> int:
    try:
        return os.splice(file, pipe, min(count, _PART), offset_src=at, flags=os.SPLICE_F_NONBLOCK)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    return _copy(file, pipe, at, count)


def _send(file: int, line: int, at: int, count: int) -> int:
    try:
        return os.sendfile(line, file, at, min(count, _PART))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    return _copy(file, line, at, count)


def _copy(file: int, line: int, at: int, count: int) -> int:
    """For a file system from which the kernel cannot move."""
    return os.write(line, os.pread(file, min(count, _COPIED), at))
