"""Calls with a stream: an agent holds nobody by it, whatever it does with its end."""

from __future__ import annotations

import array
import contextlib
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helper.client.test_helper import Behaviour, answering

from svc import errors
from svc.helper import transfers
from svc.helper.helper import TRANSFERS_PER_USER, Helper
from svc.helper.transfers import DataStream, Transfer
from svc_helper.wire.limits import CALLS_PER_USER_MAX
from svc_helper.wire.protocol import Frame, receive, send

FILE = {"root": "work", "path": "a"}
FACTS = {"progress": {"size": 5}}
WAIT_S = 30.0


def with_stream(speak: Callable[[socket.socket, socket.socket], None], argument: str = "output") -> Behaviour:
    """An agent that takes its stream and does this with (reply, stream)."""

    def behave(reply: socket.socket, _frame: Frame) -> None:
        value = receive(reply)
        assert value.message == {argument: True}
        (fd,) = value.fds
        with socket.socket(fileno=fd) as stream, contextlib.suppress(OSError, EOFError):
            assert stream.type == socket.SOCK_STREAM
            assert not os.get_blocking(fd)
            stream.setblocking(True)
            speak(reply, stream)

    return behave


@contextlib.contextmanager
def reading(client: Helper, **options: Any) -> Iterator[Transfer]:
    with client.transfer("fs.read", "demo", FILE, rid="r", **options) as transfer:
        yield transfer


def all_of(transfer: Transfer, count: int = 2**30) -> bytes:
    """What comes over the stream, to its end or so many bytes."""
    content = b""
    while len(content) < count:
        part = transfer.stream.receive(count - len(content))
        if part == b"":
            break
        if part is None:
            transfer.wait({transfer.stream.fileno(): select.POLLIN}, WAIT_S)
        content += part or b""
    return content


def waits(reply: socket.socket) -> None:
    """Until the app has gone."""
    with contextlib.suppress(OSError, EOFError):
        while True:
            receive(reply)


@pytest.fixture(params=[True, False], ids=["refused", "taken"])
def splices(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """With and without a kernel that refuses descriptors."""
    if not request.param:
        monkeypatch.setattr(transfers, "SO_PASSRIGHTS", 9999)
    return bool(request.param)


def test_a_conversation(splices: bool) -> None:
    def speak(reply: socket.socket, stream: socket.socket) -> None:
        send(reply, FACTS)
        assert receive(reply).message == {"go": [0, 5]}
        stream.sendall(b"hello")
        stream.shutdown(socket.SHUT_WR)
        send(reply, {"ok": True, "data": {"sent": 5}})

    with answering(with_stream(speak)) as client:
        with reading(client) as transfer:
            assert transfer.receive(WAIT_S) == {"size": 5}
            transfer.send({"go": [0, 5]})
            assert all_of(transfer) == b"hello"
            assert transfer.end(WAIT_S) == {"sent": 5}
        assert not client.transfers


def test_a_file_goes_the_other_way() -> None:
    came: list[bytes] = []

    def speak(reply: socket.socket, stream: socket.socket) -> None:
        send(reply, {"progress": {"ready": True}})
        came.append(b"".join(iter(lambda: stream.recv(1000), b"")))
        send(reply, {"ok": True, "data": receive(reply).message})

    with answering(with_stream(speak, "input")) as client:
        arguments = {**FILE, "size": None, "replace": False}
        with client.transfer("fs.write", "demo", arguments, rid="r") as transfer:
            transfer.receive(WAIT_S)
            assert transfer.stream.send(memoryview(b"hello")) == 5
            transfer.stream.finish()
            transfer.send({"commit": 5})
            assert transfer.end(WAIT_S) == {"commit": 5}
    assert came == [b"hello"]


def test_leaving_it_early_ends_the_call(splices: bool) -> None:
    ended = threading.Event()

    def speak(reply: socket.socket, stream: socket.socket) -> None:
        send(reply, FACTS)
        waits(reply)
        with pytest.raises(OSError):
            while True:
                stream.sendall(bytes(1000))
        ended.set()

    with answering(with_stream(speak)) as client:
        with reading(client) as transfer:
            transfer.receive(WAIT_S)
        assert ended.wait(WAIT_S)


def test_an_error_is_raised_where_it_is_met() -> None:
    def speak(reply: socket.socket, stream: socket.socket) -> None:
        stream.sendall(b"some")
        send(reply, FACTS)
        receive(reply)
        send(reply, {"ok": False, "code": "conflict", "message": "it became shorter"})

    with answering(with_stream(speak)) as client, reading(client) as transfer:
        transfer.receive(WAIT_S)
        transfer.send({"go": [0, 5]})
        with pytest.raises(errors.Conflict, match="it became shorter"):
            transfer.end(WAIT_S)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"ok": True, "data": {}}, errors.EngineFailed),
        ({"ok": False, "code": "exists"}, errors.AlreadyThere),
        ({"progress": [1]}, errors.EngineUnavailable), ({"go": 1}, errors.EngineFailed),
        (None, errors.EngineUnavailable),
    ],
)  # fmt: skip
def test_no_first_word(said: dict[str, Any] | None, kind: type[errors.SvcError]) -> None:
    speak = (lambda reply, stream: None) if said is None else (lambda reply, stream: send(reply, said))
    with answering(with_stream(speak)) as client, reading(client) as transfer, pytest.raises(kind):
        transfer.receive(WAIT_S)


