"""The events of the database for all event streams of a listener: each row is read once for all of them.

A thread waits for the writers' file and reads the new rows; the loop gives them to the streams. A
stream whose client has read everything gets them from memory, one that is behind reads on in the
database: its place is an id, so that nothing is queued for a slow reader and nothing is lost.
"""

from __future__ import annotations

import random
import threading
import time
from bisect import bisect_right
from collections.abc import Callable
from functools import cached_property
from typing import Any

from svc.db.connect import close_database, database
from svc.domain import events
from svc.domain.events import Event, View
from svc.domain.principal import Caller
from svc.errors import AdminOnly
from svc.limits import HEARTBEAT_S
from svc.log import log
from svc.web.streaming.loop import Loop
from svc.web.streaming.loop import loop as default_loop
from svc.web.streaming.sse import HEARTBEAT, RETRY_MS, EventStream, event
from svc.web.streaming.wake_file import WakeFile

RECENT_MAX = 1000  # events in memory
BATCH = 200  # rows of one query
BATCH_BYTES = 128 * 1024  # that a stream takes of one query
AGAIN_S = 1.0  # after a failed query


class Entry:
    """An event, and its bytes for those who get it whole and for those who do not."""

    def __init__(self, row: Event) -> None:
        self.event, self.id = row, row.id

    @cached_property
    def whole(self) -> bytes:
        """For its owner, or for everyone."""
        return _bytes(self.event, whole=True)

    @cached_property
    def metadata(self) -> bytes:
        """For an administrator who reads the events of all."""
        return _bytes(self.event, whole=False)


