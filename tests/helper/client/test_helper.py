"""The app's client: whatever comes back, one of svc's errors, in time, and nothing kept."""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc import errors
from svc.helper import helper, replies
from svc.helper.helper import Helper
from svc.helper.replies import ERRORS
from svc_helper.wire.limits import CALLS_PER_USER_MAX
from svc_helper.wire.protocol import MEMFD_MAX, SEALS, Frame, receive, send, send_reply

WS = {"id": "ws-0abc9xyz"}
Behaviour = Callable[[socket.socket, Frame], None]


@contextmanager
def answering(behaviour: Behaviour, pair_name: str = "worker") -> Iterator[Helper]:
    """A client whose far end is this test."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def serve() -> None:
        while True:
            try:
                frame = receive(theirs)
            except EOFError:
                return
            with socket.socket(fileno=frame.fds[0]) as reply:
                behaviour(reply, frame)
            for fd in frame.fds[1:]:
                os.close(fd)

    thread = threading.Thread(target=serve)
    thread.start()
    with theirs:
        with ours:
            yield Helper(ours, pair_name)
        thread.join()


def raw(data: bytes, fds: list[int] | None = None) -> Behaviour:
    """Answer with these bytes and descriptors."""

    def behave(reply: socket.socket, _frame: Frame) -> None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        reply.sendmsg([data], rights)

    return behave


def says(message: dict[str, Any]) -> Behaviour:
    """Answer with this message."""
    return lambda reply, _frame: send(reply, message)


def test_data_comes_back() -> None:
    asked: list[Frame] = []

    def behave(reply: socket.socket, frame: Frame) -> None:
        asked.append(frame)
        send(reply, {"ok": True, "data": {"a": 1}})

    with answering(behave) as client:
        assert client.call("ctr.start", "demo", WS, rid="r-1", timeout_s=7) == {"a": 1}
        client.call("ctr.start", "demo", WS, rid="r-2", timeout_s=10_000)
    assert asked[0].message == {"verb": "ctr.start", "user": "demo", "rid": "r-1", "timeout_s": 7, "args": WS}
    assert asked[1].message["timeout_s"] == 60  # the verb's own most
    assert [len(frame.fds) for frame in asked] == [1, 1]


@pytest.mark.parametrize(("pair_name", "sent"), [("unix", 2), ("tls", 1), ("worker", 1)])
def test_the_peer_is_shown_on_the_unix_pair_only(pair_name: str, sent: int) -> None:
    counts: list[int] = []

    def behave(reply: socket.socket, frame: Frame) -> None:
        counts.append(len(frame.fds))
        send(reply, {"ok": True, "data": {}})

    one, other = socket.socketpair()
    with one, other, answering(behave, pair_name) as client:
        client.call("ctr.start", "demo", WS, rid="r", peer=one)
        client.call("helper.ping", None, {}, rid="r", peer=one)
    assert counts == [sent, 1]


def test_a_file_goes_to_the_agent_alone(tmp_path: Path) -> None:
    """On the reply path, before the call; opened anew: for reading only, from its beginning."""
    seen: list[tuple[dict[str, Any], bytes, int]] = []

    def behave(reply: socket.socket, frame: Frame) -> None:
        assert len(frame.fds) == 1
        given = receive(reply, wait=False)
        (fd,) = given.fds
        seen.append((given.message, os.read(fd, 100), fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE))
        os.close(fd)
        send(reply, {"ok": True, "data": {}})

    unnamed = os.open(tmp_path, os.O_TMPFILE | os.O_RDWR, 0o600)
    try:
        os.write(unnamed, b"sources")
        with answering(behave) as client:
            client.call("image.build", "demo", {}, rid="r", input_fd=unnamed)
    finally:
        os.close(unnamed)
    assert seen == [({"input": True}, b"sources", os.O_RDONLY)]


@pytest.mark.parametrize(
    ("last", "error"),
    [
        ({"ok": False, "code": "account", "message": ""}, errors.AccountDisabled),
        ({"ok": False, "code": "build", "message": "step 2 of 3 (RUN x) failed: exit 1"}, errors.BuildFailed),
        (None, errors.EngineUnavailable),
    ],
)
def test_an_answer_beside_a_file_that_nobody_took(
    tmp_path: Path, last: dict[str, Any] | None, error: type[errors.SvcError]
) -> None:
    """A path that is closed with something unread in it says so first; the last message is not lost."""

    def behave(reply: socket.socket, _frame: Frame) -> None:
        if last is not None:
            send(reply, last)

    with (tmp_path / "sources").open("w+b") as file, answering(behave) as client, pytest.raises(error):
        client.call("image.build", "demo", {}, rid="r", input_fd=file.fileno())


def test_a_file_that_cannot_be_handed_over() -> None:
    with answering(says({"ok": True, "data": {}})) as client, pytest.raises(errors.EngineUnavailable):
        client.call("image.build", "demo", {}, rid="r", input_fd=9999)


@pytest.mark.parametrize("code", ERRORS)
def test_a_code_becomes_an_error(code: str) -> None:
    answer = says({"ok": False, "code": code, "message": "why\x1b[2J" + "x" * 5000})
    with answering(answer) as client, pytest.raises(ERRORS[code][0]) as caught:
        client.call("ctr.start", "demo", WS, rid="r")
    assert caught.value.message.isprintable()
    assert len(caught.value.message) <= replies.MESSAGE_TEXT_MAX
    assert (caught.value.retry_after_s is not None) is (code == "unavailable")


def test_a_refusal_of_an_administrators_verb() -> None:
    refusal = says({"ok": False, "code": "refused", "message": "uid 1001 may not do this"})
    with answering(refusal, "unix") as client, pytest.raises(errors.AdminOnly):
        client.call("account.mark", "demo", {"administrator": True}, rid="r")


@pytest.mark.parametrize("verb", ["account.ensure", "account.mark", "account.forget"])
def test_root_reads_the_helpers_own_words(verb: str) -> None:
    refusal = says({"ok": False, "code": "refused", "message": "daemon is a system account"})
    with (
        answering(refusal, "admin") as client,
        pytest.raises(errors.HostRefused, match=r"^daemon is a system"),
    ):
        client.call(verb, "daemon", {}, rid="r")


@pytest.mark.parametrize(("pair_name", "code", "error"), [
    ("unix", "refused", errors.AccountIncomplete),
    ("tls",  "refused", errors.AccountIncomplete),
    ("tls",  "account", errors.AccountDisabled),
])  # fmt: skip
def test_an_account_that_may_not_be_used(pair_name: str, code: str, error: type[errors.SvcError]) -> None:
    refusal = says({"ok": False, "code": code, "message": "uid 1001 may not do this"})
    with answering(refusal, pair_name) as client, pytest.raises(error) as caught:
        client.call("account.check", "demo", {}, rid="r")
    assert "1001" not in caught.value.message


# fmt: off
STRANGE = {
    "no JSON":        b"yes",
    "bad UTF-8":      b'{"ok":true,"data":{"a":"\xff"}}',
    "65537 bytes":    b'{"ok":true,"data":{"a":"' + b"x" * 65_600 + b'"}}',
    "no data":        b'{"ok":true}',
    "data a list":    b'{"ok":true,"data":[]}',
    "ok a number":    b'{"ok":1,"data":{}}',
    "ok a text":      b'{"ok":"true","data":{}}',
    "no code":        b'{"ok":false}',
    "unknown code":   b'{"ok":false,"code":"sudo","message":"x"}',
    "code a list":    b'{"ok":false,"code":["failed"],"message":"x"}',
    "nothing":        b"{}",
    "too deep":       b'{"ok":true,"data":' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}",
    "a memfd's size": b'{"memfd":10}',
    "memfd a text":   b'{"memfd":"10"}',
    "memfd negative": b'{"memfd":-1}',
    "memfd of 1 TB":  b'{"memfd":1099511627776}',
    "a code, ok":     b'{"ok":true,"code":"failed"}',
}
# fmt: on


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("fds", [0, 1, 3])
def test_strange_answers(name: str, fds: int) -> None:
    with open(os.devnull) as null, answering(raw(STRANGE[name], [null.fileno()] * fds)) as client:
        with pytest.raises(errors.EngineFailed):
            client.call("ctr.start", "demo", WS, rid="r")
        with pytest.raises(errors.EngineFailed):
            client.call_fd("ctr.watch", "demo", WS, rid="r")


def test_an_answer_without_words() -> None:
    for message in (None, 5, "", "\n\n", ["x"]):
        answer = says({"ok": False, "code": "failed", "message": message})
        with answering(answer) as client, pytest.raises(errors.EngineFailed, match="no reason was given"):
            client.call("ctr.start", "demo", WS, rid="r")


def test_descriptors_that_nobody_asked_for_are_closed() -> None:
    with open(os.devnull) as null:
        with answering(raw(b'{"ok":true,"data":{}}', [null.fileno()] * 4)) as client:
            assert client.call("ctr.start", "demo", WS, rid="r") == {}
        five = raw(b'{"ok":true,"data":{}}', [null.fileno()] * 5)
        with answering(five) as client, pytest.raises(errors.EngineFailed):
            client.call("ctr.start", "demo", WS, rid="r")


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_watch_that_brings_no_pidfd(count: int) -> None:
    with open(os.devnull) as null:
        answer = raw(b'{"ok":true,"data":{}}', [null.fileno()] * count)
        with (
            answering(answer) as client,
            pytest.raises(errors.EngineFailed, match="did not return its descriptor"),
        ):
            client.call_fd("ctr.watch", "demo", WS, rid="r")


def test_a_watch_that_brings_a_pidfd() -> None:
    pidfd = os.pidfd_open(os.getpid())
    with answering(raw(b'{"ok":true,"data":{"pid":1}}', [pidfd])) as client:
        data, got = client.call_fd("ctr.watch", "demo", WS, rid="r")
    assert data == {"pid": 1}
    assert not os.get_inheritable(got)
    os.close(got)
    os.close(pidfd)


def memfd(content: bytes, seals: int) -> int:
    """A memfd with some seals."""
    fd = os.memfd_create("x", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, content)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


ANSWER = b'{"ok":true,"data":{"long":true}}'


@pytest.mark.parametrize(("content", "seals", "said", "good"), [
    (ANSWER, SEALS,                                      len(ANSWER),     True),
    (ANSWER, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW,    len(ANSWER),     False),
    (ANSWER, fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW,     len(ANSWER),     False),
    (ANSWER, 0,                                          len(ANSWER),     False),
    (ANSWER, SEALS,                                      len(ANSWER) - 1, False),
    (ANSWER, SEALS,                                      len(ANSWER) + 1, False),
    (ANSWER, SEALS,                                      MEMFD_MAX + 1,   False),
    (b"",    SEALS,                                      0,               False),
    (b"[]",  SEALS,                                      2,               False),
])  # fmt: skip
def test_memfds(content: bytes, seals: int, said: int, good: bool) -> None:
    fd = memfd(content, seals)
    with answering(raw(json.dumps({"memfd": said}).encode(), [fd])) as client:
        if good:
            assert client.call("ctr.start", "demo", WS, rid="r") == {"long": True}
        else:
            with pytest.raises(errors.EngineFailed):
                client.call("ctr.start", "demo", WS, rid="r")
    os.close(fd)


@pytest.mark.parametrize("kind", ["file", "pipe", "socket", "directory"])
def test_a_memfd_that_is_none(kind: str) -> None:
    read, write = os.pipe()
    one, other = socket.socketpair()
    with one, other, open("/etc/passwd") as file:
        directory = os.open("/etc", os.O_RDONLY)
        fd = {"file": file.fileno(), "pipe": read, "socket": one.fileno(), "directory": directory}[kind]
        with answering(raw(b'{"memfd":100}', [fd])) as client, pytest.raises(errors.EngineFailed):
            client.call("ctr.start", "demo", WS, rid="r")
    for fd in (read, write, directory):
        os.close(fd)


def test_a_long_answer() -> None:
    def behave(reply: socket.socket, _frame: Frame) -> None:
        send_reply(reply, {"ok": True, "data": {"text": "\u00e9" * 1_000_000}})

    with answering(behave) as client:
        assert client.call("ctr.start", "demo", WS, rid="r")["text"] == "\u00e9" * 1_000_000


def test_no_answer_at_all() -> None:
    with answering(lambda reply, frame: None) as client, pytest.raises(errors.EngineUnavailable):
        client.call("ctr.start", "demo", WS, rid="r")


def test_an_answer_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper, "CHECK_S", 0.1)
    monkeypatch.setattr(helper, "GRACE_S", 0.1)
    started = time.monotonic()
    with answering(lambda reply, frame: time.sleep(1.6)) as client, pytest.raises(errors.EngineTimeout):
        client.call("ctr.start", "demo", WS, rid="r", timeout_s=1)
    assert time.monotonic() - started < 2.5


def test_a_stream_of_progress_does_not_prolong_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper, "CHECK_S", 0)
    monkeypatch.setattr(helper, "GRACE_S", 0)
    seen: list[Any] = []

    def behave(reply: socket.socket, _frame: Frame) -> None:
        with pytest.raises(OSError):  # until the caller has gone
            while True:
                send(reply, {"progress": {"current": 1}})

    with answering(behave) as client, pytest.raises(errors.EngineTimeout):
        client.call("ctr.start", "demo", WS, rid="r", timeout_s=1, on_progress=seen.append)
    assert 0 < len(seen) <= 3 * replies.PROGRESS_MAX


def test_progress_that_takes_long_to_read_is_read_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python reads for one thread at a time: an agent's words must not take the pair's whole processor."""
    monkeypatch.setattr(helper, "CHECK_S", 0)
    monkeypatch.setattr(helper, "GRACE_S", 0)
    monkeypatch.setattr(replies, "PROGRESS_PACE", 10**9)
    seen: list[Any] = []

    def behave(reply: socket.socket, _frame: Frame) -> None:
        with pytest.raises(OSError):
            while True:
                send(reply, {"progress": {"many": [{}] * 1000}})

    with answering(behave) as client, pytest.raises(errors.EngineTimeout):
        client.call("ctr.start", "demo", WS, rid="r", timeout_s=1, on_progress=seen.append)
    assert 0 < len(seen) <= 2


