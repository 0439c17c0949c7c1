"""Places of long calls and of streams: by user, by address and in total."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from unit.serving import FarEnd, make_workspace
from unit.streaming import CALLER

from svc import errors, limits
from svc.domain.places import long_calls, streams, turn
from svc.domain.principal import Caller
from svc.domain.workspaces import calls as workspace_calls


def test_long_calls_are_counted_per_user_and_in_all(
    ada: Caller, bob: Caller, far: FarEnd, template: str
) -> None:
    make_workspace(ada.user_id, template, status="running")
    release, arrived = threading.Event(), threading.Semaphore(0)
    good = far.answers["ctr.exec"]

    def wait(_call: Any) -> Any:
        arrived.release()
        release.wait(10)
        return good

    far.answers["ctr.exec"] = wait
    ended: list[Any] = []
    threads = [
        threading.Thread(target=lambda: ended.append(workspace_calls.run(ada, "lab", ["id"])))
        for _ in range(limits.LONG_CALLS_PER_USER)
    ]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert arrived.acquire(timeout=10)
    with pytest.raises(errors.TooManyRequests) as caught:
        workspace_calls.run(ada, "lab", ["id"])
    assert caught.value.retry_after_s
    with long_calls.counted(bob):
        pass
    release.set()
    for thread in threads:
        thread.join()
    assert len(ended) == limits.LONG_CALLS_PER_USER
    with long_calls.counted(ada):
        pass


def test_long_calls_in_all(ada: Caller, monkeypatch: pytest.MonkeyPatch, bob: Caller) -> None:
    monkeypatch.setattr(long_calls, "total", 2)
    with (
        long_calls.counted(ada),
        long_calls.counted(ada),
        pytest.raises(errors.TooManyRequests),
        long_calls.counted(bob),
    ):
        pass


@pytest.mark.parametrize(("one", "other"), [("192.0.2.7", "192.0.2.7"), ("2001:db8::1", "2001:db8::2:1")])
def test_who_comes_from_one_address_leaves_its_others_a_thread(
    ada: Caller, bob: Caller, one: str, other: str
) -> None:
    """An office, a proxy: two users with eight followers each would have all the address's threads."""
    assert limits.LONG_CALLS_PER_ADDRESS < limits.THREADS_PER_CLIENT
    ada, bob = replace(ada, address=one), replace(bob, address=other)
    with ExitStack() as held:
        for _ in range(limits.LONG_CALLS_PER_USER):
            held.enter_context(long_calls.counted(ada))
        for _ in range(limits.LONG_CALLS_PER_ADDRESS - limits.LONG_CALLS_PER_USER):
            held.enter_context(long_calls.counted(bob))
        with pytest.raises(errors.TooManyRequests), long_calls.counted(bob):
            pass
        with long_calls.counted(replace(bob, address="198.51.100.1")):
            pass
    assert not long_calls.of_address


def test_one_thread_of_a_user_computes_at_a_time(ada: Caller, bob: Caller) -> None:
    """Sixteen listings of 10,000 entries delayed others for up to 1.9 seconds."""
    with turn(ada):
        assert not turn(ada).acquire(timeout=0.05)
        with turn(bob):
            pass
    with turn(ada):
        pass


def test_streams_are_counted_by_user_by_address_and_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = [streams.take(CALLER) for _ in range(limits.STREAMS_PER_USER)]
    with pytest.raises(errors.TooManyRequests) as refused:
        streams.take(CALLER)
    assert refused.value.retry_after_s
    taken.pop().release()
    last = streams.take(CALLER)
    last.release()
    last.release()
    taken.append(streams.take(CALLER))
    monkeypatch.setattr(streams, "total", len(taken))
    other = Caller("pat", 2, "bob", 2002, False, "req-2", "192.0.2.7", None)  # type: ignore[arg-type]  # no helper is asked
    with pytest.raises(errors.TooManyRequests):
        streams.take(other)
    monkeypatch.setattr(streams, "total", 1000)
    monkeypatch.setattr(streams, "per_address", 1)
    taken.append(streams.take(other))
    with pytest.raises(errors.TooManyRequests):
        streams.take(other)
    taken.append(streams.take(replace(other, client="loopback uid 1002")))  # told apart behind one address
    for place in taken:
        place.release()
