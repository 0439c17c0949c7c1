"""Writing files through the app's data stream: whole or not at all, under one name, for good."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import stat
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from agent.file_roots import FileRoots, encoded
from agent.priv_ns import Agent, User
from agent.transfers import Transfer

from svc_helper.agent.calls import Failure
from svc_helper.agent.files import beneath, write
from svc_helper.wire import protocol

BIG = os.urandom(1 << 20) * 20 + b"end"
DRAFT = ".svc-upload-0123456789abcdef"


def put(
    files: FileRoots, content: bytes, path: str = "file", *, replace: bool = False, size: int | None = None
) -> dict[str, Any]:
    """A whole upload; what the agent says of it."""
    with Transfer(files, "fs.write", path=path, size=size, replace=replace) as transfer:
        assert transfer.next_message() == {"ready": True}
        transfer.send(content)
        transfer.close_stream()
        transfer.send_message(commit=len(content))
        return transfer.end()


def refused(
    files: FileRoots, path: str, *, replace: bool = False, size: int | None = None, root: str = "work"
) -> str:
    """The code of an upload that is refused before a byte."""
    with Transfer(files, "fs.write", root=root, path=path, size=size, replace=replace) as transfer:
        return transfer.code()


def there(files: FileRoots) -> list[str]:
    """Every name in the root, drafts too."""
    return sorted(os.listdir(files.work))


@pytest.fixture(params=["unnamed", "named", "named, no RENAME_NOREPLACE"])
def drafts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """File systems with unnamed files, without, and such that cannot even rename without replacing."""
    real_open, real_rename = beneath.open_, beneath.rename

    def open_(directory: int, path: bytes, flags: int, *mode: int, **how: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        return real_open(directory, path, flags, *mode, **how)

    def rename(*places: Any) -> None:
        if places[4:] == (beneath.NOREPLACE,):
            raise OSError(errno.EINVAL, "Invalid argument")
        real_rename(*places)

    if request.param != "unnamed":
        monkeypatch.setattr(beneath, "open_", open_)
    if request.param.endswith("NOREPLACE"):
        monkeypatch.setattr(beneath, "rename", rename)


@pytest.mark.parametrize("size", [None, len(BIG)])
def test_a_new_file(files: FileRoots, drafts: None, size: int | None) -> None:
    data = put(files, BIG, size=size)
    found = (files.work / "file").stat()
    assert data == {
        "size": len(BIG),
        "mtime_ns": found.st_mtime_ns,
        "inode": found.st_ino,
        "device": found.st_dev,
        "replaced": False,
    }
    assert (files.work / "file").read_bytes() == BIG
    assert found.st_mode == 0o100644
    assert found.st_nlink == 1
    assert found.st_blocks * 512 < len(BIG) + (1 << 20), "no more room is taken than it needs"
    assert there(files) == ["file"]


def test_an_empty_file_and_an_odd_name(files: FileRoots, drafts: None) -> None:
    name = b"\xff\n-rf \x1b[31m"
    assert put(files, b"", encoded(name), size=0)["size"] == 0
    assert os.listdir(os.fsencode(files.work)) == [name]


def test_a_file_replaced(files: FileRoots, drafts: None) -> None:
    """It keeps its permission bits, not its special ones; other names keep the old content."""
    old = files.work / "file"
    old.write_text("old")
    old.chmod(0o4750)
    os.link(old, files.work / "other")
    assert refused(files, "file") == "exists"
    assert old.read_text() == "old"
    assert put(files, b"new", replace=True)["replaced"] is True
    assert (old.read_text(), old.stat().st_mode) == ("new", 0o100750)
    assert (files.work / "other").read_text() == "old"
    assert put(files, b"x", "third", replace=True)["replaced"] is False
    assert there(files) == ["file", "other", "third"]


def test_a_link_is_replaced_itself(files: FileRoots, drafts: None) -> None:
    link = files.work / "link"
    link.symlink_to(files.outside / "secret")
    assert refused(files, "link") == "exists"
    assert put(files, b"new", "link", replace=True)["replaced"] is True
    assert not link.is_symlink() and link.read_text() == "new"
    assert link.stat().st_mode == 0o100644
    assert files.canary_is_whole()


def test_what_cannot_be_replaced(files: FileRoots) -> None:
    (files.work / "directory").mkdir()
    os.mkfifo(files.work / "fifo")
    (files.work / "file").write_text("x")
    (files.work / "out").symlink_to(files.outside)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(files.work / "socket"))
        for name in ("directory", "fifo", "socket"):
            assert refused(files, name, replace=True) == "conflict", name
            assert refused(files, name) == "exists", name
    for replace in (True, False):
        assert refused(files, "", replace=replace) == "conflict"
        assert refused(files, "none/x", replace=replace) == "not_found"
        assert refused(files, "file/x", replace=replace) == "conflict"
        assert refused(files, "out/x", replace=replace) == "forbidden"
        assert refused(files, "out/secret", replace=replace) == "forbidden"
        assert refused(files, DRAFT, replace=replace) == "conflict"
        assert refused(files, "model", root="fixed", replace=replace) == "forbidden"
        assert refused(files, "x", root="none", replace=replace) == "not_found"
    assert files.canary_is_whole()
    assert (files.directory / "fixed/model").read_text() == "weights"


@pytest.mark.parametrize("way", ["hang up", "cancel", "end", "wrong count", "no number", "other word"])
def test_without_a_commit_there_is_nothing(files: FileRoots, drafts: None, way: str) -> None:
    with Transfer(files, "fs.write", path="file", size=None, replace=True) as transfer:
        transfer.next_message()
        transfer.send(BIG)
        if way == "hang up":
            transfer.hang_up()
        elif way == "cancel":
            transfer.send_message(cancel=True)
        else:
            transfer.close_stream()
        if way == "end":
            transfer.hang_up()
        elif way == "wrong count":
            transfer.send_message(commit=len(BIG) - 1)
        elif way == "no number":
            transfer.send_message(commit=None)
        elif way == "other word":
            transfer.send_message(go=len(BIG))
        assert transfer.code() in ("cancelled", "protocol")
    assert there(files) == []


def test_more_or_less_than_announced(files: FileRoots, drafts: None) -> None:
    for content, code in ((b"123456", "too_large"), (b"1234", "protocol")):
        with Transfer(files, "fs.write", path="file", size=5, replace=False) as transfer:
            transfer.next_message()
            transfer.send(content)
            transfer.close_stream()
            with suppress(BrokenPipeError):  # the agent may have refused already
                transfer.send_message(commit=len(content))
            assert transfer.code() == code
    assert there(files) == []


def test_nobody_sees_a_part(files: FileRoots) -> None:
    with Transfer(files, "fs.write", path="file", size=len(BIG), replace=False) as transfer:
        transfer.next_message()
        transfer.send(BIG)
        assert not [name for name in there(files) if not beneath.is_draft(os.fsencode(name))]
        transfer.close_stream()
        transfer.send_message(commit=len(BIG))
        transfer.end()


def test_a_target_that_comes_meanwhile(files: FileRoots, drafts: None) -> None:
    """Two to one name: one wins. A directory is not replaced, whenever it came."""
    for replace, code in ((False, "exists"), (True, "conflict")):
        with Transfer(files, "fs.write", path="d", size=None, replace=replace) as transfer:
            transfer.next_message()
            transfer.close_stream()
            (files.work / "d").mkdir(exist_ok=True)
            transfer.send_message(commit=0)
            assert transfer.code() == code
        assert there(files) == ["d"]
        if not replace:
            (files.work / "d").rmdir()


def test_many_to_one_name(files: FileRoots, drafts: None) -> None:
    done: list[str] = []

    def one(number: int) -> None:
        try:
            put(files, b"%d" % number * 100_000)
            done.append(str(number) * 100_000)
        except (Failure, AssertionError):
            pass

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(files.work / "file").read_text()] == done
    assert there(files) == ["file"]


def test_drafts_of_dead_agents_are_removed(files: FileRoots, drafts: None) -> None:
    for name in (DRAFT, DRAFT[:-1] + "0", DRAFT[:-1], "x" + DRAFT, DRAFT.upper()):
        (files.work / name).write_text("part")
    (files.work / (DRAFT[:-1] + "1")).mkdir()
    (files.work / (DRAFT[:-1] + "2")).symlink_to("file")
    kept = {DRAFT, DRAFT[:-1], "x" + DRAFT, DRAFT.upper(), DRAFT[:-1] + "1", DRAFT[:-1] + "2", "file"}
    with open(files.work / DRAFT, "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        put(files, b"x")
    assert set(there(files)) == kept
    put(files, b"x", replace=True)
    assert set(there(files)) == kept - {DRAFT}


def test_drafts_being_written_are_not(files: FileRoots, drafts: None) -> None:
    with Transfer(files, "fs.write", path="first", size=None, replace=False) as transfer:
        transfer.next_message()
        put(files, b"x", "second")
        transfer.send(b"first")
        transfer.close_stream()
        transfer.send_message(commit=5)
        transfer.end()
    assert there(files) == ["first", "second"]


@pytest.fixture
def small(files: FileRoots, needs_root: None) -> Iterator[Path]:
    """A disk of four megabytes, as the root's directory `small`."""
    place = files.work / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", str(place)], check=True)
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_disk_too_small(files: FileRoots, small: Path, drafts: None) -> None:
    assert refused(files, "small/file", size=5 * 1024**2) == "storage_full"
    assert refused(files, "small/file", size=2**50) == "storage_full"
    with Transfer(files, "fs.write", path="small/file", size=None, replace=False) as transfer:
        transfer.next_message()
        with pytest.raises(BrokenPipeError):
            for _ in range(10):
                transfer.send(bytes(1 << 20))
        assert transfer.code() == "storage_full"
    assert os.listdir(small) == []
    assert put(files, bytes(3 << 20), "small/file", size=3 << 20)["size"] == 3 << 20


