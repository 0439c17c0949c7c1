"""Hashes wait in line: few at a time, of lowest priority, and no thread before the first."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from unit.configuring import SECRET

from svc.domain.accounts import hashing, passwords
from svc.errors import TooManyRequests
from svc.limits import HASHES_PER_NAME, HASHES_QUEUED_MAX

GOOD = "q7#fLp2z tap"
ADA = "ada"
PATIENCE_S = 60  # threads of lowest priority, on a host with much else to do


@pytest.fixture(autouse=True)
def no_line() -> Iterator[None]:
    """Every test makes the line anew, also after one of another module."""
    end_line()
    yield
    end_line()


def end_line() -> None:
    if hashing._pool.cache_info().currsize:
        hashing._pool().threads.shutdown()
    hashing._pool.cache_clear()


class Held:
    """A stand-in for a hash that goes on until it is let go; notes who works on how many."""

    def __init__(self) -> None:
        self.go = threading.Event()
        self.lock = threading.Lock()
        self.now = self.most = self.created = 0
        self.priorities: set[int] = set()

    def __call__(self, *_: object) -> bool:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.priorities.add(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        assert self.go.wait(PATIENCE_S)
        with self.lock:
            self.now -= 1
            self.created += 1
        return True


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    stand_in = Held()
    monkeypatch.setattr(passwords, "verify", stand_in)
    yield stand_in
    stand_in.go.set()


def until(fact: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def hash_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("hash_")]


def test_a_hash_and_its_password_belong_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "COST", 4)
    stored = hashing.hash_password(ADA, GOOD)
    assert passwords.verify(GOOD, stored, SECRET)
    assert hashing.verify(ADA, GOOD, stored)
    assert not hashing.verify(ADA, "another guess", stored)
    assert not hashing.verify(ADA, GOOD, None)


def test_no_thread_is_there_before_the_first_hash(held: Held) -> None:
    """ "no database connection or thread is open at the fork"."""
    assert not hash_threads()
    held.go.set()
    assert hashing.verify(ADA, GOOD, None)
    assert len(hash_threads()) == 1


@pytest.mark.parametrize(("processors", "workers"), [(1, 1), (2, 1), (5, 2), (8, 4)])
def test_half_of_the_processors_hash(
    processors: int, workers: int, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(processors)))
    assert hashing.at_once() == workers
    with ThreadPoolExecutor(workers + 3) as callers:
        tries = [callers.submit(hashing.verify, f"user{number}", GOOD, None) for number in range(workers + 3)]
        until(lambda: held.now == workers)
        time.sleep(0.05)
        held.go.set()
        assert all(tried.result() for tried in tries)
    assert held.most == workers
    assert held.created == workers + 3


def test_they_step_back_for_everything_else(held: Held) -> None:
    held.go.set()
    mine = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    hashing.verify(ADA, GOOD, None)
    assert held.priorities == {hashing.NICE}
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == mine


def test_who_finds_the_line_full_is_told_when_to_come_back(held: Held) -> None:
    room = hashing.at_once() + HASHES_QUEUED_MAX
    with ThreadPoolExecutor(room + 5) as callers:
        tries = [callers.submit(hashing.verify, f"user{number}", GOOD, None) for number in range(room)]
        until(lambda: held.now == hashing.at_once() and hashing._pool().slots._value == 0)
        began = time.monotonic()
        for call in (lambda: hashing.verify(ADA, GOOD, None), lambda: hashing.hash_password(ADA, GOOD)):
            with pytest.raises(TooManyRequests) as refused:
                call()
            assert 1 <= (refused.value.retry_after_s or 0) <= 10
        assert time.monotonic() - began < 1
        held.go.set()
        assert all(tried.result() for tried in tries)
    assert hashing.verify(ADA, GOOD, None)


def test_one_name_has_few_places_and_others_theirs(held: Held) -> None:
    """Sixteen logins of one user, with the right password, kept everybody else's waiting for seconds."""
    with ThreadPoolExecutor(HASHES_PER_NAME + 1) as callers:
        own = [callers.submit(hashing.verify, ADA, GOOD, None) for _ in range(HASHES_PER_NAME)]
        until(lambda: hashing._of_name[ADA] == HASHES_PER_NAME)
        for call in (lambda: hashing.verify(ADA, GOOD, None), lambda: hashing.hash_password(ADA, GOOD)):
            with pytest.raises(TooManyRequests) as refused:
                call()
            assert refused.value.retry_after_s == 1
        others = callers.submit(hashing.verify, "bob", GOOD, None)
        until(lambda: hashing._of_name["bob"] == 1)
        held.go.set()
        assert all(tried.result() for tried in (*own, others))
    assert not hashing._of_name
    assert hashing.verify(ADA, GOOD, None)


def test_a_hash_that_breaks_gives_its_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> bool:
        raise MemoryError

    monkeypatch.setattr(passwords, "verify", broken)
    for _ in range(hashing.at_once() + HASHES_QUEUED_MAX + 1):
        with pytest.raises(MemoryError):
            hashing.verify(ADA, GOOD, None)


def test_the_first_two_at_once_share_one_line(held: Held) -> None:
    with ThreadPoolExecutor(8) as callers:
        tries = [callers.submit(hashing.verify, f"user{number}", GOOD, None) for number in range(8)]
        until(lambda: held.now >= 1)
        assert len(hash_threads()) == hashing.at_once()
        held.go.set()
        assert all(tried.result() for tried in tries)


def test_other_threads_go_on_while_one_hashes() -> None:
    """bcrypt holds the interpreter for none of its quarter of a second."""
    longest, ends = 0.0, threading.Event()

    def hashes() -> None:
        hashing.verify(ADA, GOOD, None)
        ends.set()

    thread = threading.Thread(target=hashes)
    last = began = time.perf_counter()
    thread.start()
    turns = 0
    while not ends.is_set():
        turns += 1
        at = time.perf_counter()
        longest, last = max(longest, at - last), at
    thread.join()
    assert turns > 1000
    assert longest < (last - began) / 2
