"""The bounded output of a launcher: what is kept, in what order, and what a full disk or odd files do."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from svc_helper.agent.runtime import rotating_log
from svc_helper.agent.runtime.rotating_log import FILE_BYTES, RotatingLog, read


def test_what_was_written_can_be_read(tmp_path: Path) -> None:
    path = f"{tmp_path}/web.log"
    assert read(path, 100) == (b"", False)
    created = RotatingLog(path)
    created.note("started")
    created.write(b"one\ntwo")
    created.note("started")
    assert read(path, 1000) == (b"-- started --\none\ntwo\n-- started --\n", False)
    assert read(path, 12) == (b"- started --\n"[1:], True)
    created.close()
    created.write(b"more\n")  # it opens again
    assert read(path, 5) == (b"more\n", True)
    created.close()


def test_it_is_bounded_and_keeps_the_newest(tmp_path: Path) -> None:
    path = f"{tmp_path}/web.log"
    created = RotatingLog(path)
    sent = b""
    for number in range(40):
        part = bytes([65 + number % 26]) * 100_003
        created.write(part)
        sent = (sent + part)[-2 * FILE_BYTES :]
        sizes = [file.stat().st_size for file in tmp_path.iterdir()]
        assert sum(sizes) <= 2 * FILE_BYTES and max(sizes) <= FILE_BYTES
    content, more = read(path, 2 * FILE_BYTES)
    assert not more and sent.endswith(content) and len(content) >= FILE_BYTES
    assert read(path, 1_000_000) == (sent[-1_000_000:], True)
    created.close()
    again = RotatingLog(path)
    again.write(b"end")
    assert read(path, 10)[0] == sent[-7:] + b"end"
    again.close()


def test_a_full_disk_drops_output_and_says_so_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    created = RotatingLog(f"{tmp_path}/web.log")
    created.write(b"before\n")

    def full(fd: int, content: bytes) -> int:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(rotating_log.os, "write", full)
        for _ in range(5):
            created.write(b"x" * 1000)
        created.note("started")
    created.write(b"after\n")
    lines = read(created.path, 10_000)[0].splitlines()
    assert lines[0] == b"before" and lines[-1] == b"after" and len(lines) == 3
    assert b" bytes were lost" in lines[1] and int(lines[1].split()[1]) >= 5000
    created.close()


@pytest.mark.parametrize("kind", ["fifo", "link", "directory"])
def test_odd_things_at_its_name_are_left_alone(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "web.log"
    target = tmp_path / "target"
    target.write_bytes(b"secret")
    {
        "fifo": lambda: os.mkfifo(path),
        "link": lambda: path.symlink_to(target),
        "directory": path.mkdir,
    }[kind]()
    created = RotatingLog(str(path))
    created.write(b"output\n")
    assert created.lost == 7
    assert read(str(path), 100) == (b"", False)
    assert target.read_bytes() == b"secret"
    created.close()
