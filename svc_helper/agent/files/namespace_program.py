"""The program that opens, removes and measures files of subordinate ids, as root of the user's namespace.

Started by namespace.py for one call of the agent, with a message socket as standard input. A
request comes with one descriptor, that of a directory; paths are resolved below it, in one step and
with the same flags as in the agent. Requests, and their replies as in protocol.py:

    {"open": [path, flags, resolve]}    {} with the descriptor
    {"remove": [path, recursive]}       as `fs.remove`; {"progress": {"removed"}} before
    {"measure": [path, ms, dev, ino]}   {"size": [bytes, names, complete]} of a directory (tree_size.py)

The kernel gives this process rights over the user's own ids and the subordinate ones only. What
the user itself owns and has closed to itself stays closed.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import stat

from svc_helper.agent.calls import Failure
from svc_helper.agent.files import beneath, remove, tree_size
from svc_helper.agent.files.sizes import Size
from svc_helper.wire import protocol
from svc_helper.wire.arguments import path_bytes
from svc_helper.wire.quick_typing import Any

_REOPENED = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NICE = 10
_KEPT = os.O_NOFOLLOW | os.O_DIRECTORY  # flags that matter while the path is resolved


class AgentGone(Exception):
    """The agent has closed the socket: its call has ended."""


class Requester:
    """The agent as remove.py sees a caller."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel
        self._poller = select.poll()
        self._poller.register(channel, 0)  # only whether it has hung up

    def check(self) -> None:
        """Raise AgentGone when nobody waits for the reply any more."""
        if self._poller.poll(0):
            raise AgentGone

    def progress(self, facts: dict[str, Any]) -> None:
        """Send a progress message; dropped when the agent's queue is full."""
        try:
            protocol.send(self.channel, {"progress": facts}, wait=False)
        except BlockingIOError:
            return


def main() -> int:
    """Serve requests until the agent hangs up."""
    with socket.socket(fileno=os.dup(0)) as channel:
        requester = Requester(channel)
        try:
            protocol.send(channel, {"ready": True})
            while True:
                serve(requester, protocol.receive(channel))
        except (EOFError, OSError, AgentGone):
            return 0


def serve(requester: Requester, frame: protocol.Frame) -> None:
    """Answer one request."""
    directory = frame.fds[0]
    fds: list[int] = []
    try:
        if "open" in frame.message:
            fds.append(_open(directory, *frame.message["open"]))
            data: dict[str, Any] = {}
        elif "measure" in frame.message:
            data = {"size": _measure(requester, directory, *frame.message["measure"])}
        else:
            path, recursive = frame.message["remove"]
            data = remove.remove_below(requester, directory, path_bytes(path), recursive=recursive)
        reply = {"ok": True, "data": data}
    except OSError as error:
        reply = {"ok": False, "errno": error.errno or errno.EIO}
    except Failure as failure:
        reply = {"ok": False, "code": failure.code, "message": failure.message}
    try:
        protocol.send_reply(requester.channel, reply, fds)
    finally:
        protocol.close_all([*fds, *frame.fds])


def _measure(requester: Requester, directory: int, path: str, ms: int, dev: int, ino: int) -> Size:
    """Count a directory for figures, after everything else that the host has to do."""
    if os.nice(0) < _NICE:
        os.nice(_NICE)
    return tree_size.measure(requester, directory, path_bytes(path), seconds=ms / 1000, skip=(dev, ino))


def _open(directory: int, path: str, flags: int, resolve: int) -> int:
    """Open a regular file or a directory for reading, or anything with O_PATH."""
    found = beneath.open_(directory, path_bytes(path), os.O_PATH | flags & _KEPT, resolve=resolve)
    if flags & os.O_PATH:
        return found
    with beneath.closing(found):
        status = os.fstat(found)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise OSError(errno.ENXIO, "not a regular file")
        if status.st_uid == os.geteuid() and not status.st_mode & stat.S_IRUSR:
            raise PermissionError(errno.EACCES, "closed by its owner")
        # Only now: opening a device or a FIFO would already have an effect.
        return os.open(f"/proc/self/fd/{found}", _REOPENED)
