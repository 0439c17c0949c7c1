"""The time by which trial and licence are judged: it never goes back, and goes on while the clock is behind.

The latest time that was seen is kept twice, as the trial's start is: in the database (by the worker)
and in a root-owned file (by the supervisor), each by whoever may write there; the later one counts.
While the clock is behind it, time goes on from there by the kernel's CLOCK_BOOTTIME. First written after
ten minutes, so that a wrong clock that is set right during the boot leaves nothing behind.

A clock that was ahead for longer leaves a time of the future. The vendor helps with a new licence:
installing one that was issued later than those before sets the record to the time of its issue.
Standard library only, for the supervisor.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from svc.host import root_file
from svc.host.ids import after, now
from svc_helper import atomic_file

FACTS = ("time_seen", "license_issued")
PERIOD_S = 600.0


class Record(NamedTuple):
    """The latest time that was seen, and when the newest licence was issued; empty for none."""

    seen: str = ""
    issued: str = ""


def file_of(state_dir: str) -> str:
    """The root-owned file."""
    return os.path.join(state_dir, "clock")


def read_file(state_dir: str) -> Record:
    """The record in root's file; empty without one."""
    lines = dict(line.partition(" ")[::2] for line in root_file.read(file_of(state_dir)).splitlines())
    return of_facts(lines)


def write_file(state_dir: str, record: Record) -> None:
    """Write root's file (root only).

    Not durable by itself: the supervisor must not wait for a disk. After a power cut the database has it.
    """
    os.makedirs(state_dir, mode=0o755, exist_ok=True)
    text = "".join(f"{name} {value}\n" for name, value in facts_of(record).items())
    atomic_file.replace(file_of(state_dir), text.encode(), 0o644, durable=False)


def facts_of(record: Record) -> dict[str, str]:
    """The record as facts."""
    return {name: value for name, value in zip(FACTS, record, strict=True) if value}


def of_facts(untrusted: Mapping[str, str]) -> Record:
    """The record in facts of the database, or in the lines of root's file."""
    return Record(*(root_file.checked(untrusted.get(name, "")) or "" for name in FACTS))


def latest(one: Record, other: Record) -> Record:
    """The later of both times of two records."""
    return Record(max(one.seen, other.seen), max(one.issued, other.issued))


def after_issue(record: Record, issued: str) -> Record:
    """The record when a licence is installed: the newest one vouches for the time of its issue."""
    if issued > record.issued:
        return Record(max(issued, now()), issued)
    return record


class Clock:
    """Judges the present time against a record; one for each process, since it counts from the first look."""

    def __init__(self) -> None:
        self.seen = "", 0.0  # a time, and when it was first given; one value, since threads share it

    def read(self, seen: str) -> str:
        """The present time, but never before `seen` and the time that passed since it was first given."""
        elapsed_s = time.clock_gettime(time.CLOCK_BOOTTIME)
        first = self.seen
        if first[0] != seen:
            first = self.seen = seen, elapsed_s
        return max(now(), after(seen, elapsed_s - first[1])) if seen else now()


class Recorder:
    """Writes the present time to one of the two places, every PERIOD_S."""

    def __init__(self, read: Callable[[], Record], write: Callable[[Record], None]) -> None:
        self.clock = Clock()
        self.read, self.write = read, write
        self.due_s = time.monotonic() + PERIOD_S

    def begin(self) -> None:
        """Write it if it is due; raises OSError, or what the database raises."""
        if time.monotonic() < self.due_s:
            return
        self.due_s = time.monotonic() + PERIOD_S
        record = self.read()
        present = self.clock.read(record.seen)
        if present > record.seen:
            self.write(record._replace(seen=present))
