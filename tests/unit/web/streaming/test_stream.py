"""A connection on the loop: bounded output, slow readers, other descriptors, the end."""

from __future__ import annotations

import os
import selectors
import threading
import time

import pytest
from unit.streaming import CALLER, Recorder, start, until

from svc import limits
from svc.errors import AccountDisabled, EngineUnavailable
from svc.web.streaming import loop as loops
from svc.web.streaming import stream as streams
from svc.web.streaming.stream import Stream


def test_bytes_go_both_ways_in_one_thread(loop: loops.Loop) -> None:
    stream = Recorder(loop)
    client, over = start(stream, early=b"early")
    assert client.recv(4) == b"HEAD"
    client.sendall(b"later")
    until(lambda: b"later" in stream.seen)
    stream.post(lambda: stream.send(b"answer"))
    assert client.recv(6) == b"answer"
    client.close()
    assert over.wait(20)
    assert stream.seen == ["opened", b"early", b"later", "closed"]
    assert stream.in_thread == {"streams"}
    assert not stream.send(b"too late")


def test_output_is_sent_before_the_end(loop: loops.Loop) -> None:
    stream = Recorder(loop)
    client, over = start(stream, head=b"")
    stream.post(lambda: (stream.send(b"x" * 100_000), stream.end(), stream.send(b"never")))
    received = b""
    while part := client.recv(4096):
        received += part
    assert received == b"x" * 100_000
    client.close()
    assert over.wait(20)


def test_a_reader_who_reads_nothing_loses_the_connection(
    loop: loops.Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "STREAM_STALL_S", 0.1)
    stream = Recorder(loop)
    _client, over = start(stream)
    size = 300_000
    stream.output_max = size
    stream.post(lambda: stream.send(b"x" * size))
    assert over.wait(20)
    assert "drained" not in stream.seen


def test_output_is_bounded(loop: loops.Loop) -> None:
    stream = Recorder(loop)
    client, over = start(stream)
    part, sent = b"x" * 50_000, []

    def fill() -> None:
        while stream.send(part):
            sent.append(len(stream.output))

    stream.post(fill)
    assert over.wait(20)
    assert max(sent) <= limits.STREAM_OUTPUT_MAX
    client.close()


def test_a_slow_reader_is_told_when_there_is_room(loop: loops.Loop) -> None:
    stream = Recorder(loop)
    client, over = start(stream, head=b"")
    size = 400_000
    stream.output_max = size
    stream.post(lambda: stream.send(b"x" * size))
    until(lambda: "opened" in stream.seen and stream.output)
    received = 0
    while received < size:
        received += len(client.recv(65536))
    until(lambda: "drained" in stream.seen)
    client.close()
    assert over.wait(20)


def test_another_descriptor_in_the_same_loop(loop: loops.Loop) -> None:
    stream = Recorder(loop)
    client, over = start(stream)
    reader, writer = os.pipe()
    stream.post(
        lambda: stream.watch(reader, selectors.EVENT_READ, lambda _events: stream.note(os.read(reader, 10)))
    )
    os.write(writer, b"one")
    until(lambda: b"one" in stream.seen)
    client.close()
    assert over.wait(20)
    os.write(writer, b"two")
    stream.loop.in_background(lambda: None, lambda _: stream.seen.append("after"))
    until(lambda: "after" in stream.seen)
    assert b"two" not in stream.seen
    os.close(reader)
    os.close(writer)


def test_a_paused_stream_receives_nothing(loop: loops.Loop) -> None:
    stream = Recorder(loop)
    client, over = start(stream)
    stream.post(stream.pause)
    stream.post(lambda: stream.note("paused"))
    until(lambda: "paused" in stream.seen)
    client.sendall(b"wait")
    stream.loop.in_background(lambda: None, lambda _: (stream.note("resumed"), stream.resume()))
    until(lambda: b"wait" in stream.seen)
    assert stream.seen.index("resumed") < stream.seen.index(b"wait")
    client.close()
    assert over.wait(20)


def test_access_is_checked_again(loop: loops.Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "ACCESS_RECHECK_S", 0.01)
    errors = [None, EngineUnavailable("restarting"), None, AccountDisabled("disabled")]
    asked = []

    def require() -> None:
        asked.append(threading.current_thread().name)
        if error := errors[min(len(asked), len(errors)) - 1]:
            raise error

    stream = Recorder(loop, require)
    client, over = start(stream, head=b"")
    assert client.recv(10) == b""
    client.close()
    assert over.wait(20)
    assert stream.seen == ["opened", "account_disabled", "closed"]
    assert len(asked) == len(errors)
    assert set(asked) == {"streams-background"}


def test_silence_has_a_sign_of_life(loop: loops.Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT_S", 0.05)
    stream = Recorder(loop)
    client, over = start(stream)
    until(lambda: stream.seen.count("heartbeat") > 1)
    client.close()
    assert over.wait(20)


def test_who_has_nothing_to_say_may_not_go_on(loop: loops.Loop) -> None:
    stream = Stream(CALLER, lambda: None, loop)
    client, over = start(stream)
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        while True:
            client.sendall(b"x" * 65536)
    assert over.wait(20)
    client.close()


class Busy(Recorder):
    """Uses the loop for a while with all that it gets."""

    def received(self, data: bytes) -> None:
        until = time.thread_time() + 0.02
        while time.thread_time() < until:
            pass
        self.note(time.monotonic())


def test_who_uses_much_of_the_loop_rests(loop: loops.Loop) -> None:
    """All streams of a user have one budget, and each goes on after its rest."""
    flooding = [Busy(loop) for _ in range(3)]
    clients = [start(stream, head=b"") for stream in flooding]
    for turns in (1, 2, 3):
        for client, _ in clients:
            client.sendall(b"x")
        until(lambda turns=turns: all(len(stream.seen) > turns for stream in flooding))
    times = sorted(at for stream in flooding for at in stream.seen if isinstance(at, float))
    assert len(times) == 9
    assert times[3] - times[0] > streams.PACE * 0.02  # what the first has used
    assert times[8] - times[0] > 5 * streams.PACE * 0.02  # what all of them have, not each by itself
    for client, over in clients:
        client.close()
        assert over.wait(20)


def test_a_rest_ends_nothing(loop: loops.Loop) -> None:
    """Output goes on, a stop is told, other descriptors are watched again."""
    stream = Busy(loop)
    client, over = start(stream, head=b"")
    read, write = os.pipe()
    stream.post(lambda: stream.watch(read, selectors.EVENT_READ, lambda _: stream.note(os.read(read, 9))))
    client.sendall(b"x")
    until(lambda: stream.is_resting)
    os.write(write, b"told")
    stream.post(lambda: stream.send(b"meanwhile"))
    assert client.recv(9) == b"meanwhile"
    until(lambda: b"told" in stream.seen)
    client.sendall(b"x")
    until(lambda: stream.is_resting)
    stream.post(stream.stop)
    assert client.recv(1) == b""
    client.close()
    assert over.wait(20)
    os.close(read)
    os.close(write)
