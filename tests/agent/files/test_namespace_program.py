"""The program in the user's namespace: what it opens and removes for the agent, and what it refuses."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from agent.file_roots import FileRoots

from svc_helper.agent.files import namespace_program
from svc_helper.agent.files.namespace_program import AgentGone, Requester, serve
from svc_helper.wire import protocol

O_FILE, O_DIR = os.O_RDONLY, os.O_RDONLY | os.O_DIRECTORY


@pytest.fixture(autouse=True)
def no_nice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests stay as urgent as they are."""
    monkeypatch.setattr(namespace_program, "_NICE", -100)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, Requester]]:
    """The agent's end, and the program's."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        yield ours, Requester(theirs)


def ask(files: FileRoots, pair: tuple[socket.socket, Requester], **request: Any) -> protocol.Frame:
    """The reply to one request about `work`."""
    ours, requester = pair
    serve(requester, protocol.Frame(request, [os.open(files.work, os.O_PATH)], None))
    while "progress" in (frame := protocol.receive_reply(ours)).message:
        pass
    return frame


def test_opened(files: FileRoots, pair: tuple[socket.socket, Requester]) -> None:
    (files.work / "d").mkdir()
    (files.work / "d/f").write_text("content")
    (files.work / "link").symlink_to("d/f")
    before = len(os.listdir("/proc/self/fd"))
    for path, flags in (("d/f", O_FILE), ("link", O_FILE), ("d", O_DIR), ("link", os.O_PATH | os.O_NOFOLLOW)):
        frame = ask(files, pair, open=[path, flags, 0])
        assert frame.message == {"ok": True, "data": {}}
        assert os.get_inheritable(frame.fds[0]) is False
        if (path, flags) == ("d/f", O_FILE):
            assert os.read(frame.fds[0], 100) == b"content"
        protocol.close_all(frame.fds)
    assert len(os.listdir("/proc/self/fd")) == before


def test_refused(files: FileRoots, pair: tuple[socket.socket, Requester]) -> None:
    (files.work / "out").symlink_to(files.outside / "secret")
    (files.work / "above").symlink_to("../../outside")
    (files.work / "closed").touch(0o000)
    (files.work / "closed").chmod(0)
    (files.work / "unreadable").mkdir(0o300)
    os.mkfifo(files.work / "fifo")
    before = len(os.listdir("/proc/self/fd"))
    for path, number in (
        ("out", errno.EXDEV), ("above/secret", errno.EXDEV), ("no", errno.ENOENT), ("fifo", errno.ENXIO),
        ("closed", errno.EACCES), ("unreadable", errno.EACCES),
    ):  # fmt: skip
        frame = ask(files, pair, open=[path, O_FILE, 0])
        assert (path, frame.message, frame.fds) == (path, {"ok": False, "errno": number}, [])
    assert len(os.listdir("/proc/self/fd")) == before
    assert files.canary_is_whole()


def test_removed(files: FileRoots, pair: tuple[socket.socket, Requester]) -> None:
    (files.work / "top/d").mkdir(parents=True)
    (files.work / "top/out").symlink_to(files.outside)
    frame = ask(files, pair, remove=["top", False])
    assert (frame.message["code"], "not empty" in frame.message["message"]) == ("conflict", True)
    frame = ask(files, pair, remove=["top", True])
    assert frame.message == {"ok": True, "data": {"removed": 3, "remaining": 0, "kept": []}}
    assert ask(files, pair, remove=["top", True]).message == {"ok": False, "errno": errno.ENOENT}
    assert files.canary_is_whole()


def test_it_ends_with_the_agent(pair: tuple[socket.socket, Requester]) -> None:
    ours, requester = pair
    requester.check()
    for number in range(10_000):  # nobody reads them, and nothing waits
        requester.progress({"removed": number})
    ours.close()
    with pytest.raises(AgentGone):
        requester.check()


def test_main(files: FileRoots, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    dup = os.dup
    monkeypatch.setattr(os, "dup", lambda fd: dup(theirs.fileno() if fd == 0 else fd))
    ours.shutdown(socket.SHUT_WR)
    assert namespace_program.main() == 0
    assert protocol.receive(ours).message == {"ready": True}
    ours.close()
    theirs.close()


def test_measured(files: FileRoots, pair: tuple[socket.socket, Requester]) -> None:
    (files.work / "d").mkdir()
    (files.work / "d/f").write_bytes(b"x" * 100_000)
    (files.work / "out").symlink_to(files.outside)
    frame = ask(files, pair, measure=["", 60_000, 0, 0])
    size, names, complete = frame.message["data"]["size"]
    assert 100_000 <= size < 200_000
    assert (names, complete) == (3, True)
    assert ask(files, pair, measure=["no", 60_000, 0, 0]).message == {"ok": False, "errno": errno.ENOENT}
    assert ask(files, pair, measure=["out", 60_000, 0, 0]).message["ok"] is False
    assert ask(files, pair, measure=["../outside", 60_000, 0, 0]).message["ok"] is False
