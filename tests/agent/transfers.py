"""The conversations that move a file's bytes, seen from the app's side: the pipe, the words, the end."""

from __future__ import annotations

import os
import select
import socket
import threading
from types import SimpleNamespace
from typing import Any, cast

from agent.file_roots import FileRoots

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.serve import handler_of
from svc_helper.wire import protocol
from svc_helper.wire.arguments import record

PATIENCE_S = 60


class Transfer:
    """One call in a thread of its own, as the agent runs it; its end is waited for by `with`."""

    def __init__(self, files: FileRoots, verb: str, *, timeout_s: float = 60, **args: Any) -> None:
        checked = record(**protocol.VERBS[verb].args)({"root": "work"} | args)
        self._sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        reads, writes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        output = verb not in protocol.INPUT
        self.pipe, given = (reads, writes) if output else (writes, reads)
        protocol.send(self._sock, {"output" if output else "input": True}, [given])
        os.close(given)
        call = Call("rid", verb, timeout_s, theirs)
        podman = cast("Podman", SimpleNamespace(home=files.home))
        self.data: dict[str, Any] | None = None
        self.failure: Failure | None = None

        def run() -> None:
            try:
                self.data = handler_of(verb)(podman, call, checked)
            except Failure as failure:
                self.failure = failure
            finally:
                theirs.close()

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def __enter__(self) -> Transfer:
        return self

    def __exit__(self, *raised: object) -> None:
        self.hang_up()
        self.close_pipe()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def hear(self) -> dict[str, Any]:
        """The agent's next word; its Failure if it has none any more."""
        try:
            progress: dict[str, Any] = protocol.receive(self._sock).message["progress"]
        except EOFError:
            self.end()
            raise AssertionError("it said nothing") from None
        return progress

    def tell(self, **word: Any) -> None:
        """Say something to the agent."""
        protocol.send(self._sock, word)

    def hang_up(self) -> None:
        """Go away, as an app that was killed."""
        self._sock.close()

    def close_pipe(self) -> None:
        """Close our end of the pipe."""
        if self.pipe >= 0:
            os.close(self.pipe)
            self.pipe = -1

    def send(self, content: bytes) -> None:
        """Put bytes into the pipe."""
        rest = memoryview(content)
        while rest:
            assert self._ready(select.POLLOUT)
            rest = rest[os.write(self.pipe, rest) :]

    def receive(self, count: int | None = None) -> bytes:
        """So many bytes out of the pipe, or all to its end."""
        content = bytearray()
        while count is None or len(content) < count:
            assert self._ready(select.POLLIN)
            part = os.read(self.pipe, min(1 << 20, (count or 1 << 62) - len(content)))
            if not part:
                break
            content += part
        return bytes(content)

    def _ready(self, mask: int) -> bool:
        poller = select.poll()
        poller.register(self.pipe, mask)
        return bool(poller.poll(PATIENCE_S * 1000))

    def end(self) -> dict[str, Any]:
        """The answer's data; raises the Failure."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        if self.failure is not None:
            raise self.failure
        assert self.data is not None
        return self.data

    def code(self) -> str:
        """Why it failed."""
        try:
            data = self.end()
        except Failure as failure:
            return failure.code
        raise AssertionError(f"it did not fail: {data}")
