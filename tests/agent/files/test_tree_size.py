"""The size of a tree: of its blocks, each file once, nothing outside, and no longer than allowed."""

from __future__ import annotations

import itertools
import os
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest
from agent.file_roots import FileRoots

from svc_helper.agent.files import beneath, tree_size
from svc_helper.agent.files.sizes import Size

HOSTILE = [b"a\nb", b"\x1b[2J", b"-rf", b"\xff\xfe", "\u202ename".encode(), b"x" * 255]


class Patient:
    """A caller that waits for as many looks as it is told."""

    def __init__(self, looks: int = 10**9) -> None:
        self.looks = looks

    def check(self) -> None:
        self.looks -= 1
        if self.looks < 0:
            raise InterruptedError("the caller has gone")

    def progress(self, facts: dict[str, Any]) -> None:
        raise AssertionError("figures need no progress")


def measured(files: FileRoots, path: bytes = b"", seconds: float = 60, **more: Any) -> Size:
    with beneath.closing(os.open(files.work, os.O_PATH)) as base:
        return tree_size.measure(Patient(), base, path, seconds=seconds, **more)


def du(files: FileRoots) -> int:
    out = subprocess.run(["du", "-s", "-B1", files.work], capture_output=True, text=True, check=True).stdout
    return int(out.split()[0])


def test_as_du_counts(files: FileRoots) -> None:
    (files.work / "deep/er").mkdir(parents=True)
    (files.work / "deep/er/f").write_bytes(os.urandom(300_000))
    os.link(files.work / "deep/er/f", files.work / "again")
    with open(files.work / "sparse", "wb") as file:
        file.truncate(1 << 30)
    (files.work / "link").symlink_to("/usr")
    os.mkfifo(files.work / "fifo")
    for name in HOSTILE:
        (files.work / os.fsdecode(name)).write_bytes(b"x" * 5000)
    found = measured(files)
    assert found == Size(du(files), 7 + len(HOSTILE), complete=True)
    assert found.bytes < 1 << 20, "neither the sparse file nor /usr is that large"


def test_a_directory_left_out_and_one_that_is_missing(files: FileRoots) -> None:
    (files.work / "store").mkdir()
    (files.work / "store/big").write_bytes(b"x" * 1_000_000)
    status = os.stat(files.work / "store")
    assert measured(files).bytes > 1_000_000
    assert measured(files, skip=(status.st_dev, status.st_ino)).bytes < 100_000
    with pytest.raises(FileNotFoundError):
        measured(files, b"no")


def test_what_leads_out_is_not_followed(files: FileRoots) -> None:
    (files.work / "out").symlink_to(files.outside)
    for path in (b"out", b"../outside", str(files.outside).encode()):
        with pytest.raises(OSError):
            measured(files, path)


def test_a_very_deep_tree_is_no_error(files: FileRoots) -> None:
    """Deeper than a path may be long: what is above is counted."""
    directory = os.open(files.work, os.O_RDONLY)
    for _ in range(30):
        os.mkdir(b"d" * 200, dir_fd=directory)
        below = os.open(b"d" * 200, os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = below
    os.close(directory)
    found = measured(files)
    assert not found.complete
    assert 10 < found.files < 30


def test_neither_time_nor_memory_is_endless(files: FileRoots, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        (files.work / f"d{number}").mkdir()
    assert measured(files, seconds=-1) == Size(0, 0, complete=False)
    monkeypatch.setattr(tree_size, "_WAITING_MAX", 5)
    found = measured(files)
    assert (found.files, found.complete) == (20, False)


def test_one_directory_of_many_files_takes_no_longer(
    files: FileRoots, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(100):
        (files.work / f"f{number}").touch()
    ticks = itertools.count()
    monkeypatch.setattr(tree_size, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
    found = measured(files, seconds=50)
    assert 0 < found.files < 50
    assert not found.complete


def test_a_caller_who_has_gone_ends_it(files: FileRoots, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_size, "_CHECK_EVERY", 1)
    (files.work / "d").mkdir()
    with beneath.closing(os.open(files.work, os.O_PATH)) as base, pytest.raises(InterruptedError):
        tree_size.measure(Patient(0), base, b"", seconds=60)
