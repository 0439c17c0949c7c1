"""A listener that says nothing at several looks in a row is silent; one that says a word is not."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from svc.server import heartbeat
from svc.server.heartbeat import CHECK_S, SILENT_MAX, Heartbeat

PID = 4242


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(heartbeat.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def beats() -> Iterator[Heartbeat]:
    made = Heartbeat()
    yield made
    os.close(made.descriptor)


def looks(beats: Heartbeat, clock: list[float], count: int, pid: int = PID) -> list[bool]:
    """What so many looks find, each CHECK_S after the one before."""
    found = []
    for _ in range(count):
        clock[0] += CHECK_S
        found.append(beats.is_silent(pid))
    return found


def test_it_is_silent_after_so_many_looks(beats: Heartbeat, clock: list[float]) -> None:
    assert not beats.is_silent(PID)
    assert looks(beats, clock, SILENT_MAX) == [False] * (SILENT_MAX - 1) + [True]


def test_a_word_in_between_begins_anew(beats: Heartbeat, clock: list[float]) -> None:
    beats.is_silent(PID)
    for _ in range(3):
        assert not any(looks(beats, clock, SILENT_MAX - 1))
        beats.beat()
        assert looks(beats, clock, 1) == [False]


def test_a_machine_that_stood_still_ends_nothing(beats: Heartbeat, clock: list[float]) -> None:
    """One long pause is one look, however long it was."""
    beats.is_silent(PID)
    clock[0] += 3600
    assert not beats.is_silent(PID)


def test_looks_that_follow_at_once_do_not_count(beats: Heartbeat, clock: list[float]) -> None:
    """The parent wakes for every child that ends."""
    beats.is_silent(PID)
    assert not any(beats.is_silent(PID) for _ in range(100))
    assert looks(beats, clock, SILENT_MAX)[-1]


def test_another_process_begins_anew(beats: Heartbeat, clock: list[float]) -> None:
    beats.is_silent(PID)
    looks(beats, clock, SILENT_MAX - 1)
    assert not any(looks(beats, clock, SILENT_MAX, PID + 1))
    assert looks(beats, clock, 1, PID + 1) == [True]


def test_whether_any_process_has_worked_is_remembered(beats: Heartbeat, clock: list[float]) -> None:
    assert not beats.has_ever_beaten()
    beats.beat()
    assert beats.has_ever_beaten()
    assert beats.has_ever_beaten()
    looks(beats, clock, 3)
    assert beats.has_ever_beaten()


def test_a_listener_never_waits_to_say_it(beats: Heartbeat) -> None:
    os.eventfd_write(beats.descriptor, 2**64 - 2)
    beats.beat()
