"""What a terminal is asked for, and whether there is one here; the rest is in test_viewer.py."""

from __future__ import annotations

import os

import pytest

from svc.cli.ws import attaching


def test_standard_input_and_output(monkeypatch: pytest.MonkeyPatch) -> None:
    for input_, output, said in ((1, 1, ""), (0, 1, "input"), (1, 0, "output"), (0, 0, "input and output")):
        monkeypatch.setattr(os, "isatty", lambda number, on=(input_, output): bool(on[number]))
        assert attaching.require() == said


def test_a_window_that_does_not_tell_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    for told in ((0, 0), (97, 0), (0, 31)):
        monkeypatch.setattr(os, "get_terminal_size", lambda _fd, told=told: os.terminal_size(told))
        assert attaching.size() == (80, 24)
    monkeypatch.setattr(os, "get_terminal_size", lambda _fd: os.terminal_size((97, 31)))
    assert attaching.size() == (97, 31)