def test_a_silent_agent() -> None:
    with answering(with_stream(lambda reply, stream: waits(reply))) as client:
        with reading(client) as transfer, pytest.raises(errors.EngineTimeout):
            transfer.receive(0.1)
        with reading(client) as transfer:
            assert transfer.wait({transfer.stream.fileno(): select.POLLIN}, 0.05) == set()
            with pytest.raises(errors.EngineTimeout):
                transfer.end(0.1)


def test_who_hangs_up_ends_it() -> None:
    one, other = socket.socketpair()
    watched = {"hangup_fds": (one.fileno(),)}
    silent = with_stream(lambda reply, stream: waits(reply))
    with one, answering(silent) as client, reading(client, **watched) as transfer:
        assert transfer.wait({one.fileno(): select.POLLOUT}, WAIT_S) == {one.fileno()}
        other.close()
        with pytest.raises(errors.Conflict, match="has gone"):
            transfer.wait({one.fileno(): select.POLLOUT}, WAIT_S)


def test_an_agent_that_splices_from_what_never_comes_holds_nobody(splices: bool) -> None:
    """With a pipe both ends share a lock, and this thread would wait for it, deaf to signals."""

    def speak(reply: socket.socket, stream: socket.socket) -> None:
        silent, far = socket.socketpair()
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:  # holds its end as long as it can
            with contextlib.suppress(OSError):
                os.splice(silent.fileno(), stream.fileno(), 65536)
            with contextlib.suppress(OSError):
                os.splice(reader, stream.fileno(), 65536)
            os._exit(0)
        send(reply, FACTS)
        waits(reply)
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        for end in (silent, far):
            end.close()
        os.close(reader)
        os.close(writer)

    began = time.monotonic()
    with answering(with_stream(speak)) as client, reading(client) as transfer:
        transfer.receive(WAIT_S)
        assert transfer.stream.receive(10) is None
        transfer.stream.send(memoryview(b"x"))
    assert time.monotonic() - began < WAIT_S


def lingering() -> tuple[socket.socket, list[socket.socket]]:
    """A connection whose close waits for its far end, which never reads; and what keeps it so."""
    listener = socket.create_server(("127.0.0.1", 0))
    sock = socket.create_connection(listener.getsockname())
    far, _ = listener.accept()
    far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 1000))
    sock.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            sock.send(bytes(65536))
    return sock, [listener, far]


@pytest.mark.parametrize("way", ["stream", "reply", "behind nothing"])
def test_a_descriptor_whose_close_waits_holds_nobody(splices: bool, way: str) -> None:
    kept: list[socket.socket] = []

    def speak(reply: socket.socket, stream: socket.socket) -> None:
        sock, held = lingering()
        kept.extend(held)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [sock.fileno()]))]
        send(reply, FACTS)
        if way == "behind nothing":
            reply.sendmsg([b""])
        try:
            (stream if way == "stream" else reply).sendmsg([b"x"], rights)
        except PermissionError:  # refused by the kernel: its close waits here, unless it is told not to
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            sock.setblocking(True)
        sock.close()  # else the last reference is on its way
        ready.set()
        waits(reply)

    for taken in (False, True):
        ready = threading.Event()
        began = time.monotonic()
        with answering(with_stream(speak)) as client:
            with reading(client) as transfer:
                transfer.receive(WAIT_S)
                assert ready.wait(WAIT_S)
                if taken and way == "stream" and not splices:
                    with pytest.raises(errors.EngineFailed, match="descriptors"):
                        transfer.stream.receive(10)
            assert time.monotonic() - began < WAIT_S
            for end in kept:
                end.close()  # which lets the close go on
            kept.clear()
            assert is_closed(client)


