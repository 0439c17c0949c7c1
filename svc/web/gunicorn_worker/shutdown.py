"""The end of a listener, as a descriptor that hangs up: what may last for hours watches it and ends at once.

Without it a stream would hold its thread until the whole process is killed.
"""

from __future__ import annotations

import socket

_ends: tuple[socket.socket, socket.socket] | None = None


def prepare() -> None:
    """Once in the process that serves, after its fork."""
    global _ends
    _ends = socket.socketpair()


def begin() -> None:
    """The process is told to end; called in a signal's handler."""
    if _ends is not None:
        _ends[1].shutdown(socket.SHUT_RDWR)


def begun() -> bool:
    """Whether it has been told so."""
    if _ends is None:
        return False
    try:
        return not _ends[0].recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False


def descriptors() -> tuple[int, ...]:
    """What to watch for a hang-up; nothing where no process serves."""
    return () if _ends is None else (_ends[0].fileno(),)
