"""One viewer's end of a terminal: what the workspace's shim sends is its user's, and hostile until checked.

Nothing here waits, and nothing asks the helper or the database but touch(): an event
loop may call it.
"""

from __future__ import annotations

from typing import Any

from svc.domain import untrusted
from svc.domain.workspaces import idle
from svc.errors import EngineFailed
from svc.helper.replies import escaped
from svc.helper.transfers import DataStream
from svc_helper.wire import terminal_frames as frames

TITLE_MAX = 256
LOST = ("end", {"reason": "lost", "exit_code": None})  # the shim was killed, or sent rubbish

Message = tuple[str, Any]


class Attached:
    """An attached viewer. Messages of the terminal are (kind, data):

    ("state", {title, cols, rows}) at first and on each change; ("output", bytes);
    ("skipped", {bytes}) before a screen that begins anew, for a viewer that did not keep up;
    ("end", {reason, exit_code}) last, with reason exited, closed, idle, stopped or lost.
    """

    def __init__(self, workspace_id: str, record: dict[str, Any], stream: DataStream) -> None:
        self.record = record
        self.typed = False  # since the last touch()
        self._workspace_id, self._stream = workspace_id, stream
        self._ended = False

    def fileno(self) -> int:
        """The descriptor to poll: for reading, and for writing when send() or resize() had no room."""
        return self._stream.fileno()

    def receive(self) -> Message | None:
        """The next message; None when there is none yet, and after the end."""
        if self._ended:
            return None
        try:
            frame = self._stream.receive(frames.FRAME_MAX + 1)
            if frame is None:
                return None
            message = _message(frame)
        except (EngineFailed, frames.ProtocolError, OSError):
            message = LOST
        self._ended = message[0] == "end"
        return message

    def send(self, data: bytes) -> int:
        """Type these bytes; how many were taken. What follows an end is dropped."""
        taken = 0
        while taken < len(data):
            part = data[taken : taken + frames.DATA_MAX]
            if not self._send(frames.INPUT + part):
                break
            taken += len(part)
        self.typed = self.typed or taken > 0
        return taken

    def resize(self, cols: int, rows: int) -> bool:
        """Tell the size of the viewer's window; False when there is no room now."""
        return self._send(frames.facts(frames.SIZE, {"cols": cols, "rows": rows}))

    def touch(self) -> None:
        """Write to the database that the workspace is in use, if anything was typed since the last time."""
        if self.typed:
            self.typed = False
            idle.touch(self._workspace_id)

    def _send(self, frame: bytes) -> bool:
        try:
            return self._stream.send(memoryview(frame)) > 0
        except OSError:  # closed; receive() has the end
            return True


def _message(untrusted_frame: bytes) -> Message:
    kind, content = untrusted_frame[:1], untrusted_frame[1:]
    if len(content) > frames.DATA_MAX:
        raise frames.ProtocolError("over-long frame")
    if kind == frames.OUTPUT:
        return "output", content
    if kind == frames.STATE:
        found = frames.read_facts(content)
        cols, rows = frames.read_size(found)
        return "state", {"title": escaped(found.get("title"), TITLE_MAX), "cols": cols, "rows": rows}
    if kind == frames.SKIPPED:
        return "skipped", {"bytes": untrusted.get_count(frames.read_facts(content), "bytes")}
    if kind == frames.END:
        found = frames.read_facts(content)
        reason = untrusted.get_choice(found, "reason", frames.REASONS)
        return "end", {"reason": reason, "exit_code": untrusted.find_number(found, "exit_code")}
    return LOST
