"""A door's end reaches whoever waits long in it."""

from __future__ import annotations

import select
from collections.abc import Iterator

import pytest

from svc.web import stopping


@pytest.fixture
def prepared() -> Iterator[None]:
    """As in a process that serves."""
    stopping.prepare()
    yield
    for end in stopping._ends or ():
        end.close()
    stopping._ends = None


def test_the_end_is_seen_by_all_who_watch(prepared: None) -> None:
    [descriptor] = stopping.descriptors()
    poll = select.poll()
    poll.register(descriptor, select.POLLRDHUP)
    assert not poll.poll(0)
    assert not stopping.begun()
    stopping.begin()
    stopping.begin()
    for _ in range(2):
        assert poll.poll(0)
        assert stopping.begun()


def test_where_no_process_serves_there_is_nothing_to_watch() -> None:
    stopping.begin()
    assert stopping.descriptors() == ()
    assert not stopping.begun()
