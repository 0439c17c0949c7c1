"""File roots in a directory of the test's, and the `fs` verbs called as the agent's loop does."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.files.namespace import Namespace
from svc_helper.agent.home import Home
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.serve import handler_of
from svc_helper.wire import protocol
from svc_helper.wire.arguments import path_bytes, path_text, record

Row = tuple[str, str, int, int, int, str | None, str]


class FileRoots:
    """`work` to write in, `fixed` read-only, `later` and `absent` (read-only) not there yet."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.work, self.outside = directory / "home/work", directory / "outside"
        for place in (self.work, self.outside, directory / "fixed"):
            place.mkdir(parents=True)
        (self.outside / "secret").write_text("the canary")
        (directory / "fixed/model").write_text("weights")
        roots = {name: str(directory / name) for name in ("fixed", "absent")}
        roots |= {"work": str(self.work), "later": str(directory / "home/later/er")}
        self.home = SimpleNamespace(
            roots=roots, read_only=frozenset({"fixed", "absent"}), user="tsa-files", uid=os.geteuid()
        )
        self.received: list[dict[str, Any]] = []

    def call(self, verb: str, *, timeout_s: float = 60, **args: Any) -> Any:
        """The data of one call, its arguments checked as they are; raises Failure."""
        args = {"root": "work"} | args if "root" in protocol.VERBS[verb].args else args
        podman = cast("Podman", SimpleNamespace(home=self.home))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            checked = record(**protocol.VERBS[verb].args)(args)
            try:
                return handler_of(verb)(podman, Call("rid", verb, timeout_s, theirs), checked)
            finally:
                self.received = _received(ours)

    def namespace(self) -> Namespace:
        """The namespace of a call that never enters it."""
        return Namespace(cast("Home", self.home), cast("Call", None))

    def refused(self, verb: str, **args: Any) -> tuple[str, str]:
        """The code and the message of a call that fails."""
        with pytest.raises(Failure) as caught:
            self.call(verb, **args)
        return caught.value.code, caught.value.message

    def canary_is_whole(self) -> bool:
        """Whether what lies outside the roots is as it was."""
        found = [path.name for path in self.outside.iterdir()]
        return found == ["secret"] and (self.outside / "secret").read_text() == "the canary"


def _received(sock: socket.socket) -> list[dict[str, Any]]:
    found = []
    while True:
        try:
            found.append(protocol.receive(sock, wait=False).message)
        except BlockingIOError:
            return found


def encoded(name: str | bytes) -> str:
    """A path as the wire has it."""
    return path_text(os.fsencode(name))


def names(rows: list[Any]) -> list[bytes]:
    """The names of rows."""
    return [path_bytes(row[0]) for row in rows]
