"""How many rows of the audit a user's refused and reading calls may add; what exceeds it is counted.

A row that is written for every call would let one user fill the disk with calls that
change nothing. So a user has AUDIT_ROWS of them in a minute, and so do all strangers
together; further ones are counted in memory and written as one row. A call that
changes something is never only counted: it has rows of its own, or it is refused.
docs/decisions/0041-what-the-audit-counts.md has the classes and the reasons.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple

from svc.actions.table import TABLE
from svc.db.connect import database
from svc.host.ids import after, now

# Rows of one user, or of all strangers, in the last PERIOD_S, on all listeners. Beyond them calls of
# READS are counted; a person or an ordinary script does not get there.
AUDIT_ROWS = 1200
PERIOD_S = 60.0
READS = frozenset(row for row in TABLE if row.reads)
# Refused calls of one user in PERIOD_S that would have changed something. Further ones are refused at once.
REFUSALS = 600
NEVER_REFUSED = frozenset(row for row in TABLE if row.never_refused)
# Bytes of rows that a user's changing calls may add through one listener: so many at once, and as many again
# in an hour. Whoever goes on gets 429 with the seconds until the next call, about one.
BYTES_OF_CHANGES = 2_500_000
BYTES_OF_UPLOADS = 16_000_000  # each of which makes a file: a folder may have ten thousand
UPLOADS = frozenset(row for row in TABLE if row.makes_files)
HOUR_S = 3600.0
ROW_BYTES = 250  # of the database, besides the texts of a row
UNBOUNDED = NEVER_REFUSED | {row for row in TABLE if row.ends_access}
# What makes room or ends something: with the database's disk full it is possible by the reserve of that disk
# (svc/db/reserve.py), CALLS_WHEN_FULL of one user in PERIOD_S, so that nobody uses the reserve up.
GIVES_BACK = frozenset(row for row in TABLE if row.gives_back)
CALLS_WHEN_FULL = 30
TARGETS_KEPT = 16  # of a count: the first ones


def is_spent(user_id: int | None) -> bool:
    """Whether this user (None: strangers) has AUDIT_ROWS in the last minute, on whatever listener."""
    condition, values = ("user_id = ?", (user_id,)) if user_id is not None else ("user_id IS NULL", ())
    row = database.execute_sql(
        f"SELECT at FROM audit WHERE {condition} ORDER BY id DESC LIMIT 1 OFFSET ?", (*values, AUDIT_ROWS - 1)
    ).fetchone()
    if row is None:
        return False
    present = now()
    oldest: str = row[0]
    return after(present, -PERIOD_S) < oldest <= present  # not the future: the clock may have been set back


class Counted:
    """Calls of one user that have no rows of their own: how many, of which outcomes, when."""

    def __init__(self) -> None:
        self.since = self.until = now()
        self.outcomes: Counter[str] = Counter()
        self.targets: dict[str, None] = {}  # in the order of the calls

    def add(self, action: str, target: str, outcome: str) -> None:
        """Count one call."""
        self.until = now()
        self.outcomes[f"{action} {outcome}"] += 1
        if len(self.targets) < TARGETS_KEPT:
            self.targets[target] = None

    def merge(self, later: Counted) -> None:
        """Add the calls of a later count."""
        self.until = later.until
        self.outcomes += later.outcomes
        self.targets = dict.fromkeys([*self.targets, *later.targets][:TARGETS_KEPT])

    @property
    def detail(self) -> dict[str, object]:
        """The detail of the row that stands for these calls."""
        return {
            "calls": self.outcomes.total(), "since": self.since, "until": self.until,
            "outcomes": dict(self.outcomes.most_common()), "first_targets": list(self.targets),
        }  # fmt: skip


class Who(NamedTuple):
    """Whose calls are counted together; without an address, of which one client may have very many."""

    user_id: int | None
    name: str
    via: str


class Counts:
    """The calls of this process that are counted and not written yet."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.counted: dict[Who, Counted] = {}
        self.minute: threading.Timer | None = None

    def add(self, who: Who, action: str, target: str, outcome: str) -> None:
        """Count one call."""
        with self.lock:
            self.counted.setdefault(who, Counted()).add(action, target, outcome)

    def begin_minute(self, write: Callable[[], None]) -> None:
        """Call `write` in a thread after PERIOD_S, unless that is under way or nothing is counted."""
        with self.lock:
            if self.minute is None and self.counted:
                self.minute = threading.Timer(PERIOD_S, write)
                self.minute.daemon = True
                self.minute.start()

    def end_minute(self) -> None:
        """Let the next minute begin."""
        with self.lock:
            self.minute = None

    def take(self, user_id: int | None = None, *, everyone: bool = False) -> list[tuple[Who, Counted]]:
        """Take out what is counted for a user, or for everyone."""
        with self.lock:
            chosen = [who for who in self.counted if everyone or who.user_id == user_id]
            return [(who, self.counted.pop(who)) for who in chosen]

    def put_back(self, who: Who, counted: Counted) -> None:
        """Keep what could not be written."""
        with self.lock:
            later = self.counted.get(who)
            if later is not None:
                counted.merge(later)
            self.counted[who] = counted


class Recent:
    """Calls of each user in the last PERIOD_S, in this process; `most` are allowed."""

    def __init__(self, most: int) -> None:
        self.lock = threading.Lock()
        self.most = most
        self.times: dict[int, deque[float]] = {}

    def note(self, user_id: int) -> None:
        """One more."""
        with self.lock:
            self.times.setdefault(user_id, deque(maxlen=self.most)).append(time.monotonic())

    def wait_s(self, user_id: int) -> int:
        """Whole seconds until a user may make the next call; 0 if now."""
        times = self.times.get(user_id)
        if times is None or len(times) < self.most:
            return 0
        left_s = PERIOD_S - (time.monotonic() - times[0])
        return int(left_s) + 1 if left_s > 0 else 0


class Allowance:
    """Bytes of each user in this process: `most` at once, and as many again in an hour."""

    def __init__(self, most: int) -> None:
        self.lock = threading.Lock()
        self.most = most
        self.left: dict[int, tuple[float, float]] = {}  # by user: the bytes, and the time when they were left

    def note(self, user_id: int, size: int) -> None:
        """So many more are used, also when none were left: a call that has begun ends."""
        with self.lock:
            self.left[user_id] = self._left(user_id) - size, time.monotonic()

    def wait_s(self, user_id: int) -> int:
        """Whole seconds until a user may make the next call; 0 if now."""
        with self.lock:
            missing = -self._left(user_id)
        return int(missing * HOUR_S / self.most) + 1 if missing >= 0 else 0

    def _left(self, user_id: int) -> float:
        left, at = self.left.get(user_id, (self.most, 0.0))
        return min(self.most, left + (time.monotonic() - at) * self.most / HOUR_S)
