"""The app's output reaches the log escaped and bounded, and nobody waits for it."""

from __future__ import annotations

import json
import os
import pty
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.server import output as module
from svc.server.output import BURST, LINE_MAX, PENDING_MAX, Output


@pytest.fixture
def log(tmp_path: Path) -> Iterator[tuple[Output, Path]]:
    """Output into a file."""
    path = tmp_path / "log"
    target = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    output = Output(target)
    yield output, path
    for descriptor in (output.reading, output.writing, target):
        os.close(descriptor)


def said(output: Output, text: bytes) -> None:
    """The app writes; the supervisor comes by in between."""
    for start in range(0, len(text), 32768):
        os.write(output.writing, text[start : start + 32768])
        output.copy()


def test_control_characters_are_escaped(log: tuple[Output, Path]) -> None:
    output, path = log
    said(output, b'{"level": "info"}\n\x1b]0;owned\x07 \xff \xc2\x9b31m\r\nlast\n')
    assert path.read_text() == ' {"level": "info"}\n \\x1b]0;owned\\x07 \\xff \\x9b31m\\r\n last\n'


def test_no_line_passes_for_one_of_roots(log: tuple[Output, Path]) -> None:
    output, path = log
    forged = '{"at": "2026-01-01T00:00:00Z", "level": "info", "process": "helper", "message": "call"}'
    said(output, f"{forged}\n\r{forged}\n".encode())
    assert not [line for line in path.read_text().splitlines() if line.startswith("{")]
    assert json.loads(path.read_text().splitlines()[0])["process"] == "helper"


def test_a_line_comes_whole_and_a_long_one_is_cut(log: tuple[Output, Path]) -> None:
    output, path = log
    said(output, b"be")
    assert path.read_text() == ""
    said(output, b"gun\n" + b"x" * (5 * LINE_MAX) + b"\nnext\n")
    assert [len(line) for line in path.read_text().split("\n")] == [6, LINE_MAX + 1, 5, 0]


def test_a_flood_is_limited_and_counted(log: tuple[Output, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    output, path = log
    told: list[str] = []
    monkeypatch.setattr(module, "log", lambda _process, message, _level: told.append(message))
    monkeypatch.setattr(module, "REPORT_S", 0.05)
    said(output, b"x\n" * 20000)
    assert BURST <= path.read_text().count("\n") < BURST + 1000
    time.sleep(0.06)
    output.copy()
    lost = 20000 - path.read_text().count("\n")
    assert f"{lost} lines" in "".join(told) or len(told) > 1


def test_long_lines_count_as_many(log: tuple[Output, Path]) -> None:
    output, path = log
    said(output, (b"x" * (LINE_MAX - 2) + b"\n") * 2000)
    assert path.stat().st_size < (BURST + 1000) * 1024


@pytest.mark.parametrize("kind", ["pipe", "terminal", "socket"])
def test_a_target_that_takes_nothing_delays_nobody(kind: str) -> None:
    """A stopped terminal, a journal that does not read."""
    ends: list[socket.socket] = []
    if kind == "pipe":
        far, target = os.pipe()
    elif kind == "terminal":
        far, target = pty.openpty()
    else:
        ends = list(socket.socketpair())
        far, target = ends[0].fileno(), ends[1].fileno()
    output = Output(target)
    began = time.monotonic()
    for _ in range(400):
        said(output, b"y" * 8000 + b"\n")
    assert time.monotonic() - began < 5
    assert len(output.pending) <= PENDING_MAX and output.lost > 0
    assert os.get_blocking(target), "the flag would be root's shell's too"
    assert os.read(far, 100).startswith(b" yyy")
    for descriptor in {output.reading, output.writing, output.target} - {target}:
        os.close(descriptor)
    if not ends:
        os.close(far)
        os.close(target)
    for end in ends:
        end.close()
