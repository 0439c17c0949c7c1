"""The conversations that move a file's bytes, from the app's side: data stream, messages, reply."""

from __future__ import annotations

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
    """One call in its own thread, as the agent runs it; `with` waits for its end."""

    def __init__(self, files: FileRoots, verb: str, *, timeout_s: float = 60, **args: Any) -> None:
        checked = record(**protocol.VERBS[verb].args)({"root": "work"} | args)
        self._sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.stream, far_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with far_end:
            which = "input" if verb in protocol.INPUT else "output"
            protocol.send(self._sock, {which: True}, [far_end.fileno()])
        self.stream.setblocking(False)
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
        self.close_stream()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def next_message(self) -> dict[str, Any]:
        """The agent's next progress message; raises the Failure of a call that has ended."""
        try:
            progress: dict[str, Any] = protocol.receive(self._sock).message["progress"]
        except EOFError:
            self.end()
            raise AssertionError("no message was sent") from None
        return progress

    def send_message(self, **argument: Any) -> None:
        """Send a message to the agent."""
        protocol.send(self._sock, argument)

    def hang_up(self) -> None:
        """Close the reply socket, as an app that was killed."""
        self._sock.close()

    def close_stream(self) -> None:
        """Close the app's end of the data stream."""
        self.stream.close()

    def send(self, content: bytes) -> None:
        """Send bytes over the data stream."""
        rest = memoryview(content)
        while rest:
            assert self._ready(select.POLLOUT)
            rest = rest[self.stream.send(rest) :]

    def receive(self, count: int | None = None) -> bytes:
        """So many bytes from the data stream, or all to its end."""
        content = bytearray()
        while count is None or len(content) < count:
            assert self._ready(select.POLLIN)
            part = self.stream.recv(min(1 << 20, (count or 1 << 62) - len(content)))
            if not part:
                break
            content += part
        return bytes(content)

    def _ready(self, mask: int) -> bool:
        poller = select.poll()
        poller.register(self.stream, mask)
        return bool(poller.poll(PATIENCE_S * 1000))

    def end(self) -> dict[str, Any]:
        """The data of the reply; raises the Failure."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        if self.failure is not None:
            raise self.failure
        assert self.data is not None
        return self.data

    def code(self) -> str:
        """The code of the failed call."""
        try:
            data = self.end()
        except Failure as failure:
            return failure.code
        raise AssertionError(f"it did not fail: {data}")
