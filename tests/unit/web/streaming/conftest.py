"""A loop for each test, with ticks in quick succession."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from unit.streaming import until

from svc.domain.places import streams
from svc.web.streaming import loop as loops
from svc.web.streaming import stream


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ticks in quick succession; every place is free at the end."""
    monkeypatch.setattr(loops, "TICK_S", 0.02)
    yield
    until(lambda: streams.taken() == 0)


@pytest.fixture
def loop() -> Iterator[loops.Loop]:
    loop = loops.Loop()
    yield loop
    loop.close()


@pytest.fixture
def default_loop(loop: loops.Loop, monkeypatch: pytest.MonkeyPatch) -> loops.Loop:
    monkeypatch.setattr(stream, "default_loop", loop)
    return loop
