"""When the worker checks leased GPUs; what it finds is in tests/unit/domain/gpus/test_health.py."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from svc.domain.gpus import health as gpu_health
from svc.errors import Maintenance
from svc.worker import gpus
from svc.worker.gpus import PERIOD_S, GpuWatch


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(gpus.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each check."""
    checks: list[int] = []
    monkeypatch.setattr(gpu_health, "due", lambda: True)
    monkeypatch.setattr(gpu_health, "update", lambda: checks.append(1))
    return checks


@pytest.fixture
def watch() -> Iterator[GpuWatch]:
    """A watch whose check has ended after the test."""
    watch = GpuWatch()
    yield watch
    wait_for(watch)


def wait_for(watch: GpuWatch) -> None:
    """Wait until the check that `watch` began has ended, if it began one."""
    if watch.thread:
        watch.thread.join(5)
        assert not watch.thread.is_alive()


def test_every_few_seconds(clock: list[float], watch: GpuWatch, checks: list[int]) -> None:
    for _ in range(2):
        watch.begin()
        wait_for(watch)
    assert checks == [1]
    clock[0] += PERIOD_S
    watch.begin()
    wait_for(watch)
    assert checks == [1, 1]


def test_not_while_there_is_nothing_to_see(
    clock: list[float], watch: GpuWatch, checks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu_health, "due", lambda: False)
    watch.begin()
    wait_for(watch)
    assert checks == []


def test_one_at_a_time(
    clock: list[float], watch: GpuWatch, checks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that hangs holds one thread, not one more every few seconds."""
    hangs = threading.Event()

    def update() -> None:
        checks.append(1)
        hangs.wait(30)

    monkeypatch.setattr(gpu_health, "update", update)
    for _ in range(3):
        watch.begin()
        clock[0] += PERIOD_S
    hangs.set()
    wait_for(watch)
    assert checks == [1]


def test_a_check_that_fails_is_not_the_last(
    clock: list[float],
    watch: GpuWatch,
    checks: list[int],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    def update() -> None:
        checks.append(1)
        raise Maintenance("the database is busy; try again")

    monkeypatch.setattr(gpu_health, "update", update)
    for _ in range(2):
        watch.begin()
        wait_for(watch)
        clock[0] += PERIOD_S
    assert checks == [1, 1]
    assert "the GPUs could not be checked" in capfd.readouterr().err
