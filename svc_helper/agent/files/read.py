"""Send a file's bytes over the app's data stream: `fs.read`, a conversation.

The agent reports the file's size and identity, the app asks for a range, and the
kernel moves that range from the file to the socket. The app never reads a descriptor
of the agent, and the agent opens regular files only.
"""

from __future__ import annotations

import errno
import os
import select
import stat

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.files import beneath, owners
from svc_helper.agent.files.namespace import Namespace
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.arguments import path_bytes
from svc_helper.wire.quick_typing import Any

_PART = 1024 * 1024  # bytes per system call
_COPIED = 64 * 1024  # bytes per system call from a file system without sendfile
_CHECK_EVERY = 64 * _PART
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def read(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """`fs.read`: progress {"size", "mtime_ns", "inode", "device"}, message {"go": [offset, count]}, {"sent"}.

    The stream carries exactly `count` bytes, or fewer and the call fails: "a file may
    shrink meanwhile", and the missing bytes are not replaced.
    """
    path = path_bytes(args["path"])
    with (  # the stream is closed before the reply is sent: its reader meets the end
        beneath.closing(call.data_stream("output")) as stream,
        beneath.refusing(path),
        Namespace(podman.home, call) as namespace,
        beneath.closing(_open(podman, namespace, args["root"], path)) as file,
    ):
        return {"sent": _converse(call, file, stream, path)}


def _open(podman: Podman, namespace: Namespace, root_name: str, path: bytes) -> int:
    with beneath.closing(beneath.root(podman.home, root_name)) as root:
        found = namespace.open_(root, path, os.O_PATH)
        with beneath.closing(found):
            require_regular(os.fstat(found).st_mode, path)
            try:  # Only now: opening a device or a FIFO would already have an effect.
                return os.open(f"/proc/self/fd/{found}", _FLAGS)
            except PermissionError:
                if owners.is_own(os.fstat(found)):
                    raise
        return namespace.open_(root, path, os.O_RDONLY, refused=True)


def require_regular(mode: int, path: bytes) -> None:
    """Raise Failure unless the mode is that of a regular file."""
    if not stat.S_ISREG(mode):
        reason = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise Failure("conflict", f"{beneath.format_path(path)}: it is {reason}")


def _converse(call: Call, file: int, stream: int, path: bytes) -> int:
    status = os.fstat(file)
    call.progress(identity(status), wait=True)
    requested = call.receive("go")
    if type(requested) is not list or [type(number) for number in requested] != [int, int]:
        raise Failure("protocol", "expected an offset and a count")
    offset, count = requested
    if offset < 0 or count < 0 or offset + count > status.st_size:
        raise Failure("protocol", "the range is not within the file")
    try:
        sent = send_file(call, file, stream, offset, count)
    except ConnectionError:
        raise Failure("cancelled", "the caller has gone") from None
    if sent < count:
        raise Failure("conflict", f"{beneath.format_path(path)}: the file became shorter while it was read")
    return sent


def identity(status: os.stat_result) -> dict[str, int]:
    """The numbers of which at least one changes when a file's content changes."""
    return {
        "size": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "inode": status.st_ino,
        "device": status.st_dev,
    }


def send_file(call: Call, file: int, target: int, offset: int, count: int) -> int:
    """Move a range of a file into a socket or a pipe; the bytes moved, fewer where the file ends.

    Raises Failure as Call.wait() does, ConnectionError when the reader has closed its end.
    """
    at, end, check = offset, offset + count, offset + _CHECK_EVERY
    while at < end:
        try:
            sent = _send(file, target, at, end - at)
        except BlockingIOError:
            call.wait({target: select.POLLOUT})
            continue
        if not sent:
            break
        at += sent
        if at >= check:  # a fast reader never causes a wait
            call.check()
            check = at + _CHECK_EVERY
    return at - offset


def _send(file: int, target: int, at: int, count: int) -> int:
    try:
        return os.sendfile(target, file, at, min(count, _PART))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    return os.write(target, os.pread(file, min(count, _COPIED), at))
