"""The events of one transaction: they get the name of who acts, and the listeners hear of them.

Triggers write the rows (schema/migrations), so that no change is without its event. After the
commit a file beside the database is touched, which the listeners watch: nobody polls.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from typing import Any

import peewee

from svc.db import acting
from svc.host.sharing import mode_beside

SUFFIX = ".events"
Execute = Callable[..., Any]  # a statement and its values; returns a cursor


def highest(execute: Execute) -> int:
    """The id of the newest event, 0 without any; also in a database of an earlier release."""
    try:
        found = execute("SELECT max(id) FROM events").fetchone()[0]
    except peewee.OperationalError as error:
        if "no such table" not in str(error):
            raise
        return 0
    return int(found or 0)


def name_actor(execute: Execute, before: int) -> bool:
    """Before the commit: name who acts in the events after `before`; whether there are any."""
    if highest(execute) <= before:
        return False
    actor = acting.current()
    if any(actor):
        execute("UPDATE events SET actor = ?, via = ? WHERE id > ?", (*actor, before))
    return True


def announce(database: str) -> None:
    """After the commit: wake whoever watches the file; without the file nobody does.

    Where that fails, they find out with a heartbeat.
    """
    with contextlib.suppress(OSError):
        os.utime(f"{database}{SUFFIX}", follow_symlinks=False)


def ensure(path: str, database: str) -> None:
    """Create the file, before it is watched, for whoever may write the database; there may be one."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, mode_beside(database))
    finally:
        os.close(descriptor)