def test_nothing_on_the_way_is_a_memfd() -> None:
    """Of these there would be no end, and each may take long to read."""
    seen: list[Any] = []

    def behave(reply: socket.socket, _frame: Frame) -> None:
        with contextlib.suppress(OSError):
            for _ in range(3):
                send_reply(reply, {"progress": {"text": "x" * 100_000}})

    with answering(behave) as client, pytest.raises(errors.EngineFailed):
        client.call("image.pull", "demo", {"image": "a/b"}, rid="r", on_progress=seen.append)
    assert not seen


def test_progress_and_a_strange_progress() -> None:
    seen: list[Any] = []

    def behave(reply: socket.socket, _frame: Frame) -> None:
        for progress in ({"current": 1}, None, 5, [1], {"current": 2}):
            send(reply, {"progress": progress})
        send(reply, {"ok": True, "data": {}})

    with answering(behave) as client:
        client.call("image.pull", "demo", {"image": "a/b"}, rid="r", on_progress=seen.append)
    assert seen == [{"current": 1}, {"current": 2}]


def test_cancelling() -> None:
    received: list[Any] = []

    def behave(reply: socket.socket, _frame: Frame) -> None:
        received.append(receive(reply).message)
        send(reply, {"ok": False, "code": "cancelled", "message": "cancelled"})

    with answering(behave) as client, pytest.raises(errors.Conflict):
        client.call("image.pull", "demo", {"image": "a/b"}, rid="r", cancelled=lambda: True)
    assert received == [{"cancel": True}]


