"""A terminal around a real command, with a small program in crun's place, and its viewers."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from agent.viewing import Viewer

from svc_helper.agent.calls import Failure
from svc_helper.agent.process import start
from svc_helper.shim.consoles import Console
from svc_helper.shim.loop import Loop
from svc_helper.shim.terminal import Terminal

# Makes a terminal, sends its master as crun does, and exits as the command does.
CRUN = """
import fcntl, os, pty, socket, sys, termios
master, slave = pty.openpty()
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for number in (0, 1, 2):
        os.dup2(slave, number)
    os.closerange(3, 100)
    os.execvp(sys.argv[2], sys.argv[2:])
os.close(slave)
socket.send_fds(sock, [b" "], [master])
os.close(master)
os.write(5, str(pid).encode())
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(status if status >= 0 else 128 - status)
"""


class Opener:
    """The request that opened the terminal."""

    def __init__(self) -> None:
        self.reply: dict[str, Any] | Failure | None = None
        self.args: dict[str, Any] = {"cols": 80, "rows": 24}
        self.fds: list[int] = []

    def answer(self, data: dict[str, Any]) -> None:
        self.reply = data

    def fail(self, failure: Failure) -> None:
        self.reply = failure


class Stage:
    """A loop with one terminal."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.loop = Loop()
        self.logged: list[str] = []
        self.terminal: Terminal
        self.viewers: list[Viewer] = []

    def open(self, *command: str, viewer: bool = True) -> Viewer:
        """Start the command; a viewer attached from the beginning."""
        path = str(self.directory / "console")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(1)
        listener.setblocking(False)
        read, write = os.pipe2(os.O_CLOEXEC)
        errors = os.memfd_create("errors")
        os.set_blocking(read, False)
        process = start([sys.executable, "-c", CRUN, path, *command], os.environ, {5: write})
        os.close(write)
        tracker = cast("Any", SimpleNamespace(close=lambda: None))
        console = Console(process, listener, read, errors, tracker)
        workspace = SimpleNamespace(loop=self.loop, log=lambda message, **facts: self.logged.append(message))
        self.terminal = Terminal(cast("Any", workspace), "t-test00", list(command), (80, 24))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        opener = Opener()
        self.terminal.begin(console, cast("Any", opener), theirs if viewer else None)
        self.until(lambda: opener.reply)
        assert isinstance(opener.reply, dict)
        if not viewer:
            theirs.close()
        self.viewers.append(Viewer(ours))
        return self.viewers[-1]

    def attach(self, cols: int = 80, rows: int = 24) -> Viewer:
        """Attach another viewer."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = Opener()
        request.args, request.fds = {"cols": cols, "rows": rows}, [theirs.detach()]
        try:
            self.terminal.attach(cast("Any", request))
        except Failure:
            os.close(request.fds.pop())
            ours.close()
            raise
        self.viewers.append(Viewer(ours))
        return self.viewers[-1]

    def until(self, condition: Callable[[], object], *reading: Viewer, seconds: float = 30) -> None:
        """Turn the loop, and let these viewers read, until something is so."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, [viewer.output[-200:] for viewer in self.viewers]
            self.loop.turn(0.02)
            for viewer in reading:
                while viewer.take():
                    pass

    def close(self) -> None:
        """End the command."""
        self.terminal.close("closed")
        self.terminal.kill()
        self.until(lambda: self.terminal.exited_at is not None)
        for viewer in self.viewers:
            viewer.close()
        self.until(lambda: not self.terminal.watched)
        self.loop.close()
