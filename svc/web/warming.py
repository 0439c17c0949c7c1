"""A shell user's first request brings the user's agent and Podman up, behind its answer.

Whatever it asks: people type `svc ws list` before `svc ws start`, which then finds both running.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress

import peewee

from svc.db.connect import database
from svc.domain.principal import Caller
from svc.errors import SvcError

AGAIN_S = 240.0  # Podman's service ends after 300 idle seconds
AT_ONCE = 2  # agents that start beside other requests
CLOCK: Callable[[], float] = time.monotonic

_LAST = (
    "SELECT id FROM workspaces WHERE owner_id = ? AND status != 'deleting' ORDER BY updated_at DESC LIMIT 1"
)


class Warming:
    """When each user's agent was asked last; `begin` is called after each response on the host socket."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.slots = threading.BoundedSemaphore(AT_ONCE)
        self.asked: dict[int, float] = {}  # by the user's id

    def begin(self, caller: Caller) -> None:
        """Ask the caller's agent about a workspace, unless that was done within AGAIN_S.

        A thread waits for its reply. Nothing is asked for users without a workspace, nor beside AT_ONCE
        others: it only saves time, and whoever needs the agent is told what is wrong with it.
        """
        with self.lock:
            is_due = CLOCK() - self.asked.get(caller.user_id, -AGAIN_S) >= AGAIN_S
            if not is_due or not self.slots.acquire(blocking=False):
                return
            self.asked[caller.user_id] = CLOCK()
        with ExitStack() as held:
            held.callback(self.slots.release)
            with suppress(SvcError, peewee.DatabaseError, OSError):
                row = database.execute_sql(_LAST, (caller.user_id,)).fetchone()
                if row is not None:
                    # Sent now, with the connection as proof: a copy of it would keep the client waiting.
                    held.enter_context(
                        caller.helper.call_later(
                            "ctr.inspect",
                            caller.name,
                            {"id": row[0]},
                            rid=f"warm-{caller.rid}",
                            peer=caller.peer,
                        )
                    )
            later = held.pop_all()
        try:
            threading.Thread(target=_wait, args=(later,), daemon=True).start()
        except RuntimeError:  # there is no room for a thread
            _wait(later)


def _wait(later: ExitStack) -> None:
    with suppress(SvcError):
        later.close()