def test_a_client_that_hangs_up_ends_the_call() -> None:
    ended = threading.Event()

    def behave(reply: socket.socket, _frame: Frame) -> None:
        with pytest.raises(EOFError):
            receive(reply)
        ended.set()

    client_end, ours = socket.socketpair()
    with ours, answering(behave) as client:
        threading.Timer(0.1, client_end.close).start()
        with pytest.raises(errors.Conflict):
            client.call("ctr.exec", "demo", WS, rid="r", hangup_fd=ours.fileno())
        assert ended.wait(2)


def test_a_call_too_large_for_one_message() -> None:
    with answering(says({"ok": True, "data": {}})) as client:
        with pytest.raises(errors.TooLarge):
            client.call("ctr.create", "demo", {"env": {"A": "x" * 70_000}}, rid="r")
        with pytest.raises(errors.TooLarge):
            client.call("ctr.create", "demo", {"env": {"A": "\ud800"}}, rid="r")


def test_a_helper_that_takes_nothing() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        client = Helper(ours, "worker")
        with pytest.raises(BlockingIOError):
            while True:
                ours.send(b"x" * 1000, socket.MSG_DONTWAIT)
        with pytest.raises(errors.EngineUnavailable) as caught:
            client.call("ctr.start", "demo", WS, rid="r")
        assert caught.value.retry_after_s
        theirs.close()
        with pytest.raises(errors.EngineUnavailable):
            client.call("ctr.start", "demo", WS, rid="r")


