"""Who acts in this thread, and how: `write()` names them in the events of its transaction.

Set at the edges (a listener for each request, the worker for an operation, a command of `svc admin`);
the rows themselves are written by triggers, which know of no request.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple


class Actor(NamedTuple):
    """An account's name, and `socket`, `session`, `token`, `worker` or `admin`."""

    user: str = ""
    via: str = ""


_NOBODY = Actor()
_default = _NOBODY
_current: ContextVar[Actor | None] = ContextVar("actor", default=None)


def current() -> Actor:
    """Who acts in this thread, or else in this process."""
    return _current.get() or _default


def begin(user: str, via: str) -> None:
    """From now on this account acts in this thread."""
    _current.set(Actor(user, via))


def end() -> None:
    """Nobody acts in this thread any more."""
    _current.set(None)


def by_default(via: str, user: str = "") -> None:
    """In this process, who acts where nobody is named."""
    global _default
    _default = Actor(user, via)
