"""A shell user's first request brings the user's agent and Podman up, behind its answer.

Whatever it asks: people type `svc ws list` before `svc ws start`, which then finds both running.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable

import peewee

from svc.db.connect import close_database, database
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

    def begin(self, caller: Caller, peer: socket.socket) -> threading.Thread | None:
        """Ask the caller's agent about a workspace in a thread of its own, if nobody did within AGAIN_S.

        Nothing is asked for users without a workspace, nor beside AT_ONCE others: it only saves time.
        """
        with self.lock:
            is_due = CLOCK() - self.asked.get(caller.user_id, -AGAIN_S) >= AGAIN_S
            if not is_due or not self.slots.acquire(blocking=False):
                return None
            self.asked[caller.user_id] = CLOCK()
        try:
            thread = threading.Thread(target=self._ask, args=(caller, peer.dup()), daemon=True)
            thread.start()
        except (OSError, RuntimeError):  # no descriptor or no thread is left
            self.slots.release()
            return None
        return thread

    def _ask(self, caller: Caller, peer: socket.socket) -> None:
        try:
            with peer, contextlib.suppress(SvcError, peewee.DatabaseError):  # whoever needs the agent is told
                row = database.execute_sql(_LAST, (caller.user_id,)).fetchone()
                if row is not None:
                    rid = f"warm-{caller.rid}"
                    caller.helper.call("ctr.inspect", caller.name, {"id": row[0]}, rid=rid, peer=peer)
        finally:
            self.slots.release()
            close_database()