def test_no_more_calls_than_may_be_outstanding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper, "SLOT_WAIT_S", 0.1)
    with answering(says({"ok": True, "data": {}})) as client:
        for _ in range(helper.CALLS_OUTSTANDING_MAX):
            client.slots.acquire()
        with pytest.raises(errors.EngineUnavailable):
            client.call("ctr.start", "demo", WS, rid="r")
        client.slots.release()
        for _ in range(3):  # and each call gives its place back, whatever comes of it
            client.call("ctr.start", "demo", WS, rid="r")


def test_four_transfers_of_a_user_at_once() -> None:
    pidfd = os.pidfd_open(os.getpid())
    with answering(raw(b'{"ok":true,"data":{}}', [pidfd])) as client:
        client.transfers["demo"] = helper.TRANSFERS_PER_USER
        with pytest.raises(errors.TooManyRequests):
            client.call_fd("ctr.watch", "demo", WS, rid="r")
        for _ in range(6):
            os.close(client.call_fd("ctr.watch", "other", WS, rid="r")[1])
        assert "other" not in client.transfers
    os.close(pidfd)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200) | st.sampled_from(sorted(STRANGE.values())), cut=st.integers(0, 60))
def test_any_answer(data: bytes, cut: int) -> None:
    with answering(raw(data[cut:] or b"x")) as client:
        try:
            client.call("ctr.start", "demo", WS, rid="r")
        except errors.SvcError:
            pass


