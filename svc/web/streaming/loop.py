"""The loop of streams: one thread of a listener's process serves the connections of all of them.

Nothing in this thread waits: for what does (the database, the helper), `in_background` runs a
function in one of a few threads, and gives its result to the loop. Streams end with the process:
on shutdown each says so to its client and is closed within STREAM_STOP_S.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import queue
import selectors
import socket
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from svc.db.connect import close_database
from svc.domain.principal import Caller
from svc.limits import STREAM_STOP_S
from svc.log import log
from svc.web.gunicorn_worker import shutdown
from svc.web.rechecks import has_ended

TICK_S = 0.5  # between two checks of all streams: heartbeats, access, readers that have stopped reading
BACKGROUND_THREADS = 4  # for what takes milliseconds
AGENT_THREADS = 16  # for calls of agents, which may take long
POSTED_AT_ONCE = 1000  # then descriptors have their turn
TIMERS_KEPT = 1000  # before the cancelled ones among them are looked for

Callback = Callable[[int], object]  # gets the events of its descriptor
Job = tuple[Callable[[], Any], Callable[[Any], object]]


class AnyStream(Protocol):
    """What the loop knows of a stream."""

    caller: Caller

    def tick(self, now: float) -> None:
        """Called every half second or so."""

    def recheck(self) -> None:
        """Apply the access rule again now."""

    def stop(self) -> None:
        """The service stops."""

    def abort(self) -> None:
        """Close the connection now."""


class Timer:
    """A call that the loop makes later, unless it is cancelled."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.call: Callable[[], object] | None = call

    def cancel(self) -> None:
        """Do not call it; harmless afterwards."""
        self.call = None


