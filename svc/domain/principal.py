"""Who asks: the one principal that every domain function takes first.

Made at the edges only (a listener's view of a connection, the worker for an
operation's owner); domain functions read it and never build one.
"""

from __future__ import annotations

import socket
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from svc.helper.transfers import Transfer

Messages = Generator[dict[str, Any] | None, None, None]


class Asks(Protocol):
    """What the domain needs of the helper client (svc.helper.helper.Helper)."""

    def call(self, verb: str, user: str, args: dict[str, Any], *, rid: str, **options: Any) -> dict[str, Any]:
        """Make one call and return its data; raises the classes of svc.errors."""

    def follow(
        self,
        verb: str,
        user: str,
        args: dict[str, Any],
        *,
        rid: str,
        peer: socket.socket | None,
        hangup_fds: Sequence[int],
        tick_s: float,
    ) -> Messages:
        """Make one call that goes on: its messages as they come, None after tick_s without one."""

    def transfer(
        self,
        verb: str,
        user: str,
        args: dict[str, Any],
        *,
        rid: str,
        peer: socket.socket | None,
        hangup_fds: Sequence[int],
    ) -> AbstractContextManager[Transfer]:
        """Make one call whose bytes go over a line, for the length of the block."""


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated account and the way it came in.

    `kind` is "peer" (host socket), "session", "pat" or "worker". `peer` is the
    caller's own connection on the host socket, the proof that the helper asks
    for; `hangup_fd` is the connection to watch while a long call runs. `credential`
    is the id of the session or token that proved it, empty on the host socket. A
    token's caller is never a superuser, whoever owns the token.
    """

    kind: str
    user_id: int
    name: str
    uid: int
    superuser: bool
    rid: str
    address: str
    helper: Asks
    peer: socket.socket | None = None
    hangup_fd: int | None = None
    credential: str = ""

    @property
    def administers(self) -> bool:
        """Whether administrators' operations are open; a token "never performs administrator operations"."""
        return self.superuser and self.kind != "pat"

    def ask(
        self, verb: str, args: dict[str, Any], *, owner: str | None = None, **options: Any
    ) -> dict[str, Any]:
        """Make one helper call as the caller's own Linux user, or as `owner` for an administrator."""
        return self.helper.call(verb, owner or self.name, args, rid=self.rid, peer=self.peer, **options)

    def follow(
        self, verb: str, args: dict[str, Any], *, hangup_fds: Sequence[int], tick_s: float
    ) -> Messages:
        """Make one helper call that goes on, as the caller's own Linux user."""
        return self.helper.follow(
            verb, self.name, args, rid=self.rid, peer=self.peer, hangup_fds=hangup_fds, tick_s=tick_s
        )

    def transfer(
        self, verb: str, args: dict[str, Any], *, hangup_fds: Sequence[int]
    ) -> AbstractContextManager[Transfer]:
        """Make one helper call whose bytes go over a line, as the caller's own Linux user."""
        return self.helper.transfer(
            verb, self.name, args, rid=self.rid, peer=self.peer, hangup_fds=hangup_fds
        )
