"""One terminal: its command, its scrollback and its viewers.

The shell goes on without viewers. Nothing waits for a viewer that does not read; one
that keeps reading, however slowly, loses nothing as long as none is faster.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import termios
import time
from _signal import SIGKILL, pidfd_send_signal
from contextlib import suppress

from svc_helper.agent.calls import Failure
from svc_helper.agent.runtime.runtime_errors import NOT_EXECUTABLE, NOT_FOUND, cannot_run, refused_by_kernel
from svc_helper.shim.consoles import Console
from svc_helper.shim.control import Request
from svc_helper.shim.loop import IN, OUT, Timer
from svc_helper.shim.scrollback import Scrollback
from svc_helper.shim.viewers import Size, Viewer, viewer_socket
from svc_helper.shim.workspace import Workspace
from svc_helper.wire.arguments import ProtocolError
from svc_helper.wire.quick_typing import Any
from svc_helper.wire.terminal_frames import END, INPUT, SIZE, STATE, facts, read_facts, read_size

VIEWERS_MAX = 8  # of one terminal
_PART = 64 * 1024
_ROUNDS = 16  # parts of one event; the kernel has 4 KiB in each
_RATE_BYTES, _RATE_S = 1024 * 1024, 0.05  # 20 MB/s: endless output must not use a whole processor
_AHEAD_MAX = 64 * 1024  # bytes that the quickest viewer has yet to read, beyond which the shell waits
_PATIENCE_S = 1.0  # that the shell waits for viewers of which none reads
_INPUT_MAX = 64 * 1024  # bytes typed that the shell has not taken
_START_S = 30  # for crun to send the terminal
_KILL_S = 3  # from the hang-up to KILL
_DRAIN_MAX = 1024 * 1024  # of the output that an ended command left
_HUNG_UP_S = 1.0  # until the next look at a terminal that no process has open
_BY_SIGNAL = 128
_KILLED = _BY_SIGNAL + SIGKILL
_RECENT_S = 2  # before the container's end, which is then taken for the reason
_NOT_STARTED = 125
_REFUSAL_MAX = 256  # bytes of what crun writes when the kernel refuses a program
_LISTED_ITEMS, _LISTED_MAX = 8, 100  # of a command in a list
_LAST_S = 3  # for crun to end after the container


class Terminal:
    """A terminal, from its start until its end was seen."""

    def __init__(self, workspace: Workspace, terminal_id: str, command: list[str] | None, size: Size) -> None:
        self.id = terminal_id
        self.exited_at: float | None = None  # monotonic
        self.failed = False  # to start
        self.active = time.monotonic()  # the latest output, input or viewer
        self._workspace, self._loop = workspace, workspace.loop
        self._command, self._size = command, size
        self._opened_at, self._active_at = time.time(), time.time()
        self._exit_code: int | None = None
        self._reason = ""  # of an ending that was asked for
        self._console: Console | None = None  # until crun has ended
        self._master = -1
        self._pidfd, self._began = -1, False  # of the command
        self._scrollback = Scrollback()
        self._title = ""
        self._viewers: list[Viewer] = []
        self._typist: Viewer | None = None
        self._typed = bytearray()
        self._taken, self._since = 0, 0.0
        self._paused: Timer | None = None
        self._for_viewers, self._read_at = False, 0.0
        self._opener: Request | None = None
        self._first: socket.socket | None = None  # of the opener, until there is something to see
        self._closers: list[Request] = []
        self._announced = False  # the viewers, of the end

    def row(self) -> dict[str, Any]:
        """The terminal as it is listed."""
        return {
            "id": self.id,
            "title": self._scrollback.title,
            "command": _beginning_of(self._command),
            "cols": self._size[0],
            "rows": self._size[1],
            "viewers": len(self._viewers),
            "state": "running" if self.exited_at is None else "exited",
            "exit_code": self._exit_code,
            "opened_at": _rfc3339(self._opened_at),
            "active_at": _rfc3339(self._active_at),
        }

    @property
    def watched(self) -> bool:
        """Whether a viewer is attached."""
        return bool(self._viewers)

    # --- starting ----------------------------------------------------------------

    def begin(self, console: Console, opener: Request, viewer: socket.socket | None) -> None:
        """Wait for the terminal of a crun that was just started; then attach the viewer, and answer."""
        self._console, self._opener, self._first = console, opener, viewer
        self._await_master(console)
        self._loop.watch(console.pid_pipe, IN, lambda events: self._learn_pid())
        self._loop.watch(console.process.pidfd, IN, lambda events: self._exited())
        self._loop.later(_START_S, self._give_up)

    def _await_master(self, console: Console) -> None:
        self._loop.watch(console.fileno(), IN, lambda events: self._take_master(console))

    def _take_master(self, console: Console) -> None:
        if self._master >= 0 or console.fileno() < 0:
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
        self._master = master
        self._set_size(self._size)
        self._listen()
        opener, self._opener = self._opener, None
        if self._first is not None:
            self._add_viewer(self._first, self._size)
            self._first = None
        if opener is not None:
            opener.answer({"terminal": self.row()})
        self._pump()

    def _learn_pid(self) -> None:
        if self._console is None:
            return
        try:
            pid = os.read(self._console.pid_pipe, 32).strip()
        except BlockingIOError:
            return
        self._loop.unwatch(self._console.pid_pipe)
        if pid.isdigit():
            self._began = True
            with suppress(OSError):  # crun, which has not ended, keeps the pid from being reused
                self._pidfd = os.pidfd_open(int(pid))

    def _give_up(self) -> None:
        if self._master < 0:
            self.kill()

    # --- viewers ------------------------------------------------------------------

    def attach(self, request: Request) -> None:
        """Attach the viewer whose socket came with the request; raises Failure."""
        if len(self._viewers) >= VIEWERS_MAX:
            raise Failure("too_many", f"{VIEWERS_MAX} viewers are attached to this terminal already")
        size = read_size(request.args)
        viewer = self._add_viewer(viewer_socket(request.fds), size)
        request.answer({"terminal": self.row()})
        viewer.pump()
        if self.exited_at is not None:
            viewer.end(self._end_frame())

    def _add_viewer(self, sock: socket.socket, size: Size) -> Viewer:
        viewer = Viewer(self._loop, sock, self._scrollback, size, self)
        self._viewers.append(viewer)
        self.active = time.monotonic()
        if len(self._viewers) == 1:
            self._follow_size(viewer)
        viewer.set_reading(len(self._typed) < _INPUT_MAX)
        return viewer

    def viewer_gone(self, viewer: Viewer) -> None:
        """Detach it; the only one that is left determines the size."""
        self._viewers.remove(viewer)
        self.active = time.monotonic()
        if self._typist is viewer:
            self._typist = None
        if len(self._viewers) == 1:
            self._follow_size(self._viewers[0])
        self.viewer_moved()

    def handle(self, viewer: Viewer, frame: bytes) -> None:
        """Handle a viewer's frame; anything else than typing and a size detaches it."""
        try:
            if frame[:1] == INPUT:
                self._type(viewer, frame[1:])
            elif frame[:1] == SIZE:
                viewer.size = read_size(read_facts(frame[1:]))
                if self._typist in (viewer, None):
                    self._follow_size(viewer)
            else:
                raise ProtocolError("an unknown frame")
        except ProtocolError:
            viewer.close()

    def _follow_size(self, viewer: Viewer) -> None:
        """Give the terminal the size of this viewer: it typed last, or nobody did and it is new."""
        if viewer.size != self._size:
            self._set_size(viewer.size)
            self._state_changed()

    def _set_size(self, size: Size) -> None:
        self._size = size
        if self._master >= 0:
            with suppress(OSError):
                fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("4H", size[1], size[0], 0, 0))

    def state_frame(self) -> bytes:
        """The frame with the title and the size."""
        return facts(STATE, {"title": self._title, "cols": self._size[0], "rows": self._size[1]})

    def _end_frame(self) -> bytes:
        return facts(END, {"reason": self._reason or "exited", "exit_code": self._exit_code})

    def _state_changed(self) -> None:
        for viewer in self._viewers:
            viewer.state_changed()
        self._pump()

    # --- input --------------------------------------------------------------------

    def _type(self, viewer: Viewer, data: bytes) -> None:
        self._typist = viewer
        self._follow_size(viewer)
        self.active = time.monotonic()
        if self._master >= 0:
            self._typed += data
            self._write()

    def _write(self) -> None:
        """Give the terminal what was typed; viewers are not read while it takes no more."""
        try:
            while self._typed:
                del self._typed[: os.write(self._master, self._typed)]
        except BlockingIOError:
            pass
        except OSError:  # hung up
            self._typed.clear()
        for viewer in self._viewers:
            viewer.set_reading(len(self._typed) < _INPUT_MAX)
        self._listen()

    # --- output -------------------------------------------------------------------

    def _listen(self) -> None:
        """Watch the master for what can be done with it now."""
        if self._master < 0:
            return
        mask = (0 if self._paused else IN) | (OUT if self._typed else 0)
        if mask:
            self._loop.watch(self._master, mask, self._act)
        else:
            self._loop.unwatch(self._master)

    def _act(self, events: int) -> None:
        if events & OUT:
            self._write()
        if events & ~OUT and self._master >= 0 and not self._paused:
            self._take()

    def _take(self) -> None:
        """Read some output and pass it on."""
        started = self._scrollback.end
        for _ in range(_ROUNDS):
            if not self._read():
                break
        count = self._scrollback.end - started
        if not count:
            return
        self.active, self._active_at = time.monotonic(), time.time()
        if self.active - self._since > _RATE_S:
            self._taken, self._since = 0, self.active
        self._taken += count
        if self._scrollback.title != self._title:
            self._title = self._scrollback.title
            self._state_changed()
        self._pump()
        if self._taken > _RATE_BYTES:
            self._pause(_RATE_S)
        elif self._lags():
            self._wait_for_viewers()

    def _read(self) -> bool:
        try:
            part = os.read(self._master, _PART)
        except BlockingIOError:
            return False
        except OSError:
            part = b""
        if not part:  # no process has it open; one may open it again
            self._pause(_HUNG_UP_S)
            return False
        self._scrollback.add(part)
        return True

    def _pump(self) -> None:
        for viewer in list(self._viewers):
            if viewer.pump():
                self._read_at = time.monotonic()

    def _lags(self) -> bool:
        """Whether even the quickest viewer is far behind, and there is one."""
        behind = [self._scrollback.end - viewer.position for viewer in self._viewers]
        return bool(behind) and min(behind) > _AHEAD_MAX

    def _pause(self, seconds: float) -> None:
        """Read no output for so long."""
        if self._paused:
            self._paused.drop()
        self._paused = self._loop.later(seconds, self._resume)
        self._listen()

    def _resume(self) -> None:
        if self._paused:
            self._paused.drop()
        self._paused, self._for_viewers = None, False
        self._listen()

    def _wait_for_viewers(self) -> None:
        """Read no output until a viewer has caught up, or none has read for _PATIENCE_S."""
        left = self._read_at + _PATIENCE_S - time.monotonic()
        if self._lags() and left > 0:
            self._for_viewers = True
            if self._paused:
                self._paused.drop()
            self._paused = self._loop.later(left, self._wait_for_viewers)
            self._listen()
        else:
            self._resume()

    def viewer_moved(self) -> None:
        """A viewer has read something, or has gone."""
        self._read_at = time.monotonic()
        if self._for_viewers and not self._lags():
            self._resume()

    # --- ending -------------------------------------------------------------------

    def close(self, reason: str, request: Request | None = None) -> None:
        """Hang up, as a closed window does; the command itself is killed if it stays."""
        if request is not None:
            self._closers.append(request)
        if self._console is None:
            self._answer_closers()
            return
        self._reason = self._reason or reason
        if self._master >= 0:
            self._close_master()
            self._loop.later(_KILL_S, self.kill)
        else:
            self.kill()

    def kill(self) -> None:
        """Kill the command, if it runs; crun, as long as that has not told of it."""
        if self._console is not None:
            pidfd = self._pidfd if self._pidfd >= 0 else self._console.process.pidfd
            with suppress(OSError):  # it has ended
                pidfd_send_signal(pidfd, SIGKILL)

    def _close_master(self) -> None:
        if self._master >= 0:
            self._loop.unwatch(self._master)
            os.close(self._master)
            self._master = -1
            self._typed.clear()

    def _exited(self) -> None:
        """Handle the end of crun, and with it of the command."""
        console = self._console
        if console is None:
            return
        self._take_master(console)  # a quick command may have ended before
        self._learn_pid()
        code = console.process.ended()
        self._exit_code = _BY_SIGNAL - code if code is not None and code < 0 else code
        self._drain()
        errors = console.read_errors()
        if errors and (not self._began or refused_by_kernel(errors)):
            self._not_run(errors)
        elif self._exit_code == 1 and self._scrollback.end <= _REFUSAL_MAX:
            visible = self._scrollback.read(0, _REFUSAL_MAX).decode(errors="replace")
            if refused_by_kernel(visible):  # written into the terminal alone by crun 1.21
                self._not_run(visible)
        self._forget(console)
        self.exited_at = self.active = time.monotonic()
        self._fail_opener(Failure("failed", "the terminal could not be made"))
        if self._exit_code == _KILLED and not self._reason:
            self._loop.later(_RECENT_S, self._end_viewers)
        else:
            self._end_viewers()
        self._answer_closers()

    def _drain(self) -> None:
        """Read what the command left; other processes may still have the terminal open."""
        until = self._scrollback.end + _DRAIN_MAX
        while self._master >= 0 and self._scrollback.end < until:
            try:
                part = os.read(self._master, _PART)
            except OSError:
                break
            if not part:
                break
            self._scrollback.add(part)
        self._title = self._scrollback.title
        self._close_master()

    def _not_run(self, untrusted_errors: str) -> None:
        """Say why the command was not run: to the opener, or to those who see its terminal."""
        self._workspace.log("a terminal's command was not run", terminal=self.id, why=untrusted_errors)
        program, workspace = self._command[0] if self._command else "/bin/sh", self._workspace
        reason = cannot_run(program, untrusted_errors, workspace.home, workspace.running)
        code, text = reason or (_NOT_STARTED, "the command could not be started")
        self._exit_code = code
        kinds = {NOT_FOUND: "command_not_found", NOT_EXECUTABLE: "command_not_executable"}
        self._fail_opener(Failure(kinds.get(code, "failed"), text.strip()))
        self._scrollback.add(text.strip().encode() + b"\r\n")

    def _fail_opener(self, failure: Failure) -> None:
        """Answer an opener that still waits for the terminal."""
        if self._first is not None:
            self._first.close()
            self._first = None
        if self._opener is not None:
            self.failed = True
            self._opener.fail(failure)
            self._opener = None

    def _forget(self, console: Console) -> None:
        """Close what belonged to crun."""
        for fd in (console.process.pidfd, console.pid_pipe):
            self._loop.unwatch(fd)
        if console.fileno() >= 0:
            self._loop.unwatch(console.fileno())
        console.close()
        self._console = None
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1

    def _end_viewers(self) -> None:
        """Tell the viewers; of a killed command a moment later, since its container may be about to end."""
        self._announced = True
        for viewer in list(self._viewers):
            viewer.end(self._end_frame())

    def _answer_closers(self) -> None:
        while self._closers:
            self._closers.pop().answer({"closed": True})

    def workspace_ended(self) -> None:
        """Tell the viewers what can be told at once, and close everything."""
        if not self._announced:
            self._reason = self._reason or "stopped"
        if self._console is not None:
            self._console.process.wait(_LAST_S)  # crun ends by itself
            self._exited()
        self._end_viewers()
        for viewer in list(self._viewers):
            viewer.close()


def _beginning_of(command: list[str] | None) -> list[str] | None:
    """The beginning of a command: eight of them must fit a message."""
    return None if command is None else [item[:_LISTED_MAX] for item in command[:_LISTED_ITEMS]]


def _rfc3339(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