class Loop:
    """The thread and what it watches. `post` and `in_background` are for any thread, all else for its own."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.thread: threading.Thread | None = None  # started for the first stream, after every fork
        self.posted: deque[Callable[[], object]] = deque()
        self.background: list[threading.Thread] = []
        self.jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.agent_jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self.timers: list[tuple[float, int, Timer]] = []
        self.prune_at = TIMERS_KEPT
        self.order = itertools.count()  # of timers for the same moment
        self.streams: dict[AnyStream, None] = {}
        self.due: dict[int, float] = {}  # by user: until when what its streams have used is paid for
        self.stopping = self.is_finding = False
        self.tick_at = 0.0

    # --- for any thread ---------------------------------------------------------------------

    def post(self, call: Callable[[], object]) -> None:
        """Have the loop's thread make a call."""
        self._ensure_running()
        self.posted.append(call)
        with contextlib.suppress(BlockingIOError):
            os.eventfd_write(self.event, 1)

    def in_background(self, job: Callable[[], Any], then: Callable[[Any], object]) -> None:
        """Run a job in another thread, and `then` in the loop's with the result: a value or an exception."""
        self._ensure_running()
        self.jobs.put((job, then))

    def ask_agent(self, job: Callable[[], Any], then: Callable[[Any], object]) -> None:
        """As in_background, for a call of an agent: the caller of this bounds how many a user has."""
        self._ensure_running()
        with self.lock:
            if len(self.background) == BACKGROUND_THREADS:
                self._start_background(self.agent_jobs, AGENT_THREADS)
        self.agent_jobs.put((job, then))

    def close(self) -> None:
        """End the threads and all streams, for tests: in a service they end with the process."""
        thread = self.thread
        if thread is None:
            return
        for _ in self.background:
            self.jobs.put(None)
            self.agent_jobs.put(None)
        self.posted.append(self._abort_all)
        self.posted.append(self._leave)
        os.eventfd_write(self.event, 1)
        for each in (*self.background, thread):
            each.join()
        self.selector.close()
        os.close(self.event)
        self.thread, self.jobs, self.agent_jobs = None, queue.SimpleQueue(), queue.SimpleQueue()

    def _ensure_running(self) -> None:
        with self.lock:
            if self.thread is not None:
                return
            self.event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self.selector = selectors.DefaultSelector()
            self.selector.register(self.event, selectors.EVENT_READ, self._drain_event)
            for descriptor in shutdown.descriptors():
                self.selector.register(descriptor, selectors.EVENT_READ, self._stop)
            self.thread = threading.Thread(target=self._run, daemon=True, name="streams")
            self.background = []
            self.running = True
            self.thread.start()
            self._start_background(self.jobs, BACKGROUND_THREADS)

    def _start_background(self, jobs: queue.SimpleQueue[Job | None], count: int) -> None:
        for _ in range(count):
            thread = threading.Thread(
                target=self._run_jobs, args=(jobs,), daemon=True, name="streams-background"
            )
            thread.start()
            self.background.append(thread)

    # --- for the loop's thread ----------------------------------------------------------------

    def watch(self, descriptor: int, events: int, callback: Callback) -> None:
        """Call back when the descriptor has one of these events of selectors; 0: no longer."""
        known = descriptor in self.selector.get_map()
        if not events:
            if known:
                self.selector.unregister(descriptor)
        elif known:
            self.selector.modify(descriptor, events, callback)
        else:
            self.selector.register(descriptor, events, callback)

    def later(self, seconds: float, call: Callable[[], object]) -> Timer:
        """Make a call after so many seconds."""
        if len(self.timers) >= self.prune_at:  # streams that end leave theirs, for up to a minute
            self.timers = [entry for entry in self.timers if entry[2].call is not None]
            heapq.heapify(self.timers)
            self.prune_at = max(TIMERS_KEPT, 2 * len(self.timers))
        timer = Timer(call)
        heapq.heappush(self.timers, (time.monotonic() + seconds, next(self.order), timer))
        return timer

    def add(self, stream: AnyStream) -> None:
        """Check a stream with every tick, and end it on shutdown."""
        if not self.streams:
            self.tick_at = time.monotonic() + TICK_S
        self.streams[stream] = None
        if self.stopping:
            self.survive(stream.stop)

    def remove(self, stream: AnyStream) -> None:
        """Forget a stream, which has ended."""
        self.streams.pop(stream, None)

    def survive(self, call: Callable[[], object]) -> None:
        """Make a call; an error in it is logged and ends nothing but what it was about."""
        try:
            call()
        except Exception as error:  # noqa: BLE001  the loop serves the streams of all users
            log("streams", "a stream failed", "error", why=repr(error), trace=traceback.format_exc(limit=-4))

    # --- the threads --------------------------------------------------------------------------

    def _run(self) -> None:
        while self.running:
            for key, events in self.selector.select(self._wait_s()):
                # Unless an event before this one has made the loop forget it
                if self.selector.get_map().get(key.fd) is key:
                    callback: Callback = key.data
                    self.survive(partial(callback, events))
            for _ in range(min(len(self.posted), POSTED_AT_ONCE)):
                self.survive(self.posted.popleft())
            now = time.monotonic()
            while self.timers and self.timers[0][0] <= now:
                call = heapq.heappop(self.timers)[2].call
                if call is not None:
                    self.survive(call)
            if self.streams and now >= self.tick_at:
                self.tick_at = now + TICK_S
                for stream in list(self.streams):
                    self.survive(partial(stream.tick, now))
                self._find_ended()

    def _find_ended(self) -> None:
        """Have the access rule applied again to streams whose session, token or account has just ended."""
        if self.is_finding:
            return
        self.is_finding = True
        callers = {(of.kind, of.credential, of.user_id): of for of in (one.caller for one in self.streams)}

        def find() -> set[tuple[str, str, int]]:
            return {key for key, caller in callers.items() if has_ended(caller)}

        self.in_background(find, self._recheck)

    def _recheck(self, found: Any) -> None:
        self.is_finding = False
        if isinstance(found, Exception):
            return
        for stream in list(self.streams):
            of = stream.caller
            if (of.kind, of.credential, of.user_id) in found:
                self.survive(stream.recheck)

    def _wait_s(self) -> float | None:
        if self.posted:
            return 0
        moments = [self.timers[0][0]] if self.timers else []
        if self.streams:
            moments.append(self.tick_at)
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    def _drain_event(self, _events: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.event)

    def _stop(self, _events: int) -> None:
        """The process ends: every stream says so."""
        self.stopping = True
        for descriptor in shutdown.descriptors():
            self.watch(descriptor, 0, self._stop)
        for stream in list(self.streams):
            self.survive(stream.stop)
        self.later(STREAM_STOP_S, self._abort_all)

    def _abort_all(self) -> None:
        for stream in list(self.streams):
            self.survive(stream.abort)

    def _leave(self) -> None:
        self.running = False

    def _run_jobs(self, jobs: queue.SimpleQueue[Job | None]) -> None:
        while (taken := jobs.get()) is not None:
            job, then = taken
            result: Any
            try:
                result = job()
            except Exception as error:  # noqa: BLE001  the result of the job, for whoever asked for it
                result = error
            self.post(partial(then, result))
        close_database()


def close_now(sock: socket.socket) -> None:
    """Close a connection without waiting; through TLS its end is announced if there is room for that."""
    unwrap = getattr(sock, "unwrap", None)
    if unwrap is not None:
        with contextlib.suppress(OSError, ValueError):
            unwrap()
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        sock.close()


loop = Loop()
