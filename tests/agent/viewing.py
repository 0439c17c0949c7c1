"""A viewer of a terminal from the app's side, and the calls that attach one."""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable
from typing import Any

from agent.priv_ns import Agent, Answer

from svc_helper.wire import terminal_frames as frames

PATIENCE_S = 30


class Viewer:
    """One end of a pair of message sockets, and all that came over it."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.output = b""
        self.states: list[dict[str, Any]] = []
        self.skipped: list[int] = []
        self.ended: dict[str, Any] | None = None
        self.closed = False

    def take(self, timeout_s: float = 0) -> bool:
        """Receive one frame; False when none came."""
        poller = select.poll()
        poller.register(self.sock, select.POLLIN)
        if self.closed or not poller.poll(timeout_s * 1000):
            return False
        try:
            frame = self.sock.recv(frames.FRAME_MAX + 1)
        except ConnectionResetError:  # what was sent before comes after it
            return True
        kind, content = frame[:1], frame[1:]
        assert len(content) <= frames.DATA_MAX
        if kind == frames.OUTPUT:
            self.output += content
        elif kind == frames.STATE:
            self.states.append(json.loads(content))
        elif kind == frames.SKIPPED:
            self.skipped.append(json.loads(content)["bytes"])
        elif kind == frames.END:
            self.ended = json.loads(content)
        else:
            assert not frame, frame[:20]
            self.closed = True
        return True

    def until(self, condition: Callable[[Viewer], object], seconds: float = PATIENCE_S) -> None:
        """Receive until something is so."""
        end = time.monotonic() + seconds
        while not condition(self):
            assert time.monotonic() < end and not (self.closed and not self.take()), (
                self.output[-500:], self.states, self.ended, self.closed
            )  # fmt: skip
            self.take(0.2)

    def expect(self, text: str, seconds: float = PATIENCE_S) -> str:
        """Receive until the output has the text, and forget the output up to its end."""
        wanted = text.encode()
        self.until(lambda viewer: wanted in viewer.output, seconds)
        before, _, self.output = self.output.partition(wanted)
        return before.decode(errors="replace")

    def type(self, text: str | bytes) -> None:
        """Type it."""
        data = text.encode() if isinstance(text, str) else text
        for at in range(0, len(data), frames.DATA_MAX):
            self.sock.send(frames.INPUT + data[at : at + frames.DATA_MAX])

    def resize(self, cols: int, rows: int) -> None:
        """Change the window's size."""
        self.sock.send(frames.facts(frames.SIZE, {"cols": cols, "rows": rows}))

    def close(self) -> None:
        """Detach."""
        self.sock.close()

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def begin(agent: Agent, verb: str, **args: Any) -> tuple[Any, socket.socket]:
    """Send a call that attaches: the call under way, and our end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        return agent.begin(verb, sends={"output": theirs.fileno()}, **args), ours


def attempt(agent: Agent, verb: str, **args: Any) -> Answer:
    """The answer to a call that attaches, which is expected to fail."""
    call, ours = begin(agent, verb, **args)
    with ours:
        answer: Answer = call.answer()
        return answer


def open_terminal(agent: Agent, ws: str, *command: str, cols: int = 80, rows: int = 24) -> tuple[str, Viewer]:
    """Open a terminal and attach to it: its id, and the viewer."""
    call, ours = begin(
        agent, "terminal.open", id=ws, cols=cols, rows=rows, command=list(command) or None, attach=True
    )
    row = call.answer().data["terminal"]
    return row["id"], Viewer(ours)


def attach(agent: Agent, ws: str, terminal: str, cols: int = 80, rows: int = 24) -> Viewer:
    """Attach to a terminal."""
    call, ours = begin(agent, "terminal.attach", id=ws, terminal=terminal, cols=cols, rows=rows)
    assert call.answer().data["terminal"]["id"] == terminal
    return Viewer(ours)


def listed(agent: Agent, ws: str) -> dict[str, dict[str, Any]]:
    """The workspace's terminals by id."""
    return {row["id"]: row for row in agent.call("terminal.list", id=ws).data["terminals"]}
