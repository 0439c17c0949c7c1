"""Logs of a workspace's container or of one of its launchers: what is kept. Following: live/followed.py.

Owner-only, in every state of the workspace. "The container's raw stdout/stderr",
or "the bounded persistent captured output of that configured launcher"; programs
started by hand are not captured. The output travels over a data stream, as files do.
"""

from __future__ import annotations

import select
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from svc.domain import untrusted
from svc.domain.places import long_calls
from svc.domain.principal import Caller
from svc.domain.workspaces import launchers, states
from svc.errors import EngineFailed, EngineTimeout
from svc.helper.transfers import Transfer
from svc.limits import FILE_FACTS_S
from svc_helper.wire.limits import LOG_BYTES_MAX, LOG_MARKER_MAX, LOG_MARKERS_MAX


class Log:
    """Kept output that an agent has opened, and its bytes on request."""

    def __init__(self, transfer: Transfer, untrusted_reply: Mapping[str, Any]) -> None:
        self.transfer = transfer
        self.start = _get_position(untrusted_reply)
        self.older_gone = untrusted.get_flag(untrusted_reply, "older_gone")
        self.truncated = untrusted.get_flag(untrusted_reply, "truncated")
        self.markers = _get_markers(untrusted_reply)

    def begin(self) -> None:
        """Request the bytes, which are then sent over the data stream."""
        self.transfer.send({"go": True})

    def end(self) -> None:
        """Check, after the end of the stream, that all was sent; raises the agent's error."""
        self.transfer.end(FILE_FACTS_S)

    def read(self, most: int) -> bytes:
        """All bytes; raises EngineFailed for more than `most`."""
        self.begin()
        stream, until = self.transfer.stream, time.monotonic() + FILE_FACTS_S
        content = bytearray()
        while (part := stream.receive(most + 1)) != b"":
            content += part or b""
            if len(content) > most:
                raise EngineFailed("the engine sent more output than was asked for")
            if time.monotonic() >= until:
                raise EngineTimeout("the output took too long to read")
            if part is None:
                self.transfer.wait({stream.fileno(): select.POLLIN}, until - time.monotonic())
        self.end()
        return bytes(content)


@contextmanager
def opened(
    caller: Caller,
    ref: str,
    lines: int | None,
    launcher: str | None = None,
    *,
    most: int | None = None,
    start: str = "",
    skip: int = 0,
    times: bool = False,
    hangup_fds: Sequence[int] = (),
) -> Iterator[Log]:
    """The last `lines` lines, at most `most` bytes, open for the length of the block; None: all.

    With `times` each line has its time before it. `start` is that of an earlier answer, to send the
    rest of it after `skip` bytes. Raises NotFound, OwnerOnly, and Conflict when the caller's connection
    or one of hangup_fds hangs up.
    """
    if launcher is None:
        workspace = states.find(caller, ref)
    else:
        workspace = states.find_own(caller, ref)
        launchers.get(workspace, launcher)
    number, _, offset = start.partition(".")
    arguments = {
        "id": workspace.id,
        "launcher": launcher,
        "tail": lines,
        "most": most,
        "skip": skip,
        "times": times,
        "start": {"number": int(number), "offset": int(offset)} if start else None,
    }
    with (
        long_calls.counted(caller),
        caller.transfer("ctr.logs", arguments, hangup_fds=caller.watched(hangup_fds)) as transfer,
    ):
        yield Log(transfer, transfer.receive(FILE_FACTS_S))


def tail(
    caller: Caller, ref: str, lines: int | None, launcher: str | None = None, *, times: bool = False
) -> dict[str, Any]:
    """The newest output, at most LOG_BYTES_MAX: {text, truncated, older_gone, markers}.

    Empty before the first start. Raises NotFound, OwnerOnly.
    """
    with opened(caller, ref, lines, launcher, most=LOG_BYTES_MAX, times=times) as log:
        content = log.read(LOG_BYTES_MAX)
        return {
            "text": content.decode(errors="replace"),
            "truncated": log.truncated,
            "older_gone": log.older_gone,
            "markers": log.markers,
        }


def _get_position(untrusted_reply: Mapping[str, Any]) -> str:
    pair = untrusted_reply.get("start")
    if type(pair) is not list or len(pair) != 2:
        raise EngineFailed("the engine's answer has no usable start")
    return ".".join(str(untrusted.get_count({"start": number}, "start")) for number in pair)


def _get_markers(untrusted_reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = untrusted_reply.get("markers")
    if type(rows) is not list or len(rows) > LOG_MARKERS_MAX:
        raise EngineFailed("the engine's answer has no usable markers")
    if not all(type(row) is list and len(row) == 2 for row in rows):
        raise EngineFailed("the engine's answer has no usable markers")
    return [
        {
            "offset": untrusted.get_count({"markers": offset}, "markers"),
            "text": untrusted.get_output_text({"markers": text}, "markers", LOG_MARKER_MAX),
        }
        for offset, text in rows
    ]
