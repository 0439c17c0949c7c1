"""Locks of one workspace: of two calls that would do the same, one waits for the other.

File locks: they hold across agents and are released with their holder.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from svc_helper.agent.calls import Call
from svc_helper.agent.home import Home

_PAUSE_S = 0.02
_KINDS = ("start", "shim", "ports", "kept")  # the last is the shim's own: see shim/run.py


@contextmanager
def held(home: Home, call: Call, kind: str, workspace_id: str) -> Iterator[None]:
    """Hold one of the workspace's locks; waits for it, and raises Failure, as Call.wait() does."""
    lock = os.open(_path(home, kind, workspace_id), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                call.sleep(_PAUSE_S)
        yield
    finally:
        os.close(lock)


def forget(home: Home, workspace_id: str) -> None:
    """Remove the lock files of a removed workspace; its id is never reused."""
    for kind in _KINDS:
        with suppress(FileNotFoundError):
            os.unlink(_path(home, kind, workspace_id))


def _path(home: Home, kind: str, workspace_id: str) -> str:
    return f"{home.own}/locks/{kind}-{workspace_id}"
