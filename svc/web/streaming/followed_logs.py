"""Followed output of containers and launchers: each stream has an end of a socket pair on the loop.

An agent sends at the other end. It waits while the client does not read: what has not been sent
stays in the files, and a stream holds one frame at most. Python would be busy with a
container that prints without end, so a user's streams pause after each frame, the longer the more
there are of them.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack

from svc.domain.principal import Caller
from svc.domain.workspaces.live import followed
from svc.domain.workspaces.live.followed import Ended, Followed, Piece, Source
from svc.errors import EngineUnavailable, NotFound
from svc.web.streaming.sse import RETRY_MS, EventStream, event
from svc.web.streaming.stream import READ

PACE = 4  # pause after a frame, as a multiple of the time that it took
PAUSE_MAX_S = 1.0
RETRY_AFTER_S = 1

_streams_of: Counter[int] = Counter()  # by user; used in the loop's thread


class Logs(EventStream):
    """One who follows; without `output_of`, something that never ran. `held` ends with the stream."""

    def __init__(self, caller: Caller, require: Callable[[], object], rid: str) -> None:
        super().__init__(caller, require, rid)
        self.held = ExitStack()
        self.output_of: Followed | None = None
        self.is_counted = False

    def opened(self) -> None:
        """Say when to come back after a break, and send what there is."""
        self.send(f"retry: {random.randint(*RETRY_MS)}\n\n".encode())  # noqa: S311  no secret
        _streams_of[self.caller.user_id] += 1
        self.is_counted = True
        if self.output_of is None:
            self.finish()
        else:
            self._receive_more()

    def drained(self) -> None:
        """The client has read everything: go on."""
        self._receive_more()

    def closed(self) -> None:
        """Release the socket; its agent finds the end."""
        if self.is_counted:
            _streams_of.subtract([self.caller.user_id])
            if not _streams_of[self.caller.user_id]:
                del _streams_of[self.caller.user_id]
        self.loop.in_background(self.held.close, lambda _result: None)

    def _receive_more(self) -> None:
        if self.output_of is not None and self.is_open and not self.is_ending and not self.output:
            self.watch(self.output_of.fileno(), READ, self._on_output)

    def _on_output(self, _events: int) -> None:
        """Send one frame's events, then give others on the loop their turn."""
        if self.output_of is None:
            return
        self.watch(self.output_of.fileno(), 0, self._on_output)
        if self.is_ending:
            return
        began = time.thread_time()
        messages = self.output_of.receive()
        pieces = [one for one in messages if isinstance(one, Piece)]
        if pieces:
            self.send(b"".join(map(_event, pieces)))
        for last in messages:
            if isinstance(last, Ended):
                self._end(last)
                return
        pause = PACE * (time.thread_time() - began) * _streams_of[self.caller.user_id]
        self.later(min(PAUSE_MAX_S, pause), self._receive_more)

    def _end(self, last: Ended) -> None:
        if last.lost:
            self.fail(
                EngineUnavailable("the process that reads the output exited", retry_after_s=RETRY_AFTER_S)
            )
        else:
            self.finish()


def opened(caller: Caller, require: Callable[[], object], rid: str, source: Source, *, times: bool) -> Logs:
    """A stream of the source's output; waits for the agent to open it."""
    stream = Logs(caller, require, rid)
    try:
        stream.output_of = stream.held.enter_context(followed.attached(caller, source, times=times))
    except NotFound:  # it was never started
        pass
    except BaseException:  # raised again: without a stream nobody would release its place
        stream.cancel()
        raise
    return stream


def _event(piece: Piece) -> bytes:
    return event(piece.kind, piece.data(), "" if piece.place is None else str(piece.place))
