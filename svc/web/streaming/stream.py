"""One stream: a connection on the loop, with bounded output and an access rule that is applied again.

A subclass says what it sends and what it does with what it receives; server-sent events
are in svc.web.streaming.sse. Everything here runs in the loop's thread and never waits, but for
the constructor, `begin` and `cancel`, which run in the server's threads. A reader who is too slow
loses the connection: memory for a stream is bounded by OUTPUT_MAX.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import time
from collections.abc import Callable
from functools import partial

from svc.domain.places import streams
from svc.domain.principal import Caller
from svc.errors import SvcError
from svc.limits import (
    ACCESS_RECHECK_S,
    HEARTBEAT_S,
    STREAM_OUTPUT_MAX,
    STREAM_STALL_S,
    STREAMS_PER_USER,
)
from svc.web.gunicorn_worker.tls_reads import bounded
from svc.web.streaming.loop import Callback, Loop, Timer, close_now
from svc.web.streaming.loop import loop as default_loop

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
PART = 64 * 1024  # of one read or write; more than a TLS record, so that none stays behind in TLS
IGNORED_MAX = 64 * 1024  # bytes of a client who has nothing to say
LINGER_S = 2.0  # after the last byte, for the client to close first
PACE = 4  # a user's streams rest for so many times what they have used of the loop
SLACK_S = 0.005  # a rest that is not worth it
UNAVAILABLE_S = 60.0  # without an answer whether the caller still has access
WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Stream:
    """One connection. Takes its caller's place among the streams; raises TooManyRequests at a limit.

    `require` applies the access rule of the request again; it runs in a background thread.
    """

    output_max = STREAM_OUTPUT_MAX

    def __init__(self, caller: Caller, require: Callable[[], object], loop: Loop | None = None) -> None:
        self.caller, self.require = caller, require
        self.loop = loop or default_loop
        self.place = streams.take(caller)
        self.at_end: Callable[[], object] = lambda: None
        self.output = bytearray()
        self.is_open = self.is_ending = False
        self.is_reading = True
        self.ignored = 0
        self.is_resting = self.is_unfinished = False
        self.watched: dict[int, tuple[int, Callback]] = {}
        self.timers: set[Timer] = set()
        self.is_checking = False

    # --- for subclasses: what a stream does ---------------------------------------------------

    def opened(self) -> None:
        """Called when the head of the response is on its way: send the first output."""

    def received(self, data: bytes) -> None:
        """Called with bytes of the client; one who should have nothing to say may not go on for ever."""
        self.ignored += len(data)
        if self.ignored > IGNORED_MAX:
            self.abort()

    def drained(self) -> None:
        """Called when output that had to wait has been sent."""

    def rested(self) -> None:
        """Called after a rest, if is_unfinished: go on with what was received."""

    def heartbeat(self) -> None:
        """Called when nothing was sent for HEARTBEAT_S."""

    def stopping(self) -> None:
        """Called when the service stops: say so, and end()."""
        self.end()

    def refused(self, error: SvcError) -> None:
        """Called when the caller may no longer have the stream: say so, and end()."""
        self.end()

    def rechecked(self, caller: object) -> None:
        """Called when the caller may go on having the stream: `caller` as the access rule found it now."""

    def closed(self) -> None:
        """Called once when the connection is closed: release what the stream holds."""

    # --- for subclasses: what a stream can do -------------------------------------------------

    def send(self, data: bytes) -> bool:
        """Send, or keep until the client reads; False if the stream has ended, or ends for this.

        A client whose unread output would exceed output_max loses the connection.
        """
        if not self.is_open or self.is_ending:
            return False
        self.sent_at = time.monotonic()
        if not self.output:
            self.progress_at = self.sent_at
        self.output += data
        if len(self.output) == len(data):
            self._flush()
        if len(self.output) > self.output_max:
            self.abort()
        return self.is_open

    def end(self) -> None:
        """Close the connection after what is still to be sent."""
        if not self.is_open or self.is_ending:
            return
        self.is_ending, self.ending_at = True, time.monotonic()
        if not self.output:
            self._shut_down()
        self._watch_connection()

    def abort(self) -> None:
        """Close the connection now."""
        if not self.is_open:
            return
        self.is_open = False
        for descriptor in (*self.watched, self.sock.fileno()):
            if descriptor >= 0:
                self.loop.watch(descriptor, 0, self._on_ready)
        for timer in self.timers:
            timer.cancel()
        self.loop.remove(self)
        close_now(self.sock)
        self.output.clear()
        self.loop.survive(self.place.release)
        self.loop.survive(self.closed)
        self.loop.survive(self.at_end)

    def pause(self) -> None:
        """Receive nothing until resume(), so that a fast client waits."""
        self.is_reading = False
        self._watch_connection()

    def resume(self) -> None:
        """Receive again."""
        self.is_reading = True
        self._watch_connection()

    def watch(self, descriptor: int, events: int, callback: Callback) -> None:
        """Watch another descriptor for the length of the stream, in its loop (0: no longer).

        `closed` closes it.
        """
        if events and self.is_open:
            self.watched[descriptor] = events, callback
        else:
            self.watched.pop(descriptor, None)
        if self.is_open and not (events and self.is_resting):
            self.loop.watch(descriptor, events, partial(self._take_turn, callback))

    def later(self, seconds: float, call: Callable[[], object]) -> Timer:
        """Make a call after so many seconds, if the stream is still open."""

        def fire() -> None:
            self.timers.discard(timer)
            if self.is_open:
                call()

        if not self.is_open:  # it would hold an ended stream, and its request, all the while
            return Timer(call)
        timer = self.loop.later(seconds, fire)
        self.timers.add(timer)
        return timer

    def post(self, call: Callable[[], object]) -> None:
        """From any thread: have the loop make a call, if the stream is still open."""
        self.loop.post(lambda: call() if self.is_open else None)

    # --- for the server's threads ---------------------------------------------------------------

    def begin(self, sock: socket.socket, head: bytes, received: bytes, at_end: Callable[[], object]) -> None:
        """Take the connection: send the head, then what the subclass has to say."""
        self.sock, self.at_end = sock, at_end
        self.loop.post(lambda: self._begin(head, received))

    def cancel(self) -> None:
        """Release what the stream holds: its response is not sent."""
        self.place.release()
        self.closed()

    # --- for the loop -----------------------------------------------------------------------------

    def tick(self, now: float) -> None:
        """Called every half second or so."""
        if self.output and now > self.progress_at + STREAM_STALL_S:
            self.abort()  # its reader has stopped reading
        elif self.is_ending:
            if now > self.ending_at + LINGER_S + (STREAM_STALL_S if self.output else 0):
                self.abort()
        else:
            if now >= self.sent_at + HEARTBEAT_S:
                self.sent_at = now
                self.heartbeat()
            if now >= self.check_at:
                self.recheck()

    def recheck(self) -> None:
        """Apply the access rule again now."""
        if not self.is_checking and not self.is_ending:
            self.is_checking = True
            self.loop.in_background(self.require, self._checked)

    def stop(self) -> None:
        """The service stops."""
        if self.is_open and not self.is_ending:
            self.stopping()

    def _begin(self, head: bytes, received: bytes) -> None:
        self.is_open = True
        self.sent_at = self.progress_at = self.checked_at = time.monotonic()
        self.check_at = self.checked_at + ACCESS_RECHECK_S
        self.events = 0
        self._watch_connection()
        if head:
            Stream.send(self, head)
        try:
            self.opened()
            if received and self.is_open:
                self._take_turn(lambda _: self.received(received), READ)
        except Exception:  # raised again: the loop logs it, and only this stream ends
            self.abort()
            raise
        if self.is_open:
            self.loop.add(self)

    def _watch_connection(self) -> None:
        if not self.is_open:
            return
        events = (READ if self.is_reading or self.is_ending else 0) | (WRITE if self.output else 0)
        if self.is_resting:
            events = 0
        if events != self.events:
            self.events = events
            self.loop.watch(self.sock.fileno(), events, partial(self._take_turn, self._on_ready))

    def _take_turn(self, act: Callback, events: int) -> None:
        """Use the loop, which serves the streams of all users: who uses much of it rests afterwards.

        What the streams of one user have used together is counted, so that more of them get no more.
        """
        if self.is_resting:
            return
        began = time.thread_time()
        try:
            act(events)
        finally:
            now, used = time.monotonic(), time.thread_time() - began
            due = self.loop.due[self.caller.user_id] = (
                max(now, self.loop.due.get(self.caller.user_id, 0.0)) + PACE * used
            )
            # One that uses little does not wait for all that its user's others have used.
            rest_s = min(due - now, STREAMS_PER_USER * PACE * used)
            if self.is_open and (rest_s > SLACK_S or self.is_unfinished):
                self._rest(rest_s)

    def _rest(self, seconds: float) -> None:
        self.is_resting = True
        self._watch_connection()
        for descriptor in self.watched:
            self.loop.watch(descriptor, 0, self._on_ready)
        self.later(seconds, self._wake)

    def _wake(self) -> None:
        self.is_resting = False
        for descriptor, (events, callback) in list(self.watched.items()):
            self.watch(descriptor, events, callback)
        self._watch_connection()
        if self.is_unfinished:
            self._take_turn(lambda _: self.rested(), READ)

    def _on_ready(self, _events: int) -> None:
        """The connection can be read or written; through TLS either may need the other."""
        try:
            if self.is_reading or self.is_ending:
                self._receive()
            if self.is_open and self.output:
                self._flush()
                if self.is_open and not self.output and not self.is_ending:
                    self.drained()
        except Exception:  # raised again: the loop logs it, and only this stream ends
            self.abort()
            raise

    def _receive(self) -> None:
        try:
            data = bounded(self.sock, partial(self.sock.recv, PART))
        except WOULD_BLOCK:
            return
        except (OSError, ValueError):
            data = b""
        if not data:
            self.abort()
        elif self.is_ending:
            self.ignored += len(data)
            if self.ignored > IGNORED_MAX:
                self.abort()
        else:
            self.received(data)

    def _flush(self) -> None:
        try:
            while self.output:
                with memoryview(self.output) as view, view[:PART] as part:
                    count = self.sock.send(part)
                del self.output[:count]
                self.progress_at = time.monotonic()
        except WOULD_BLOCK:
            pass
        except (OSError, ValueError):
            self.abort()
            return
        if self.is_ending and not self.output:
            self._shut_down()
        self._watch_connection()

    def _shut_down(self) -> None:
        """Announce the end, and wait for the client's own: closing now could cost it the last bytes."""
        self.ending_at = time.monotonic()
        with contextlib.suppress(OSError, ValueError):
            if isinstance(self.sock, ssl.SSLSocket):
                self.sock.unwrap()
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def _checked(self, result: object) -> None:
        self.is_checking = False
        if not self.is_open or self.is_ending:
            return
        now = time.monotonic()
        self.check_at = now + ACCESS_RECHECK_S
        unavailable = isinstance(result, SvcError) and result.status == 503
        if unavailable and now < self.checked_at + UNAVAILABLE_S:
            return  # a restart of the helper, or a busy database, ends nothing
        if isinstance(result, SvcError):
            self.refused(result)
        elif isinstance(result, Exception):
            self.end()
        else:
            self.checked_at = now
            self.rechecked(result)
