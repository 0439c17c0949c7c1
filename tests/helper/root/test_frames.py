"""What nobody should send: the helper refuses it, says so loudly, keeps nothing and lives on."""

from __future__ import annotations

import array
import os
import random
import socket
import struct
import time
from typing import Any

import pytest
from helper.stage import WS, Stage, call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc_helper.wire.protocol import MESSAGE_MAX, VERBS, ProtocolError, encode

GOOD = encode(call("ctr.inspect", "tsh-ada", WS))
QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def send_raw(stage: Stage, pair_name: str, data: bytes, fds: list[int], credentials: bytes = b"") -> None:
    """One frame, whatever it is."""
    ancillary: list[tuple[int, int, Any]] = []
    if fds:
        ancillary.append((socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds)))
    if credentials:
        ancillary.append((socket.SOL_SOCKET, socket.SCM_CREDENTIALS, credentials))
    stage.pairs[pair_name].sendmsg([data], ancillary)


# fmt: off
FRAMES = {
    "empty":            b"",
    "65537 bytes":      GOOD[:-1] + b" " * (MESSAGE_MAX + 1 - len(GOOD)) + b"}",
    "bad UTF-8":        GOOD.replace(b"r-1", b"r\xff1"),
    "overlong UTF-8":   GOOD.replace(b"r-1", b"r\xc0\xb11"),
    "UTF-16":           GOOD.decode().encode("utf-16"),
    "no JSON":          b"ctr.inspect tsh-ada",
    "two objects":      GOOD + GOOD,
    "a list":           b"[" + GOOD + b"]",
    "a string":         b'"ctr.inspect"',
    "null":             b"null",
    "NUL behind":       GOOD + b"\0",
    "a key twice":      GOOD[:-1] + b',"verb":"ctr.start"}',
    "NaN":              GOOD.replace(b'"timeout_s":5', b'"timeout_s":NaN'),
    "too large":        GOOD.replace(b'"timeout_s":5', b'"timeout_s":1e999'),
    "a long number":    GOOD.replace(b'"timeout_s":5', b'"timeout_s":' + b"9" * 5000),
    "a lone surrogate": GOOD.replace(b"r-1", b"\\ud800"),
    "too deep":         b'{"verb":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    "unclosed":         b"[" * 60_000,
    "a long string":    b'{"' + b'\\"' * 30_000,
}
CALLS = {
    "unknown verb":     call("ctr.explode", "tsh-ada", WS),
    "verb of a class":  call("__class__", "tsh-ada", WS),
    "verb no text":     call(None, "tsh-ada", WS),  # type: ignore[arg-type]
    "another pair's":        call("account.ensure", "tsh-ada", {"administrator": True}),
    "a pair's pull":          call("account.forget", "tsh-ada", {}),
    "no rid":           {k: v for k, v in call("ctr.inspect", "tsh-ada", WS).items() if k != "rid"},
    "one key more":     {**call("ctr.inspect", "tsh-ada", WS), "env": {}},
    "an answer":        {"ok": True, "data": {}},
    "a memfd":          {"memfd": 5},
    "rid with control": call("ctr.inspect", "tsh-ada", WS, rid="r\x1b[2J"),
    "rid too long":     call("ctr.inspect", "tsh-ada", WS, rid="r" * 65),
    "no time":          call("ctr.inspect", "tsh-ada", WS, timeout_s=0),
    "all the time":     call("ctr.inspect", "tsh-ada", WS, timeout_s=16),
    "true seconds":     call("ctr.inspect", "tsh-ada", WS, timeout_s=True),
    "half a second":    call("ctr.inspect", "tsh-ada", WS, timeout_s=0.5),  # type: ignore[arg-type]
}
# fmt: on


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("with_reply", [True, False])
def test_a_frame_that_is_none(shared: Stage, name: str, with_reply: bool) -> None:
    before, count = shared.descriptors(), shared.ping()["violations"]
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other:
        send_raw(shared, "worker", FRAMES[name], [other.fileno()] if with_reply else [])
        assert shared.descriptors() == before
    assert shared.ping()["violations"] == count + 1


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_is_none_is_answered_so(shared: Stage, name: str) -> None:
    before, count = shared.descriptors(), shared.ping()["violations"]
    answer = shared.ask("worker", CALLS[name])
    assert answer is not None
    assert (answer["ok"], answer["code"]) == (False, "protocol")
    assert shared.descriptors() == before
    assert shared.ping()["violations"] == count + 1
    assert [line["level"] for line in shared.log() if line["message"] == "protocol violation"][
        -1
    ] == "critical"


def test_a_call_that_is_longer_for_the_agent_than_it_came(shared: Stage) -> None:
    """The arguments that it leaves out are null in what the agent gets."""
    args: dict[str, Any] = {**WS, "image": "localhost/a", "name": "a", "resources": {}, "mounts": []}
    args["env"] = {f"A{number}": "a" * 4096 for number in range(15)}
    message = call("ctr.create", "tsh-ada", args)
    args["env"]["A"] = ""
    args["env"]["A"] = "a" * (MESSAGE_MAX - len(encode(message)))
    assert len(encode(message)) == MESSAGE_MAX
    before, count = shared.descriptors(), shared.ping()["violations"]
    answer = shared.ask("tls", message, wait_s=20)
    assert answer is not None
    assert (answer["ok"], answer["code"]) == (False, "too_large")
    assert shared.ping()["violations"] == count
    assert shared.process.poll() is None
    assert shared.descriptors() >= before


