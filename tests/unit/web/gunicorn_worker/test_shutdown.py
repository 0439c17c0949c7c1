"""A listener's end reaches whoever waits long in it."""

from __future__ import annotations

import select
from collections.abc import Iterator

import pytest

from svc.web.gunicorn_worker import shutdown


@pytest.fixture
def prepared() -> Iterator[None]:
    """As in a process that serves."""
    shutdown.prepare()
    yield
    for end in shutdown._pair or ():
        end.close()
    shutdown._pair = None


def test_the_end_is_seen_by_all_who_watch(prepared: None) -> None:
    [descriptor] = shutdown.descriptors()
    poll = select.poll()
    poll.register(descriptor, select.POLLRDHUP)
    assert not poll.poll(0)
    assert not shutdown.begun()
    shutdown.begin()
    shutdown.begin()
    for _ in range(2):
        assert poll.poll(0)
        assert shutdown.begun()


def test_where_no_process_serves_there_is_nothing_to_watch() -> None:
    shutdown.begin()
    assert shutdown.descriptors() == ()
    assert not shutdown.begun()
