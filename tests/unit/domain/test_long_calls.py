"""Calls that may last: 8 per user, 48 in all."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from unit.serving import FarEnd, make_workspace

from svc import errors, limits
from svc.domain import long_calls, workspace_calls
from svc.domain.callers import Caller


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
    monkeypatch.setattr(long_calls, "LONG_CALLS_TOTAL", 2)
    with (
        long_calls.counted(ada),
        long_calls.counted(ada),
        pytest.raises(errors.TooManyRequests),
        long_calls.counted(bob),
    ):
        pass