def test_of_two_that_do_not_fit_together_one_is_refused_at_once(files: FileRoots, small: Path) -> None:
    size = 3 << 20
    with Transfer(files, "fs.write", path="small/first", size=size, replace=False) as transfer:
        transfer.next_message()
        assert refused(files, "small/second", size=size) == "storage_full"
        transfer.send(bytes(size))
        transfer.close_stream()
        transfer.send_message(commit=size)
        transfer.end()
    assert os.listdir(small) == ["first"]


def test_the_file_is_written_in_small_pieces(files: FileRoots, monkeypatch: pytest.MonkeyPatch) -> None:
    """Larger ones cost several times as much on a virtual machine: docs/performance-log.md, "fs upload"."""
    real, largest = os.splice, 0

    def splice(source: int, target: int, count: int, **more: Any) -> int:
        nonlocal largest
        moved = real(source, target, count, **more)
        if stat.S_ISREG(os.fstat(target).st_mode):
            largest = max(largest, moved)
        return moved

    monkeypatch.setattr(os, "splice", splice)
    put(files, BIG, size=len(BIG))
    assert (files.work / "file").read_bytes() == BIG
    assert 0 < largest <= 64 * 1024


def test_a_file_system_without_splice(files: FileRoots, monkeypatch: pytest.MonkeyPatch) -> None:
    real_splice = os.splice

    def splice(source: int, target: int, *rest: Any, **more: Any) -> int:
        if stat.S_ISREG(os.fstat(target).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")
        return real_splice(source, target, *rest, **more)

    monkeypatch.setattr(os, "splice", splice)
    put(files, BIG, size=len(BIG))
    assert (files.work / "file").read_bytes() == BIG


def test_a_file_system_that_reserves_nothing(files: FileRoots, monkeypatch: pytest.MonkeyPatch) -> None:
    class Libc:
        @staticmethod
        def fallocate(*_: object) -> int:
            return -1

    monkeypatch.setattr(write, "_libc", Libc)
    assert put(files, BIG, size=len(BIG))["size"] == len(BIG)


@pytest.fixture
def agent(user: User) -> Iterator[Agent]:
    """An agent of a real user's."""
    created = user.start_agent()
    yield created
    created.close()


@pytest.mark.usefixtures("empty_work")
def test_a_real_agent(user: User, agent: Agent) -> None:
    """It writes where its user may, also into a directory that it may not read; killed, it leaves nothing."""
    user.run(
        "sh",
        "-c",
        "mkdir -p ~/work/w/closed ~/work/w/blind && cd ~/work/w && chmod 555 closed && chmod 300 blind",
    )
    work = Path(user.home, "work/w")
    for path, code in (("closed/x", "forbidden"), ("blind/x", ""), ("whole", ""), ("killed", "died")):
        pending = agent.begin("fs.write", root="work", path=f"w/{path}", size=5, replace=False, stream=True)
        if code == "forbidden":
            assert pending.answer().code == code
            pending.stream.close()
            continue
        assert protocol.receive(pending.sock).message["progress"] == {"ready": True}
        pending.stream.sendall(b"12345")
        pending.stream.close()
        if code == "died":
            agent.process.kill()
        else:
            protocol.send(pending.sock, {"commit": 5})
        answer = pending.answer()
        assert answer.code == code if code else answer.data["size"] == 5
    found = (work / "whole").stat()
    assert (found.st_uid, found.st_mode, (work / "whole").read_text()) == (user.uid, 0o100644, "12345")
    assert (work / "blind/x").read_text() == "12345"
    assert sorted(os.listdir(work / "closed") + [n for n in os.listdir(work) if n.startswith(".")]) == []
    assert not (work / "killed").exists()