def lingering_messages(sock: socket.socket, kept: list[socket.socket], count: int, before: int) -> None:
    """Send so many messages, each with copies of a pipe and, behind them, the last of a lingering one."""
    reader, writer = os.pipe()
    for _ in range(count):
        one, held = lingering()
        kept.extend(held)
        fds = array.array("i", [*[reader] * before, one.fileno()])
        sock.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
        one.setblocking(True)
        one.close()
    os.close(reader)
    os.close(writer)


def is_closed(client: Helper) -> bool:
    """Whether nothing that an agent sent is being closed any more."""
    until = time.monotonic() + WAIT_S
    while client.closing["demo"] and time.monotonic() < until:
        time.sleep(0.02)
    return not client.closing["demo"]


@pytest.mark.parametrize("way", ["stream", "reply"])
def test_very_many_descriptors_that_nobody_takes_stay_where_they_are(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "SO_PASSRIGHTS", 9999)
    kept: list[socket.socket] = []
    ready = threading.Event()

    def speak(reply: socket.socket, stream: socket.socket) -> None:
        send(reply, FACTS)
        lingering_messages(stream if way == "stream" else reply, kept, 20, 50)
        ready.set()
        waits(reply)

    with answering(with_stream(speak)) as client:
        with reading(client) as transfer:
            transfer.receive(WAIT_S)
            assert ready.wait(WAIT_S)
            before = len(os.listdir("/proc/self/fd"))
        assert client.closing["demo"] == 1, "one thread, which closes the socket with all of them"
        assert len(os.listdir("/proc/self/fd")) <= before + 1
        for end in kept:
            end.close()
        assert is_closed(client)


def test_more_descriptors_than_belong_hold_nobody() -> None:
    """The kernel closes what a message has no room for in the thread that takes it."""
    kept: list[socket.socket] = []
    ended = threading.Event()

    def speak(reply: socket.socket, stream: socket.socket) -> None:
        lingering_messages(reply, kept, 1, 60)
        waits(reply)

    with answering(with_stream(speak)) as client:

        def ask() -> None:
            with contextlib.suppress(errors.EngineFailed), reading(client) as transfer:
                transfer.receive(WAIT_S)
            ended.set()

        asking = threading.Thread(target=ask)
        asking.start()
        was_free = ended.wait(WAIT_S / 3)
        for end in kept:
            end.close()
        asking.join()
        assert was_free
        assert is_closed(client)


def test_an_agent_that_does_not_take_its_streams_has_soon_no_more() -> None:
    """They are in flight on svc's own account; with as many as RLIMIT_NOFILE nobody's calls are sent."""
    kept: list[socket.socket] = []

    def behave(reply: socket.socket, _frame: Frame) -> None:
        kept.append(reply.dup())
        send(reply, {"ok": False, "code": "conflict"})

    with answering(behave) as client:

        def ask() -> None:
            with reading(client) as transfer:
                transfer.receive(WAIT_S)

        for _ in range(CALLS_PER_USER_MAX):
            with pytest.raises(errors.Conflict):
                ask()
        with pytest.raises(errors.TooManyRequests):
            ask()
        assert len(kept) == CALLS_PER_USER_MAX
        for end in kept:
            end.close()
        with pytest.raises(errors.Conflict):
            ask()
        kept[-1].close()
        until = time.monotonic() + 5  # the agent's thread closes its own copy after it has replied
        while client.unread and time.monotonic() < until:
            client._forget_read()
        assert not client.unread


def test_four_at_once() -> None:
    with answering(lambda reply, frame: None) as client:
        client.transfers["demo"] = TRANSFERS_PER_USER
        with pytest.raises(errors.TooManyRequests), reading(client):
            pass
        assert client.transfers["demo"] == TRANSFERS_PER_USER


def test_a_stream_that_is_full_and_one_that_is_closed() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stream = DataStream(ours, lambda fds: None)
        while stream.send(memoryview(bytes(65536))):
            pass
        assert stream.send(memoryview(b"x")) == 0
        theirs.close()
        with pytest.raises(BrokenPipeError):
            stream.send(memoryview(b"x"))
        assert stream.receive(10) == b""  # a connection that was reset has nothing more
        stream.finish()


def test_no_descriptor_is_left(tmp_path: Path) -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    with answering(with_stream(lambda reply, stream: send(reply, FACTS))) as client:
        for _ in range(3):
            before = count()
            with reading(client) as transfer:
                transfer.receive(WAIT_S)
            until = time.monotonic() + WAIT_S
            while count() > before and time.monotonic() < until:
                time.sleep(0.02)
            assert count() <= before
