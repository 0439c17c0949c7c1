"""Threads and retries of the worker."""

from __future__ import annotations

import pytest

from svc import errors
from svc.worker import threads


def test_a_thread_closes_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(threads, "close_database", lambda: seen.append("closed"))
    threads.start(seen.append, "ran").join(5)
    assert seen == ["ran", "closed"]


@pytest.mark.parametrize(("failures", "calls"), [(0, 1), (2, 3), (3, 4)])
def test_an_unavailable_engine_is_tried_again(failures: int, calls: int) -> None:
    seen: list[int] = []

    def act() -> dict[str, int]:
        seen.append(1)
        if len(seen) <= failures:
            raise errors.EngineUnavailable("not now")
        return {"calls": len(seen)}

    assert threads.retry_unavailable(act, 4, 0.0, lambda _: False) == {"calls": calls}


@pytest.mark.parametrize(
    ("error", "is_over", "calls"),
    [
        (errors.EngineUnavailable("not now"), False, 3),
        (errors.EngineUnavailable("not now"), True, 1),
        (errors.EngineFailed("never"), False, 1),
    ],
)
def test_tries_have_an_end(error: errors.SvcError, is_over: bool, calls: int) -> None:
    seen: list[int] = []

    def act() -> dict[str, int]:
        seen.append(1)
        raise error

    with pytest.raises(type(error)):
        threads.retry_unavailable(act, 3, 0.0, lambda _: is_over)
    assert len(seen) == calls
