"""Follows the output of a container or a launcher.

Both are numbered files (runtime/log_files.py): a reader that keeps up loses nothing; one
that is slower than what is kept loses the middle, which it is told, and the writer never
waits. Files are polled five times a second. The rows go over a pair of sockets that the app
makes, as they are in the files: the call ends at once, and whoever holds the other end
needs no thread to wait.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Iterator

from svc_helper.agent import paths
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import running
from svc_helper.agent.containers.logs import open_files
from svc_helper.agent.home import Home
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import crun, launcher_states, log_files, records
from svc_helper.agent.runtime.log_files import Files, Position
from svc_helper.wire import log_frames as frames
from svc_helper.wire.quick_typing import Any

FOLLOWS_MAX = 64  # of one user at once: a thread of this agent each
_PAUSE_S = 0.2
_FOLLOWS_EACH_PAUSE = 8  # with more the pauses are longer, so that polling stays cheap
_CONMON_S = 2.0  # for conmon to write a container's last output

_lock = threading.Lock()
_followers: set[_Follower] = set()


def follow(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Send the last `tail` lines, or all that is kept, and all later output, over the caller's sockets.

    With `start`, the position of a row, it begins after the first `skip` bytes of that row's output
    instead. The reply comes at once; the frames (wire/log_frames.py) until the container (with
    `launcher`, that launcher) has ended and all is sent, or the caller closes. Raises
    Failure `not_found` for one that never ran.
    """
    stream = socket.socket(fileno=call.data_stream("output"))
    try:
        follower = _Follower(podman.home, args, _Ending(podman, call, args), stream)
        with open_files(podman.home, args) as files:
            follower.begin(files, call)
        with _lock:
            if len(_followers) >= FOLLOWS_MAX:
                raise Failure("unavailable", "too many outputs are being followed at once")
            _followers.add(follower)
    except BaseException:  # raised again: nothing else would close the socket
        stream.close()
        raise
    call.afterwards.append(follower.run)
    return {}


class _Follower:
    """Sends what is kept, and what is added to the files."""

    def __init__(self, home: Home, args: dict[str, Any], ending: _Ending, stream: socket.socket) -> None:
        self.home, self.args, self.ending, self.stream = home, args, ending, stream
        self.position = Position(0, 0)
        self.sent = 0  # bytes of the output of the row there
        self.is_missing = False

    def begin(self, files: Files, call: Call) -> None:
        """Find where to begin."""
        start = self.args["start"]
        if start is None:
            self.position = log_files.find_start(files, self.args["tail"], None, call.check).position
            self.is_missing = files.first.number > 0 and self.position == files.first
            return
        self.position, self.sent = Position(start["number"], start["offset"]), self.args["skip"]
        if self.position > files.end:  # of other files than these
            self.position, self.sent, self.is_missing = files.first, 0, True

    def run(self) -> None:
        """Send until the end, or until the app's end is closed."""
        try:
            self._run()
        except OSError:
            pass  # the app's end is closed
        finally:
            self.stream.close()
            with _lock:
                _followers.discard(self)

    def _run(self) -> None:
        while True:
            ended = self.ending.has_come()  # checked before reading, so that all output before it is read
            with open_files(self.home, self.args) as files:
                self._read_on(files)
            if ended:
                self._send(frames.END)
                return
            if self._wait(0, _PAUSE_S * (1 + len(_followers) // _FOLLOWS_EACH_PAUSE)):
                return

    def _read_on(self, files: Files) -> None:
        """Send the rows from the position to the end."""
        if self.position < files.first and not files.empty:
            self.is_missing = self.is_missing or self.position != (0, 0) or self.sent > 0
            self.position, self.sent = files.first, 0
        if self.is_missing:
            self._send(frames.MISSING)
            self.is_missing = False
        if files.empty or self.position > files.end:
            return
        for first, rows in files.located(self.position, files.end):
            for number, offset, sent, content in _split(first, rows, self.sent):
                self._send(frames.rows(number, offset, sent, content))
            self.sent = 0
        self.position = files.end

    def _send(self, frame: bytes) -> None:
        while True:
            try:
                self.stream.send(frame, socket.MSG_NOSIGNAL)
                return
            except BlockingIOError:
                if self._wait(select.POLLOUT, None):
                    raise BrokenPipeError from None

    def _wait(self, events: int, seconds: float | None) -> bool:
        """Wait for an event of the socket, or so long; whether the app's end is closed."""
        poller = select.poll()
        poller.register(self.stream, events)  # a closed end is always reported
        ready = dict(poller.poll(None if seconds is None else seconds * 1000))
        return bool(ready.get(self.stream.fileno(), 0) & (select.POLLHUP | select.POLLERR))


def _split(first: Position, rows: bytes, sent: int) -> Iterator[tuple[int, int, int, bytes]]:
    """Some rows as the content of frames, after `sent` bytes of the first one's output.

    Rows that are longer than a frame, or were sent in part, have frames of their own.
    """
    number, offset = first
    rows += b"\n"
    while rows:
        cut = rows.rfind(b"\n", 0, frames.ROWS_MAX) + 1
        if cut and not sent:
            yield number, offset, 0, rows[:cut]
        else:
            cut = rows.index(b"\n") + 1
            yield from ((number, offset, *part) for part in _parts(rows[: cut - 1], sent))
            sent = 0
        offset, rows = offset + cut, rows[cut:]


def _parts(row: bytes, sent: int) -> Iterator[tuple[int, bytes]]:
    """A row after `sent` bytes of its output, in rows that fit into frames: (bytes before it, row)."""
    whole = row[frames.FLAG] == frames.WHOLE
    head, text = row[: frames.FLAG.start], row[frames.HEAD :]
    if sent >= len(text) + whole:
        return
    most = frames.ROWS_MAX - frames.HEAD - 1
    while sent + most < len(text):
        yield sent, head + frames.PARTIAL + text[sent : sent + most] + b"\n"
        sent += most
    yield sent, head + row[frames.FLAG] + text[sent:] + b"\n"


class _Ending:
    """The end of a container or a launcher."""

    def __init__(self, podman: Podman, call: Call, args: dict[str, Any]) -> None:
        self.first = running.find(podman, call, args["id"])
        self.launcher = args["launcher"]
        self.directory = paths.launchers(podman.home.home, args["id"])
        record = records.recall(podman.home, args["id"]) if self.launcher is None else None
        self.exits = f"{podman.home.podman_runtime}/libpod/tmp/exits/{record.container_id}" if record else ""
        self.ended_at: float | None = None
        if self.launcher is not None and not self._ever_ran(self.launcher):
            raise Failure("not_found", "the launcher was never started")

    def _ever_ran(self, launcher: str) -> bool:
        state = launcher_states.read(self.directory, launcher)
        return state is not None or bool(log_files.numbers(self.directory, launcher))

    def has_come(self) -> bool:
        """Whether the output is complete."""
        if self.first is None:
            return True
        ended = crun.start_time(self.first.pid) != self.first.started
        if self.launcher is not None:
            state = launcher_states.read(self.directory, self.launcher)
            return ended or state is None or state.state != launcher_states.STARTED
        if not ended:
            return False
        now = time.monotonic()
        self.ended_at = self.ended_at or now
        # The first process may have ended before conmon has written all output; then conmon writes this file.
        return os.path.exists(self.exits) or now - self.ended_at > _CONMON_S
