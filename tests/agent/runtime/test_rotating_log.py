"""The bounded output of a launcher: what is kept, in what order, and what a full disk or odd files do."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_helper.agent.runtime import log_files, rotating_log
from svc_helper.agent.runtime.log_files import MARKER, Files
from svc_helper.agent.runtime.rotating_log import RotatingLog


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RotatingLog]:
    """A launcher's log."""
    created = RotatingLog(str(tmp_path), "web")
    yield created
    created.close()


def read(log: RotatingLog) -> tuple[bytes, list[bytes]]:
    """The output that is kept, and the markers."""
    with Files(log.directory, log.name) as files:
        rows = b"\n".join(files.forward(files.first, files.end))
    pieces = list(log_files.pieces_of(rows))
    return log_files.output_of(rows), [text for kind, text in pieces if kind == MARKER]


def test_what_was_written_can_be_read(log: RotatingLog) -> None:
    assert read(log) == (b"", [])
    log.mark("started")
    log.write(b"one\ntwo")
    log.mark("started")
    assert read(log) == (b"one\ntwo", [b"started", b"started"])
    log.close()
    log.write(b"\0more\r\n\n\n")  # it opens again
    assert read(log)[0] == b"one\ntwo\0more\r\n\n\n"


def test_it_is_bounded_and_keeps_the_newest(log: RotatingLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rotating_log, "FILE_BYTES", 1_000_000)
    sent = b""
    for number in range(40):
        part = bytes([65 + number % 26]) * 100_003
        log.write(part)
        sent += part
        sizes = [file.stat().st_size for file in Path(log.directory).iterdir()]
        assert sum(sizes) <= 2_000_000 and max(sizes) <= 1_000_000
    content, _ = read(log)
    assert sent.endswith(content) and len(content) > 900_000
    again = RotatingLog(log.directory, log.name)
    again.write(b"end")
    assert read(log)[0].endswith(sent[-7:] + b"end")
    again.close()


def test_a_full_disk_drops_output_and_says_so_once(log: RotatingLog, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write(b"before\n")
    write = os.write

    def full(fd: int, content: bytes) -> int:
        if len(content) < 1000:
            raise OSError(errno.ENOSPC, "full")
        return write(fd, content[:500])

    with monkeypatch.context() as patch:
        patch.setattr(rotating_log.os, "write", full)
        for _ in range(5):
            assert log.write(b"x" * 1000) == 0
        log.mark("started")
    log.write(b"after\n")
    content, (lost,) = read(log)
    assert content == b"before\nafter\n", "whole rows or nothing"
    assert lost == b"5000 bytes were lost: the disk had no room for them"


@pytest.mark.parametrize("kind", ["fifo", "link", "directory"])
def test_odd_things_at_its_name_are_left_alone(tmp_path: Path, log: RotatingLog, kind: str) -> None:
    path = tmp_path / "web.0.log"
    target = tmp_path / "target"
    target.write_bytes(b"secret")
    {
        "fifo": lambda: os.mkfifo(path),
        "link": lambda: path.symlink_to(target),
        "directory": path.mkdir,
    }[kind]()
    log.write(b"output\n")
    assert log.lost == 7
    assert read(log) == (b"", [])
    assert target.read_bytes() == b"secret"
