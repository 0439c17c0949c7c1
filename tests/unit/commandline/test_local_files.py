"""Local files: what is written is whole or not there, wherever its name leads."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_service import Stream

from svc.commandline import local_files
from svc.errors import BadAnswer, FileRefused

FORCED = "svc fs download work/a a --force"


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def save(path: str, *parts: bytes, force: bool = False) -> None:
    local_files.save(iter(parts), path, force, FORCED)


def test_a_file_is_written_whole() -> None:
    save("a", b"one", b"", b"two")
    assert Path("a").read_bytes() == b"onetwo"
    save("empty")
    assert Path("empty").read_bytes() == b""
    assert sorted(os.listdir()) == ["a", "empty"]


def _write_calls() -> int:
    """How many system calls of this process have written, as the kernel counts them."""
    counts = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counts["syscw"])


def test_it_is_written_in_small_pieces() -> None:
    """Larger ones cost several times as much on a virtual machine: docs/performance-log.md, "fs upload"."""
    before = _write_calls()
    save("out", bytes(1 << 20), b"end")
    assert _write_calls() - before >= (1 << 20) // (64 * 1024)
    assert Path("out").read_bytes() == bytes(1 << 20) + b"end"


def test_it_is_as_open_as_the_caller_wants() -> None:
    before = os.umask(0o027)
    try:
        save("a", b"x")
    finally:
        os.umask(before)
    assert Path("a").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", ["n" * 255, "é" * 127, "図" * 85, "a\nb\x1b[2J", os.fsdecode(b"caf\xe9")])
def test_any_name_that_linux_takes(name: str) -> None:
    save(name, b"x")
    assert os.listdir() == [name]


@pytest.mark.parametrize("kind", ["file", "link", "dangling", "pipe"])
def test_what_is_there_is_replaced_by_force_alone(kind: str) -> None:
    """Never written to, nor through."""
    Path("other").write_text("other")
    out = Path("a")
    if kind == "file":
        out.write_text("mine")
    elif kind == "pipe":
        os.mkfifo(out)
    else:
        out.symlink_to("other" if kind == "link" else "nowhere")
    for refused in (lambda: local_files.refuse_existing("a", False, FORCED), lambda: save("a", b"x")):
        with pytest.raises(FileRefused, match="a already exists") as raised:
            refused()
        assert raised.value.hint == FORCED
    local_files.refuse_existing("a", True, FORCED)
    save("a", b"x", force=True)
    assert (out.is_symlink(), out.read_bytes()) == (False, b"x")
    assert Path("other").read_text() == "other"
    assert sorted(os.listdir()) == ["a", "other"]


@pytest.mark.parametrize("path", ["none/a", "a\0b", "a" * 256, "folder"])
def test_what_cannot_be_written(path: str) -> None:
    os.mkdir("folder")
    for force in (False, True):
        with pytest.raises(FileRefused):
            save(path, b"x", force=force)
    assert os.listdir() == ["folder"]


def test_a_directory_is_refused() -> None:
    os.mkdir("folder")
    for force in (False, True):
        with pytest.raises(FileRefused, match="directory"):
            local_files.refuse_existing("folder", force, FORCED)


def test_a_file_system_without_hard_links(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    save("a", b"x")
    with pytest.raises(FileRefused, match="already exists"):
        save("a", b"y")
    assert (Path("a").read_bytes(), os.listdir()) == (b"x", ["a"])


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("number", [None, signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_end_in_the_middle_leaves_nothing(number: int | None, force: bool) -> None:
    """Neither an error nor Ctrl-C, a closed terminal or a kill leaves a piece of the file."""
    if force:
        Path("a").write_text("mine")
    seen = []

    def parts() -> Iterator[bytes]:
        yield b"x"
        seen.extend(os.listdir())
        if number is None:
            raise BadAnswer("cut short")
        os.kill(os.getpid(), number)
        while True:  # the signal comes before the next instruction or soon after
            yield b"x"

    expected = {None: BadAnswer, signal.SIGINT: KeyboardInterrupt}.get(number, SystemExit)
    with pytest.raises(expected) as raised:
        local_files.save(parts(), "a", force, FORCED)
    assert len(seen) == 1 + force
    assert os.listdir() == (["a"] if force else [])
    assert not force or Path("a").read_text() == "mine"
    if isinstance(raised.value, SystemExit):
        assert raised.value.code == 128 + (number or 0)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """As under nohup: the download goes on when the terminal is closed."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def parts() -> Iterator[bytes]:
        yield b"x"
        os.kill(os.getpid(), signal.SIGHUP)
        yield b"y"

    try:
        local_files.save(parts(), "a", False, FORCED)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert Path("a").read_bytes() == b"xy"


@pytest.mark.parametrize("force", [False, True])
def test_a_disk_that_takes_no_more_is_told(force: bool) -> None:
    if force:
        Path("a").write_text("mine")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(FileRefused, match="cannot write a: File too large"):
            save("a", bytes(4096), bytes(100_000), force=force)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert os.listdir() == (["a"] if force else [])


def test_only_a_regular_file_is_sent() -> None:
    Path("a").write_bytes(b"abc")
    file, size = local_files.open_regular("a")
    with file:
        assert (file.read(), size) == (b"abc", 3)
    os.mkfifo("pipe")
    os.mkdir("folder")
    os.symlink("pipe", "link")
    for path in ("pipe", "folder", "link", "/dev/zero", "none", "a\0b"):
        with pytest.raises(FileRefused):
            local_files.open_regular(path)


def test_nothing_is_written_to_a_terminal_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = Stream(terminal=False)
    monkeypatch.setattr(sys, "stdout", pipe)
    local_files.refuse_terminal("")
    local_files.write_out([b"\x1b[2J", b"\xff"])
    assert pipe.buffer.getvalue() == b"\x1b[2J\xff"  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "stdout", Stream(terminal=True))
    with pytest.raises(FileRefused) as raised:
        local_files.refuse_terminal("svc fs read work/a")
    assert raised.value.hint == "svc fs read work/a"
