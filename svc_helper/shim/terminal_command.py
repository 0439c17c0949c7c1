"""The command of a terminal: crun, which makes the terminal and runs it, until the end of both was seen."""

from __future__ import annotations

import os
from _signal import SIGKILL, pidfd_send_signal
from contextlib import suppress

from svc_helper.shim.consoles import Console
from svc_helper.shim.loop import IN, Loop

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable

_START_S = 30  # for crun to send the terminal
_BY_SIGNAL = 128
KILLED = _BY_SIGNAL + SIGKILL


class Command:
    """A crun from its start until its end was seen: `is_running` until then, `exit_code` after that."""

    def __init__(self, loop: Loop) -> None:
        self.exit_code: int | None = None
        self.has_begun = False  # the command itself, of whose process crun has told the number
        self._loop = loop
        self._console: Console | None = None
        self._pidfd = -1  # of the command
        self._on_master: Callable[[int], None] | None = None  # until it is called

    @property
    def is_running(self) -> bool:
        """Whether crun has not ended, as far as was seen."""
        return self._console is not None

    def begin(self, console: Console, on_master: Callable[[int], None], on_exit: Callable[[], None]) -> None:
        """Watch a crun that was just started; `on_master` gets the descriptor of its terminal."""
        self._console, self._on_master = console, on_master
        self._await_master(console)
        self._loop.watch(console.pid_pipe, IN, lambda events: self._learn_pid())
        self._loop.watch(console.process.pidfd, IN, lambda events: on_exit())
        self._loop.later(_START_S, self._give_up)

    def _await_master(self, console: Console) -> None:
        self._loop.watch(console.fileno(), IN, lambda events: self._take_master(console))

    def _take_master(self, console: Console) -> None:
        if self._on_master is None or console.fileno() < 0:
            return
        self._loop.unwatch(console.fileno())
        try:
            master = console.take_master()
        except (OSError, EOFError):
            return  # crun ends, or is ended
        if master is None:
            self._await_master(console)
            return
        console.stop_listening()
        opened, self._on_master = self._on_master, None
        opened(master)

    def _learn_pid(self) -> None:
        if self._console is None:
            return
        try:
            pid = os.read(self._console.pid_pipe, 32).strip()
        except BlockingIOError:
            return
        self._loop.unwatch(self._console.pid_pipe)
        if pid.isdigit():
            self.has_begun = True
            with suppress(OSError):  # crun, which has not ended, keeps the pid from being reused
                self._pidfd = os.pidfd_open(int(pid))

    def _give_up(self) -> None:
        if self._on_master is not None:
            self.kill()

    def kill(self) -> None:
        """Kill the command, if it runs; crun, as long as that has not told of it."""
        if self._console is not None:
            pidfd = self._pidfd if self._pidfd >= 0 else self._console.process.pidfd
            with suppress(OSError):  # it has ended
                pidfd_send_signal(pidfd, SIGKILL)

    def wait(self, seconds: float) -> None:
        """Wait so long for crun to end by itself."""
        if self._console is not None:
            self._console.process.wait(seconds)

    def finish(self) -> str:
        """Take the end of crun, and with it of the command; what crun wrote about errors (untrusted)."""
        console = self._console
        if console is None:
            return ""
        self._take_master(console)  # a quick command may have ended before
        self._learn_pid()
        code = console.process.ended()
        self.exit_code = _BY_SIGNAL - code if code is not None and code < 0 else code
        errors = console.read_errors()
        for fd in (console.process.pidfd, console.pid_pipe):
            self._loop.unwatch(fd)
        if console.fileno() >= 0:
            self._loop.unwatch(console.fileno())
        console.close()
        self._console = None
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        return errors
