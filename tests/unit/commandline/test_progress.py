"""The bar of a transfer: how much, how fast, and only where somebody looks."""

from __future__ import annotations

import sys

import pytest
from fake_service import Stream

from svc.commandline import progress
from svc.commandline.progress import TransferProgress

MIB = 1024 * 1024


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which stands still but for the test."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def err(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> Stream:
    stream = Stream(terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def test_a_transfer_has_a_bar_with_its_rate(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    stream = err(monkeypatch, terminal=True)
    moving = TransferProgress(8 * MIB)
    moving.add(2 * MIB)
    clock[0] += 2
    moving.add(2 * MIB)
    moving.end()
    assert "[############            ]   50%  4.0 MiB of 8.0 MiB  2.0 MiB/s  2 s left" in stream.text()
    assert stream.text().endswith("\r\x1b[K")
    assert moving.summary() == "4.0 MiB, 2.0 MiB/s"


def test_the_bar_is_not_drawn_for_each_piece(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    stream = err(monkeypatch, terminal=True)
    moving = TransferProgress(1000)
    for _ in range(1000):
        moving.add(1)
    assert stream.text().count("\r") == 1
    clock[0] += 2 * progress.DRAW_EVERY_S
    moving.add(1)
    assert stream.text().count("\r") == 2


def test_a_total_that_nobody_knows(monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    stream = err(monkeypatch, terminal=True)
    moving = TransferProgress(None)
    assert list(moving.counted([b"x" * 2047, b"y"])) == [b"x" * 2047, b"y"]
    clock[0] += 1
    moving.add(1)
    assert (moving.count, "K2.0 KiB  2.0 KiB/s" in stream.text(), "%" in stream.text()) == (2049, True, False)


@pytest.mark.parametrize("term", [None, "dumb"])
def test_nobody_looks(monkeypatch: pytest.MonkeyPatch, clock: list[float], term: str | None) -> None:
    """In a pipe, and on a terminal that can only print lines."""
    stream = err(monkeypatch, terminal=term is not None)
    if term:
        monkeypatch.setenv("TERM", term)
    moving = TransferProgress(10)
    moving.add(5)
    moving.end()
    assert (stream.text(), moving.summary()) == ("", "5 B")


@pytest.mark.parametrize(("rest", "result"), [(10, "10 s left"), (600, "10 min left"), (9000, "2.5 h left")])
def test_what_is_left(monkeypatch: pytest.MonkeyPatch, clock: list[float], rest: int, result: str) -> None:
    stream = err(monkeypatch, terminal=True)
    moving = TransferProgress(100 + rest * 10)
    clock[0] += 10
    moving.add(100)
    assert result in stream.text()