# --- places ----------------------------------------------------------------------------------


@pytest.fixture
def full() -> Iterator[tuple[Helper, threading.Event]]:
    """A client with as many calls of `demo` under way as there may be, and what lets them end."""
    go_on = threading.Event()
    answered = threading.Semaphore(0)

    def behave(reply: socket.socket, frame: Frame) -> None:
        def answer(reply: socket.socket, first: bool) -> None:
            with reply:
                if first:
                    answered.release()
                    go_on.wait(20)
                send(reply, {"ok": True, "data": {"rid": frame.message["rid"]}})

        first = frame.message["rid"] == "first"
        threading.Thread(target=answer, args=(reply.dup(), first)).start()

    with answering(behave) as client:
        threads = [
            threading.Thread(target=lambda: client.call("ctr.start", "demo", WS, rid="first"))
            for _ in range(CALLS_PER_USER_MAX)
        ]
        for thread in threads:
            thread.start()
        for _ in threads:
            assert answered.acquire(timeout=10)
        yield client, go_on
        go_on.set()
        for thread in threads:
            thread.join(10)


def test_a_patient_call_waits_for_a_place(full: tuple[Helper, threading.Event]) -> None:
    """A transition that has begun is not undone by a limit; what has not begun is refused at once."""
    client, go_on = full
    with pytest.raises(errors.TooManyRequests):
        client.call("ctr.start", "demo", WS, rid="r")
    assert client.call("ctr.start", "others", WS, rid="r") == {"rid": "r"}
    replies: list[dict[str, Any]] = []
    waiting = threading.Thread(
        target=lambda: replies.append(client.call("ctr.start", "demo", WS, rid="r", patient=True))
    )
    waiting.start()
    until = time.monotonic() + 10
    while not client.patient["demo"] and time.monotonic() < until:
        time.sleep(0.001)
    go_on.set()
    waiting.join(10)
    assert replies == [{"rid": "r"}]
    assert not client.patient


def test_patience_has_an_end(full: tuple[Helper, threading.Event], monkeypatch: pytest.MonkeyPatch) -> None:
    client, _ = full
    monkeypatch.setattr(helper, "PATIENCE_S", 0.05)
    with pytest.raises(errors.TooManyRequests):
        client.call("ctr.start", "demo", WS, rid="r", patient=True)
    assert not client.patient
