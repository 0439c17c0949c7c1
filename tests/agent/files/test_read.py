"""Reading files through a data stream: the parts asked for, what is no file, what changes meanwhile."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent.file_roots import FileRoots, encoded
from agent.priv_ns import Agent, User
from agent.transfers import Transfer

from svc_helper.agent.files import read
from svc_helper.wire import protocol

BIG = os.urandom(1 << 20) * 3 + b"end"


@pytest.fixture
def big(files: FileRoots) -> Path:
    """A file that no buffer holds."""
    path = files.work / "big"
    path.write_bytes(BIG)
    return path


@pytest.mark.parametrize(
    ("offset", "count"),
    [(0, len(BIG)), (0, 0), (len(BIG), 0), (5, 1), (4095, 2_000_001), (len(BIG) - 1, 1)],
)
def test_the_part_that_was_asked_for(files: FileRoots, big: Path, offset: int, count: int) -> None:
    with Transfer(files, "fs.read", path="big") as transfer:
        found = big.stat()
        assert transfer.next_message() == {
            "size": len(BIG),
            "mtime_ns": found.st_mtime_ns,
            "inode": found.st_ino,
            "device": found.st_dev,
        }
        transfer.send_message(go=[offset, count])
        assert transfer.receive() == BIG[offset : offset + count]
        assert transfer.end() == {"sent": count}


@pytest.mark.parametrize(
    "argument",
    [
        {"go": [0, len(BIG) + 1]}, {"go": [-1, 1]}, {"go": [1, -1]}, {"go": [0]}, {"go": 5}, {"go": None},
        {"go": [0.0, 1]}, {"go": [True, 1]}, {"go": [0, 1, 2]}, {"go": [2**70, 1]}, {"come": [0, 1]}, {},
    ],
)  # fmt: skip
def test_other_words(files: FileRoots, big: Path, argument: dict[str, object]) -> None:
    with Transfer(files, "fs.read", path="big") as transfer:
        transfer.next_message()
        transfer.send_message(**argument)
        assert transfer.receive() == b""
        assert transfer.code() == "protocol"


def test_what_is_no_regular_file(files: FileRoots) -> None:
    os.mkfifo(files.work / "fifo")
    (files.work / "directory").mkdir()
    (files.work / "circle").symlink_to("circle")
    (files.work / "out").symlink_to(files.outside / "secret")
    (files.work / "zero").symlink_to("/dev/zero")
    expected = {
        "fifo": "conflict", "socket": "conflict", "directory": "conflict", "": "conflict",
        "none": "not_found", "circle": "not_found", "out": "forbidden", "zero": "forbidden",
        "fifo/x": "conflict",
    }  # fmt: skip
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(files.work / "socket"))
        for name, code in expected.items():
            with Transfer(files, "fs.read", path=name) as transfer:
                assert transfer.code() == code, name
                assert transfer.receive() == b""


def test_a_device(files: FileRoots, needs_root: None) -> None:
    os.mknod(files.work / "null", 0o20666, os.makedev(1, 3))
    with Transfer(files, "fs.read", path="null") as transfer:
        assert transfer.code() == "conflict"


def test_a_link_within_and_an_odd_name(files: FileRoots) -> None:
    name = b"\xff\n\x1b[31m"
    with open(os.fsencode(files.work) + b"/" + name, "wb") as file:
        file.write(b"odd")
    os.symlink(name, os.fsencode(files.work) + b"/link")
    for path in (encoded(name), "link"):
        with Transfer(files, "fs.read", path=path) as transfer:
            assert transfer.next_message()["size"] == 3
            transfer.send_message(go=[0, 3])
            assert transfer.receive() == b"odd"


def test_a_file_that_becomes_shorter(files: FileRoots, big: Path) -> None:
    """Nothing is put in the place of what has gone."""
    with Transfer(files, "fs.read", path="big") as transfer:
        transfer.next_message()
        os.truncate(big, 2_000_000)
        transfer.send_message(go=[0, len(BIG)])
        assert transfer.receive() == BIG[:2_000_000]
        assert transfer.code() == "conflict"


def test_a_file_that_grows_or_is_replaced_or_removed(files: FileRoots, big: Path) -> None:
    with Transfer(files, "fs.read", path="big") as transfer:
        transfer.next_message()
        with big.open("ab") as file:
            file.write(b"more")
        (files.work / "other").write_text("another")
        (files.work / "other").rename(big)
        transfer.send_message(go=[0, len(BIG)])
        assert transfer.receive() == BIG


@pytest.mark.parametrize("way", ["cancel", "hang up", "close the stream"])
def test_a_caller_that_goes_ends_it(files: FileRoots, big: Path, way: str) -> None:
    with Transfer(files, "fs.read", path="big") as transfer:
        transfer.next_message()
        transfer.send_message(go=[0, len(BIG)])
        transfer.receive(1)
        if way == "cancel":
            transfer.send_message(cancel=True)
        elif way == "hang up":
            transfer.hang_up()
        else:
            transfer.close_stream()
        assert transfer.code() == "cancelled"


def test_no_data_stream_came(files: FileRoots, big: Path) -> None:
    """A file and a pipe are refused: the ends of a pipe share a lock."""
    os.mkfifo(files.work / "fifo")
    pipe = os.open(files.work / "fifo", os.O_RDWR)
    for message, path in (
        ({"output": True}, "/dev/null"),
        ({"output": True}, f"/proc/self/fd/{pipe}"),
        ({"input": True}, "/dev/null"),
        ({}, None),
    ):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        call = read.Call("rid", "fs.read", 5, theirs)
        with ours, theirs:
            if path:
                with open(path, "rb") as file:
                    protocol.send(ours, message, [file.fileno()])
            with pytest.raises(read.Failure) as caught:
                call.data_stream("output")
            assert caught.value.code == "protocol"
    os.close(pipe)


def test_a_file_system_without_sendfile(files: FileRoots, big: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def sendfile(*_: object, **__: object) -> int:
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "sendfile", sendfile)
    with Transfer(files, "fs.read", path="big") as transfer:
        transfer.next_message()
        transfer.send_message(go=[7, len(BIG) - 7])
        assert transfer.receive() == BIG[7:]


@pytest.fixture
def agent(user: User) -> Iterator[Agent]:
    """An agent of a real user's."""
    created = user.start_agent()
    yield created
    created.close()


@pytest.mark.usefixtures("empty_work")
def test_a_real_agent(user: User, agent: Agent) -> None:
    """It reads what its user may, and needs no Podman for it."""
    user.run(
        "sh", "-c", "mkdir -p ~/work/r && cd ~/work/r && echo mine >mine && echo no >closed && chmod 0 closed"
    )
    os.makedirs(f"{user.home}/work/r/root/below", exist_ok=True)
    os.chmod(f"{user.home}/work/r/root", 0o700)
    for path, code in (("r/closed", "forbidden"), ("r/root/below", "forbidden")):
        pending = agent.begin("fs.read", root="work", path=path, stream=True)
        assert pending.answer().code == code
        assert pending.stream.recv(1) == b""
        pending.stream.close()
    pending = agent.begin("fs.read", root="work", path="r/mine", stream=True)
    assert protocol.receive(pending.sock).message["progress"]["size"] == 5
    protocol.send(pending.sock, {"go": [0, 5]})
    assert pending.answer().data == {"sent": 5}
    assert pending.stream.recv(100) == b"mine\n"
    pending.stream.close()
