"""Follows the output of a container or a launcher.

Both are numbered files (runtime/log_files.py): a reader that keeps up loses nothing; one
that is slower than what is kept loses the middle, which a marker says, and the writer never
waits. Files are polled five times a second.
"""

from __future__ import annotations

import codecs
import json
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

from svc_helper.agent import paths
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers import running
from svc_helper.agent.containers.logs import open_files
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import crun, launcher_states, log_files, records
from svc_helper.agent.runtime.log_files import Files, Position
from svc_helper.wire.limits import LOG_MARKER_MAX

FOLLOWS_MAX = 8  # of one user at once, so that other calls have places
_PAUSE_S = 0.2
_PIECE_MAX = 32 * 1024  # bytes of one message
_ESCAPED_MAX = 60 * 1024  # as JSON, where a control character takes six bytes
_CONMON_S = 2.0  # for conmon to write a container's last output
_GONE = "some output is missing here: it is no longer kept"

_places = threading.BoundedSemaphore(FOLLOWS_MAX)


def follow(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Send the last `tail` lines, or all that is kept, and all later output.

    In progress messages {"text"} and {"marker"}; with `times` each line has its time before
    it. Ends when the caller goes, or with {"ended": true} when the container (with
    `launcher`, that launcher) has ended and all is sent. Raises Failure `not_found` for one
    that never ran.
    """
    if not _places.acquire(blocking=False):
        raise Failure("unavailable", "too many outputs are being followed at once")
    try:
        ending = _Ending(podman, call, args)
        with open_files(podman.home, args) as files:
            start = log_files.find_start(files, args["tail"], None, call.check).position
            asked_for_gone = files.first.number > 0 and start == files.first
        reader = _Reader(call, start, times=bool(args["times"]))
        if asked_for_gone:
            reader.mark(_GONE)
        while True:
            ended = ending.has_come()  # checked before reading, so that all output before it is read
            with open_files(podman.home, args) as files:
                reader.read_on(files)
            if ended:
                break
            call.sleep(_PAUSE_S)
        reader.end()
    finally:
        _places.release()
    return {"ended": True}


class _Reader:
    """Sends what has been added to the files."""

    def __init__(self, call: Call, position: Position, *, times: bool) -> None:
        self.call, self.position = call, position
        self._output_of = log_files.renderer(times=times)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read_on(self, files: Files) -> None:
        """Send the rows from the position to the end."""
        if self.position < files.first and not files.empty:
            if self.position != (0, 0):
                self.mark(_GONE)
            self.position = files.first
        if self.position > files.end:
            return
        for rows in files.forward(self.position, files.end) if not files.empty else ():
            for kind, content in log_files.pieces_of(rows, self._output_of):
                if kind == log_files.MARKER:
                    self.mark(content[:LOG_MARKER_MAX].decode(errors="replace"))
                else:
                    self._send(content)
            self.call.check()
        self.position = files.end

    def mark(self, text: str) -> None:
        """Send a marker."""
        self.call.progress({"marker": text}, wait=True)

    def end(self) -> None:
        """Send what was an incomplete character."""
        self._send(b"", final=True)

    def _send(self, content: bytes, *, final: bool = False) -> None:
        for text in _pieces(self._decoder.decode(content, final)):
            self.call.progress({"text": text}, wait=True)


def _pieces(text: str) -> Iterator[str]:
    while text:
        piece = text[:_PIECE_MAX]
        while len(piece.encode()) > _PIECE_MAX or len(json.dumps(piece)) > _ESCAPED_MAX:
            piece = piece[: len(piece) // 2]
        yield piece
        text = text[len(piece) :]


class _Ending:
    """The end of a container or a launcher."""

    def __init__(self, podman: Podman, call: Call, args: dict[str, Any]) -> None:
        self.first = running.find(podman, call, args["id"])
        self.launcher = args["launcher"]
        self.directory = paths.launchers(podman.home.home, args["id"])
        record = records.recall(podman.home, args["id"]) if self.launcher is None else None
        self.exits = f"{podman.home.runtime}/libpod/tmp/exits/{record.container_id}" if record else ""
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
