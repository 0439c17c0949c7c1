"""One terminal: its command, its scrollback and its viewers.

The shell goes on without viewers. Nothing waits for a viewer that does not read; one
that keeps reading, however slowly, loses nothing as long as none is faster.
"""

from __future__ import annotations

import socket
import time

from svc_helper.agent.calls import Failure
from svc_helper.agent.runtime.runtime_errors import NOT_EXECUTABLE, NOT_FOUND, cannot_run, refused_by_kernel
from svc_helper.shim.consoles import Console
from svc_helper.shim.control import Request, sent_socket
from svc_helper.shim.scrollback import Scrollback
from svc_helper.shim.terminal_command import KILLED, Command
from svc_helper.shim.terminal_master import Master
from svc_helper.shim.viewers import KIND, Audience, Size, Viewer
from svc_helper.shim.workspace import Workspace
from svc_helper.wire.arguments import ProtocolError
from svc_helper.wire.quick_typing import Any
from svc_helper.wire.terminal_frames import END, INPUT, SIZE, STATE, facts, read_facts, read_size

VIEWERS_MAX = 8  # of one terminal
_KILL_S = 3  # from the hang-up to KILL
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
        self._argv, self._size = command, size
        self._opened_at, self._active_at = time.time(), time.time()
        self._exit_code: int | None = None
        self._reason = ""  # of an ending that was asked for
        self._title = ""
        self._scrollback = Scrollback()
        self._command = Command(self._loop)
        self._master = Master(self._loop, self._scrollback, self)
        self._viewers = Audience(self._loop, self._scrollback, self)
        self._opener: Request | None = None
        self._first: socket.socket | None = None  # of the opener, until there is something to see
        self._closers: list[Request] = []
        self._announced = False  # the viewers, of the end

    def row(self) -> dict[str, Any]:
        """The terminal as it is listed."""
        return {
            "id": self.id,
            "title": self._scrollback.title,
            "command": _beginning_of(self._argv),
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
        self._opener, self._first = opener, viewer
        self._command.begin(console, self._opened, self._exited)

    def _opened(self, master: int) -> None:
        self._master.open(master, self._size)
        opener, self._opener = self._opener, None
        if self._first is not None:
            self._add_viewer(self._first, self._size)
            self._first = None
        if opener is not None:
            opener.answer({"terminal": self.row()})
        self._pump()

    # --- viewers ------------------------------------------------------------------

    def attach(self, request: Request) -> None:
        """Attach the viewer whose socket came with the request; raises Failure."""
        if len(self._viewers) >= VIEWERS_MAX:
            raise Failure("too_many", f"{VIEWERS_MAX} viewers are attached to this terminal already")
        size = read_size(request.args)
        viewer = self._add_viewer(sent_socket(request.fds, KIND), size)
        request.answer({"terminal": self.row()})
        viewer.pump()
        if self.exited_at is not None:
            viewer.end(self._end_frame())

    def _add_viewer(self, sock: socket.socket, size: Size) -> Viewer:
        viewer = self._viewers.add(sock, size)
        self.active = time.monotonic()
        self._follow_size(self._viewers.only())
        viewer.set_reading(self._master.takes_typing)
        return viewer

    def viewer_gone(self, viewer: Viewer) -> None:
        """Detach it; the only one that is left determines the size."""
        self._viewers.remove(viewer)
        self.active = time.monotonic()
        self._follow_size(self._viewers.only())
        self.viewer_moved()

    def viewer_moved(self) -> None:
        """A viewer has read something, or has gone."""
        self._master.viewer_moved()

    def handle(self, viewer: Viewer, frame: bytes) -> None:
        """Handle a viewer's frame; anything else than typing and a size detaches it."""
        try:
            if frame[:1] == INPUT:
                self._viewers.typed(viewer)
                self._follow_size(viewer)
                self.active = time.monotonic()
                self._master.type(frame[1:])
            elif frame[:1] == SIZE:
                viewer.size = read_size(read_facts(frame[1:]))
                if self._viewers.decides_size(viewer):
                    self._follow_size(viewer)
            else:
                raise ProtocolError("an unknown frame")
        except ProtocolError:
            viewer.close()

    def typing_taken(self) -> None:
        """Viewers are not read while the terminal takes no more of what they type."""
        self._viewers.set_reading(self._master.takes_typing)

    def _follow_size(self, viewer: Viewer | None) -> None:
        """Give the terminal the size of this viewer, if there is one."""
        if viewer is not None and viewer.size != self._size:
            self._size = viewer.size
            self._master.set_size(self._size)
            self._state_changed()

    def state_frame(self) -> bytes:
        """The frame with the title and the size."""
        return facts(STATE, {"title": self._title, "cols": self._size[0], "rows": self._size[1]})

    def _end_frame(self) -> bytes:
        return facts(END, {"reason": self._reason or "exited", "exit_code": self._exit_code})

    def _state_changed(self) -> None:
        self._viewers.state_changed()
        self._pump()

    def output_arrived(self) -> None:
        """Pass on output that the scrollback has got."""
        self.active, self._active_at = time.monotonic(), time.time()
        if self._scrollback.title != self._title:
            self._title = self._scrollback.title
            self._viewers.state_changed()
        self._pump()

    def lags(self) -> bool:
        """Whether there are viewers, and even the quickest is far behind."""
        return self._viewers.lags()

    def _pump(self) -> None:
        if self._viewers.pump():
            self._master.viewers_read()

    # --- ending -------------------------------------------------------------------

    def close(self, reason: str, request: Request | None = None) -> None:
        """Hang up, as a closed window does; the command itself is killed if it stays."""
        if request is not None:
            self._closers.append(request)
        if not self._command.is_running:
            self._answer_closers()
            return
        self._reason = self._reason or reason
        if self._master.is_open:
            self._master.close()
            self._loop.later(_KILL_S, self.kill)
        else:
            self.kill()

    def kill(self) -> None:
        """Kill the command, if it runs."""
        self._command.kill()

    def _exited(self) -> None:
        """Handle the end of crun, and with it of the command."""
        if not self._command.is_running:
            return
        errors = self._command.finish()
        self._exit_code = self._command.exit_code
        self._master.drain()
        self._title = self._scrollback.title
        self._master.close()
        if errors and (not self._command.has_begun or refused_by_kernel(errors)):
            self._not_run(errors)
        elif self._exit_code == 1 and self._scrollback.end <= _REFUSAL_MAX:
            visible = self._scrollback.read(0, _REFUSAL_MAX).decode(errors="replace")
            if refused_by_kernel(visible):  # written into the terminal alone by crun 1.21
                self._not_run(visible)
        self.exited_at = self.active = time.monotonic()
        self._fail_opener(Failure("failed", "the terminal could not be made"))
        if self._exit_code == KILLED and not self._reason:
            self._loop.later(_RECENT_S, self._end_viewers)
        else:
            self._end_viewers()
        self._answer_closers()

    def _not_run(self, untrusted_errors: str) -> None:
        """Say why the command was not run: to the opener, or to those who see its terminal."""
        self._workspace.log("a terminal's command was not run", terminal=self.id, why=untrusted_errors)
        program, workspace = self._argv[0] if self._argv else "/bin/sh", self._workspace
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

    def _end_viewers(self) -> None:
        """Tell the viewers; of a killed command a moment later, since its container may be about to end."""
        self._announced = True
        self._viewers.end(self._end_frame())

    def _answer_closers(self) -> None:
        while self._closers:
            self._closers.pop().answer({"closed": True})

    def workspace_ended(self) -> None:
        """Tell the viewers what can be told at once, and close everything."""
        if not self._announced:
            self._reason = self._reason or "stopped"
        if self._command.is_running:
            self._command.wait(_LAST_S)
            self._exited()
        self._end_viewers()
        self._viewers.close()


def _beginning_of(command: list[str] | None) -> list[str] | None:
    """The beginning of a command: eight of them must fit a message."""
    return None if command is None else [item[:_LISTED_MAX] for item in command[:_LISTED_ITEMS]]


def _rfc3339(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
