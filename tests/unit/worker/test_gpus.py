"""When the worker looks at leased GPUs; what it finds is in tests/unit/domain/gpus/test_health.py."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from svc.domain.gpus import health as gpu_health
from svc.errors import Maintenance
from svc.worker import gpus
from svc.worker.gpus import LOOK_S, GpuWatch


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(gpus.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """One entry for each look; all of them have ended afterwards."""
    made: list[int] = []
    monkeypatch.setattr(gpu_health, "due", lambda: True)
    monkeypatch.setattr(gpu_health, "settle", lambda: made.append(1))
    yield made
    ended()


def ended() -> None:
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(5)


def test_every_few_seconds(clock: list[float], looks: list[int]) -> None:
    watch = GpuWatch()
    for _ in range(2):
        watch.begin()
        ended()
    assert looks == [1]
    clock[0] += LOOK_S
    watch.begin()
    ended()
    assert looks == [1, 1]


def test_not_while_there_is_nothing_to_see(
    clock: list[float], looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_health, "due", lambda: False)
    GpuWatch().begin()
    ended()
    assert looks == []


def test_one_at_a_time(clock: list[float], looks: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver that hangs holds one thread, not one more every few seconds."""
    hangs = threading.Event()

    def settle() -> None:
        looks.append(1)
        hangs.wait(30)

    monkeypatch.setattr(gpu_health, "settle", settle)
    watch = GpuWatch()
    for _ in range(3):
        watch.begin()
        clock[0] += LOOK_S
    hangs.set()
    ended()
    assert looks == [1]


def test_a_look_that_fails_is_not_the_last(
    clock: list[float], looks: list[int], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def settle() -> None:
        looks.append(1)
        raise Maintenance("the database is busy; try again")

    monkeypatch.setattr(gpu_health, "settle", settle)
    watch = GpuWatch()
    for _ in range(2):
        watch.begin()
        ended()
        clock[0] += LOOK_S
    assert looks == [1, 1]
    assert "the GPUs could not be looked at" in capfd.readouterr().err