class Feed:
    """The recent events of a database, and the streams that follow them. Used in the loop's thread."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.streams: dict[Events, None] = {}
        self.recent: list[Entry] = []
        self.since = -1  # all events after this id are in `recent`; -1: the thread has not begun
        self.thread: threading.Thread | None = None
        self.wake_file: WakeFile | None = None

    def add(self, stream: Events) -> None:
        """Give a stream its events, from those after its place on."""
        self.streams[stream] = None
        if self.thread is None:
            self.wake_file = WakeFile(database.path)
            self.thread = threading.Thread(
                target=self._read, args=(self.wake_file,), daemon=True, name="events"
            )
            self.thread.start()
        self.loop.in_background(lambda: (events.newest(), events.forgotten()), stream.begin_after)

    def remove(self, stream: Events) -> None:
        """Forget a stream."""
        self.streams.pop(stream, None)

    def after(self, place: int) -> list[Entry] | None:
        """The recent events after this id; None when some of them are in the database only."""
        if not 0 <= self.since <= place:
            return None
        return self.recent[bisect_right(self.recent, place, key=lambda entry: entry.id) :]

    def close(self) -> None:
        """End the thread, for tests."""
        if self.thread is not None and self.wake_file is not None:
            self.wake_file.close()
            self.thread.join()
        self.thread, self.since, self.recent = None, -1, []

    def _arrive(self, since: int, rows: list[Event]) -> None:
        if self.since < 0:
            self.since = since
        self.recent += [Entry(row) for row in rows]
        if len(self.recent) > RECENT_MAX:
            self.since = self.recent[-RECENT_MAX // 2 - 1].id
            self.recent = self.recent[-RECENT_MAX // 2 :]
        for stream in list(self.streams):
            self.loop.survive(stream.pull)

    def _read(self, wake_file: WakeFile) -> None:
        """The thread: read what is new whenever the file is touched, and now and then in any case."""
        place = -1
        timeout_s = 0.0
        while wake_file.wait(timeout_s):
            timeout_s = HEARTBEAT_S
            try:
                if place < 0:
                    place = events.newest()
                    self._post(place, [])
                while rows := events.following(place, BATCH):
                    self._post(place, rows)
                    place = rows[-1].id
            except Exception as error:  # noqa: BLE001  without this thread nobody gets events
                log("streams", "the events cannot be read", "error", why=repr(error))
                time.sleep(AGAIN_S)
                timeout_s = AGAIN_S
        wake_file.release()
        close_database()

    def _post(self, since: int, rows: list[Event]) -> None:
        self.loop.post(lambda: self._arrive(since, rows))


class Events(EventStream):
    """One reader of events, from the id `after` on; None: from now on."""

    def __init__(
        self, caller: Caller, require: Callable[[], object], rid: str, view: View, after: int | None
    ) -> None:
        super().__init__(caller, require, rid)
        self.view, self.after = view, after
        self.position = -1
        self.is_reading_on = False

    def opened(self) -> None:
        """Say when to come back after a break; the events follow."""
        self.send(f"retry: {random.randint(*RETRY_MS)}\n\n".encode())  # noqa: S311  no secret
        feed.add(self)

    def closed(self) -> None:
        """Leave the feed."""
        feed.remove(self)

    def heartbeat(self) -> None:
        """With the position, so that a reader for whom nothing happens is not behind when it comes back."""
        self.send(HEARTBEAT.rstrip() + b"\n" + self._id() if self.position >= 0 else HEARTBEAT)

    def rechecked(self, caller: object) -> None:
        """The access rule is the same for everyone: end, or go on without what only administrators see."""
        if isinstance(caller, Caller):
            try:
                self.view = events.narrowed(self.view, caller)
            except AdminOnly as error:
                self.refused(error)

    def drained(self) -> None:
        """Go on: the reader has caught up with what was sent."""
        self.pull()

    def begin_after(self, result: Any) -> None:
        """Take the newest id and the newest forgotten one; a reader who missed some is told so."""
        if not self.is_open:
            return
        if isinstance(result, Exception):
            self.end()  # its client comes back
            return
        newest, forgotten = result
        if self.after is None:
            self.position = newest
            self.send(self._id())
        elif self.after > newest or self.after < forgotten:
            self.position = forgotten if self.after < forgotten else newest
            reason = "forgotten" if self.after < forgotten else "unknown_id"
            self.send_event(
                "gap", {"after": self.after, "next": self.position + 1, "reason": reason}, str(self.position)
            )
        else:
            self.position = self.after
        self.pull()

    def pull(self) -> None:
        """Send what there is after its position, as long as the reader reads."""
        if self.position < 0 or self.is_reading_on or self.output or not self.is_open:
            return
        entries = feed.after(self.position)
        if entries is None:
            self.is_reading_on = True
            self.loop.in_background(self._query, self._take)
        else:
            self._send(entries)

    def _send(self, entries: list[Entry]) -> bool:
        """Send these events until the reader is behind; whether all were sent."""
        for entry in entries:
            if len(self.output) > BATCH_BYTES or not self.is_open:
                return False
            if self.view.includes(entry.event):
                self.send(entry.whole if self.view.is_own(entry.event) else entry.metadata)
            self.position = entry.id
        return True

    def _query(self) -> tuple[int, list[Event]]:
        """In a background thread: the next events of this view, and up to which id they are complete."""
        newest = events.newest()
        rows = events.following_in(self.view, self.position, BATCH)
        return (rows[-1].id if len(rows) == BATCH else max(newest, rows[-1].id if rows else 0)), rows

    def _take(self, result: Any) -> None:
        self.is_reading_on = False
        if isinstance(result, Exception):
            log("streams", "the events cannot be read", "error", why=str(result))
            self.later(AGAIN_S, self.pull)
            return
        until, rows = result
        if self._send([Entry(row) for row in rows]):
            self.position = max(self.position, until)
            self.pull()

    def _id(self) -> bytes:
        """The position alone: it is no event, but the reader keeps it."""
        return f"id: {self.position}\n\n".encode()


def _bytes(row: Event, *, whole: bool) -> bytes:
    return event(row.type, row.record(whole=whole), str(row.id))


feed = Feed(default_loop)
