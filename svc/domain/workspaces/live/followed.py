"""The output of a container or launcher as it comes: pieces with time, stream and place.

An agent sends rows of the numbered files (wire/log_frames.py); they are its user's, and hostile
until checked. Nothing here waits, and nothing asks the helper or the database but `following`
and `attached`: an event loop may call the rest.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from svc.domain.principal import Caller
from svc.domain.workspaces import launchers, states
from svc.errors import EngineFailed
from svc.helper.transfers import DataStream
from svc_helper.wire import log_frames as frames
from svc_helper.wire.limits import LOG_MARKER_MAX

MISSING = "some output is missing here: it is no longer kept"
PLACE = r"[0-9]{1,15}\.[0-9]{1,15}\.[0-9]{1,15}-?"

_POSITION = re.compile(rb"([0-9]{1,15}) ([0-9]{1,15}) ([0-9]{1,15})")
_MOMENT = re.compile(rb"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{18}[+-][0-9]{2}:[0-9]{2}")
_NO_MOMENT = b"-".rjust(frames.TIME.stop)
_STREAMS = {b"stdout": "stdout", b"stderr": "stderr", b"output": "output"}


class Place(NamedTuple):
    """A point in the output: a row by its file and offset, and the bytes of the row's output before it."""

    number: int
    offset: int
    sent: int
    in_line: bool = False  # the line goes on

    def __str__(self) -> str:
        return f"{self.number}.{self.offset}.{self.sent}{'-' * self.in_line}"


def place_of(text: str) -> Place:
    """A place as PLACE describes it."""
    number, offset, sent = text.rstrip("-").split(".")
    return Place(int(number), int(offset), int(sent), text.endswith("-"))


class Piece(NamedTuple):
    """Output ("log") of one time and stream: lines, or a part of one; or what the service noted ("marker").

    `stream` is stdout, stderr, or `output` for both through one pipe, as a launcher's. `place` is
    where to go on after it.
    """

    kind: str
    text: str
    time: str | None = None
    stream: str | None = None
    place: Place | None = None

    def data(self) -> dict[str, Any]:
        """What is told of it besides the place."""
        return {"text": self.text, "time": self.time, "stream": self.stream}


class Ended(NamedTuple):
    """The last message: of a container or launcher that has ended, or `lost`, that of an agent."""

    lost: bool


class Source(NamedTuple):
    """What is followed, and from where: the last `tail` lines, all that is kept, or after a place."""

    workspace_id: str
    launcher: str | None
    tail: int | None
    after: Place | None = None


def source_of(
    caller: Caller, ref: str, tail: int | None, launcher: str | None, after: Place | None = None
) -> Source:
    """The output of the caller's workspace, or of its launcher; raises NotFound. No agent is asked."""
    workspace = states.find(caller, ref)
    if launcher is not None:
        launchers.get(workspace, launcher)
    return Source(workspace.id, launcher, tail, after)


@contextmanager
def attached(caller: Caller, source: Source, *, times: bool) -> Iterator[Followed]:
    """The output for the length of the block; raises NotFound for what never ran."""
    after = source.after
    arguments = {
        "id": source.workspace_id,
        "launcher": source.launcher,
        "tail": source.tail,
        "start": None if after is None else {"number": after.number, "offset": after.offset},
        "skip": 0 if after is None else after.sent,
    }
    with caller.attached("ctr.follow", arguments) as (_, stream):
        yield Followed(stream, times=times, in_line=after is not None and after.in_line)


class Followed:
    """The app's end: rows come in, pieces go out."""

    def __init__(self, stream: DataStream, *, times: bool, in_line: bool = False) -> None:
        self._stream, self._times, self._in_line = stream, times, in_line
        self._rest = b""  # the beginning of a character
        self._ended = False

    def fileno(self) -> int:
        """The descriptor to poll for reading."""
        return self._stream.fileno()

    def receive(self) -> list[Piece | Ended]:
        """What the next frame has; empty when none has come yet, and after the end."""
        if self._ended:
            return []
        try:
            frame = self._stream.receive(frames.FRAME_MAX + 1)
            found = [] if frame is None else self._take(frame)
        except (EngineFailed, OSError):
            found = [Ended(lost=True)]
        self._ended = any(isinstance(one, Ended) for one in found)
        return found

    def _take(self, untrusted_frame: bytes) -> list[Piece | Ended]:
        if untrusted_frame == frames.END:
            text = codecs.utf_8_decode(self._rest, "replace", True)[0]
            return [*([Piece("log", text)] if text else []), Ended(lost=False)]
        if untrusted_frame == frames.MISSING:
            return [Piece("marker", MISSING)]
        if untrusted_frame[:1] != frames.ROWS or len(untrusted_frame) > frames.FRAME_MAX:
            return [Ended(lost=True)]
        position, _, rows = untrusted_frame[1:].partition(b"\n")
        found = _POSITION.fullmatch(position)
        if found is None:
            return [Ended(lost=True)]
        number, offset, sent = map(int, found.groups())
        return list(self._pieces(Place(number, offset, sent), rows))

    def _pieces(self, first: Place, untrusted_rows: bytes) -> Iterator[Piece]:
        """The pieces of some rows; consecutive ones of one time and stream are one."""
        number, offset, sent, _ = first
        head, text, place = b"", bytearray(), first
        for row in untrusted_rows.split(b"\n")[:-1]:
            flag, row_head = row[frames.FLAG], row[: frames.FLAG.start]
            is_marker = flag == frames.WHOLE and row[frames.STREAM] == frames.MARKER
            if text and (row_head != head or is_marker):
                yield from self._piece(head, text, place)
                text = bytearray()
            content = row[frames.HEAD :]
            if is_marker:
                place = Place(number, offset, sent + len(content) + 1, self._in_line)
                note = content[:LOG_MARKER_MAX].decode(errors="replace")
                # Within a character there is no place to go on from
                yield Piece("marker", note, place=None if self._rest else place)
            elif flag in (frames.WHOLE, frames.PARTIAL):
                head = row_head
                text += self._line_head(head) + content + (b"\n" if flag == frames.WHOLE else b"")
                self._in_line = flag == frames.PARTIAL
                place = Place(number, offset, sent + len(content) + (not self._in_line), self._in_line)
                if self._in_line:  # its last character may be incomplete
                    yield from self._piece(head, text, place)
                    text = bytearray()
            offset, sent = offset + len(row) + 1, 0
        if text:
            yield from self._piece(head, text, place)

    def _line_head(self, head: bytes) -> bytes:
        """The time before a line, where times are asked for."""
        if not self._times or self._in_line:
            return b""
        moment = head[frames.TIME]
        return (moment if _MOMENT.fullmatch(moment) else _NO_MOMENT) + b" "

    def _piece(self, head: bytes, content: bytearray, place: Place) -> Iterator[Piece]:
        """One piece; the bytes of an incomplete character wait for the next."""
        data = self._rest + bytes(content)
        text, count = codecs.utf_8_decode(data, "replace", False)
        self._rest = data[count:]
        if text:
            moment = head[frames.TIME]
            time = moment.decode() if _MOMENT.fullmatch(moment) else None
            stream = _STREAMS.get(head[frames.STREAM])
            place = place._replace(sent=max(0, place.sent - len(self._rest)))
            yield Piece("log", text, time, stream, place)