def test_no_descriptor_at_all(shared: Stage) -> None:
    before = shared.descriptors()
    send_raw(shared, "worker", GOOD, [])
    assert shared.descriptors() == before


@pytest.mark.parametrize("pair_name", ["worker", "unix"])
def test_more_descriptors_than_belong(shared: Stage, pair_name: str) -> None:
    before = shared.descriptors()
    answer = shared.ask(pair_name, call("ctr.inspect", "tsh-ada", WS), 0, 0)
    assert answer is not None
    assert answer["code"] == "protocol"
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other:
        for count in (5, 6, 7, 8, 60, 253):
            send_raw(shared, pair_name, GOOD, [other.fileno()] * count)
            assert shared.descriptors() == before


@pytest.mark.parametrize("kind", ["pipe", "file", "stream pair", "datagram pair", "tcp", "eventfd"])
def test_a_reply_path_of_another_kind(shared: Stage, kind: str) -> None:
    before = shared.descriptors()
    if kind == "pipe":
        fds = list(os.pipe())
    elif kind == "file":
        fds = [os.open("/etc/passwd", os.O_RDONLY)]
    elif kind == "eventfd":
        fds = [os.eventfd(0)]
    elif kind == "tcp":
        fds = [socket.socket(socket.AF_INET, socket.SOCK_STREAM).detach()]
    else:
        what = socket.SOCK_STREAM if kind == "stream pair" else socket.SOCK_DGRAM
        fds = [sock.detach() for sock in socket.socketpair(socket.AF_UNIX, what)]
    send_raw(shared, "worker", GOOD, [fds[-1]])
    assert shared.descriptors() == before
    for fd in fds:
        os.close(fd)


def test_a_listening_reply_path(shared: Stage) -> None:
    before = shared.descriptors()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(shared.directory / "listening"))
        listener.listen()
        send_raw(shared, "worker", GOOD.replace(b"tsh-ada", b"nobody"), [listener.fileno()])
        assert shared.descriptors() == before


def test_the_pair_itself_as_reply_path(shared: Stage) -> None:
    """The helper's answer comes back to it as a message, which is one violation more and no circle."""
    before, count = shared.descriptors(), shared.ping()["violations"]
    send_raw(shared, "worker", GOOD.replace(b"tsh-ada", b"nobody"), [shared.pairs["worker"].fileno()])
    time.sleep(0.2)
    assert shared.descriptors() == before
    assert shared.ping()["violations"] == count + 1


@pytest.mark.parametrize("pair_name", ["unix", "tls", "worker", "admin"])
def test_a_message_of_somebody_else(shared: Stage, uid: dict[str, int], pair_name: str) -> None:
    """Only root can say that it is another; the kernel's word is what the helper goes by."""
    before, count = shared.descriptors(), shared.ping()["violations"]
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one:
        with other:
            frame = encode(call("helper.ping", None, {}))
            forged = struct.pack("3i", os.getpid(), uid["tsh-ada"], 0)
            send_raw(shared, pair_name, frame, [other.fileno()], forged)
        assert shared.descriptors() == before
        assert one.recv(1) == b""  # not even an answer
    assert shared.ping()["violations"] == count + 1


def test_ten_thousand_requests_whose_answers_nobody_reads(shared: Stage) -> None:
    before = shared.descriptors()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    good, bad = GOOD.replace(b"tsh-ada", b"nobody"), GOOD[:-1]
    started = time.monotonic()
    with ours, theirs:
        for number in range(10_000):
            send_raw(shared, "worker", good if number % 2 else bad, [theirs.fileno()])
        assert shared.descriptors() == before
    assert time.monotonic() - started < 30


def test_a_flood_on_one_pair_leaves_the_others_their_turn(shared: Stage) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        for _ in range(150):
            send_raw(shared, "tls", GOOD[:-1], [theirs.fileno()])
        started = time.monotonic()
        assert shared.ask("worker", call("ctr.inspect", "tsh-ada", WS)) is not None
        assert time.monotonic() - started < 1


@QUICK
@given(data=st.binary(max_size=300))
def test_any_bytes(shared: Stage, data: bytes) -> None:
    send_raw(shared, "worker", data, [])
    shared.ping()


@QUICK
@given(seed=st.integers(0, 2**32), cuts=st.integers(1, 6))
def test_any_damage_to_a_good_frame(shared: Stage, seed: int, cuts: int) -> None:
    dice = random.Random(seed)
    frame = bytearray(GOOD)
    for _ in range(cuts):
        frame[dice.randrange(len(frame))] = dice.randrange(256)
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other:
        send_raw(shared, dice.choice(["worker", "tls", "unix", "admin"]), bytes(frame), [other.fileno()])
    shared.ping()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@QUICK
@given(verb=st.sampled_from(sorted(VERBS)), user=json_values, args=json_values, timeout_s=json_values)
def test_any_members_of_a_call(shared: Stage, verb: str, user: Any, args: Any, timeout_s: Any) -> None:
    try:
        message = call(verb, user, args, timeout_s=timeout_s)
        encode(message)
    except ProtocolError:
        return
    for pair_name in ("worker", "unix"):
        answer = shared.ask(pair_name, message)
        assert answer is not None
        assert answer["ok"] is False or verb == "helper.ping"


def test_the_helper_logs_no_control_character(shared: Stage) -> None:
    shared.ask("worker", call("\x1b[2J\n{}", "\u202e\x9b", WS))
    text = (shared.directory / "helper.log").read_bytes()
    assert all(byte >= 0x20 or byte == 0x0A for byte in text)
    assert all(byte < 0x7F for byte in text)
