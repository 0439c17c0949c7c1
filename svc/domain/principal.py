"""The principal of a request: the first argument of most domain functions.

Created only at the edges (by a listener for a connection, by the worker for an
operation's owner); domain functions never create one.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from svc.errors import SvcError
from svc.helper.helper import Helper
from svc.helper.transfers import DataStream, Transfer


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated account and how it was authenticated.

    `kind` is "peer" (host socket), "session", "pat" or "worker". `peer` is the
    caller's connection on the host socket, which the helper requires as proof;
    `hangup_fd` is the connection to poll during a long call. `credential` is the id
    of the session or token, empty on the host socket. The caller of a token is
    never a superuser, whoever owns the token; `scopes` are the token's additional ones.
    `client` is who the connection counts as beside others, where the address does not tell.
    The calls of a `patient` caller wait for a place among the user's calls instead of being refused.
    """

    kind: str
    user_id: int
    name: str
    uid: int
    superuser: bool
    rid: str
    address: str
    helper: Helper
    peer: socket.socket | None = None
    hangup_fd: int | None = None
    credential: str = ""
    scopes: frozenset[str] = frozenset()
    patient: bool = False
    client: str = ""

    @property
    def administers(self) -> bool:
        """Whether the caller may administer; a token "never performs administrator operations"."""
        return self.superuser and self.kind != "pat"

    def patiently(self) -> Caller:
        """The same caller with patient calls, for what must not be refused once it has begun."""
        return replace(self, patient=True)

    def watched(self, hangup_fds: Sequence[int]) -> list[int]:
        """The descriptors whose hang-up ends a long call: these and the caller's own connection."""
        return [*([] if self.hangup_fd is None else [self.hangup_fd]), *hangup_fds]

    def ask(
        self, verb: str, args: dict[str, Any], *, owner: str | None = None, **options: Any
    ) -> dict[str, Any]:
        """Make one helper call as the caller's own Linux user, or as `owner` for an administrator.

        The words of an engine are for its owner: an administrator gets the error without them.
        """
        options |= {"rid": self.rid, "peer": self.peer, "patient": self.patient}
        try:
            return self.helper.call(verb, owner or self.name, args, **options)
        except SvcError as error:
            if owner not in (None, self.name):
                error.details.pop("engine", None)
            raise

    def attached(
        self, verb: str, args: dict[str, Any]
    ) -> AbstractContextManager[tuple[dict[str, Any], DataStream]]:
        """Make one helper call that attaches a viewer, as the caller's own Linux user (Helper.attached)."""
        return self.helper.attached(
            verb, self.name, args, rid=self.rid, peer=self.peer, hangup_fd=self.hangup_fd
        )

    def transfer(self, verb: str, args: dict[str, Any], **options: Any) -> AbstractContextManager[Transfer]:
        """Make one helper call with a data stream, as the caller's own Linux user (Helper.transfer)."""
        return self.helper.transfer(verb, self.name, args, rid=self.rid, peer=self.peer, **options)
