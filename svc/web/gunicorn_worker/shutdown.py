"""Shutdown notification as a pollable file descriptor, for long-running requests."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from svc.errors import Conflict, Maintenance

_pair: tuple[socket.socket, socket.socket] | None = None


def prepare() -> None:
    """Open the descriptor: once in the worker process, after its fork."""
    global _pair
    _pair = socket.socketpair()


def begin() -> None:
    """Notify everybody; safe in a signal handler."""
    if _pair is not None:
        _pair[1].shutdown(socket.SHUT_RDWR)


def begun() -> bool:
    """Whether the worker process is shutting down."""
    if _pair is None:
        return False
    try:
        return not _pair[0].recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False


def error() -> Maintenance:
    """The error for a request that the shutdown interrupts."""
    return Maintenance("the service is stopping; try again in a moment", retry_after_s=5)


@contextmanager
def attributed() -> Iterator[None]:
    """Raise Maintenance for the Conflict of a caller who is taken for gone since the worker shuts down."""
    try:
        yield
    except Conflict:
        if not begun():
            raise
        raise error() from None


def descriptors() -> tuple[int, ...]:
    """The descriptors to poll for a hang-up; none outside a worker process."""
    return () if _pair is None else (_pair[0].fileno(),)
