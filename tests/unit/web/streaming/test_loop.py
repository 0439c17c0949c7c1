"""The thread of all streams: timers, other people's mistakes, the end of the process."""

from __future__ import annotations

import pytest
from unit.streaming import CALLER, Recorder, start, until

from svc.web.gunicorn_worker import shutdown
from svc.web.streaming import loop as loops
from svc.web.streaming.sse import EventStream


def test_timers(loop: loops.Loop) -> None:
    stream = Recorder(loop)
    client, over = start(stream)

    def begin() -> None:
        stream.later(0.02, lambda: stream.note("second"))
        stream.later(0.01, lambda: stream.note("first"))
        stream.later(0.01, lambda: stream.note("cancelled")).cancel()
        stream.later(3600, lambda: stream.note("never"))

    stream.post(begin)
    until(lambda: "second" in stream.seen)
    assert stream.seen == ["opened", "first", "second"]
    client.close()
    assert over.wait(20)


def test_timers_of_ended_streams_are_pruned(loop: loops.Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 streams that come and go leave no 10,000 timers until these would be due."""
    monkeypatch.setattr(loops, "TIMERS_KEPT", 10)
    loop.prune_at = 10
    fired: list[str] = []
    live = loop.later(3600, lambda: fired.append("late"))
    for number in range(1000):
        loop.later(60 + number % 7, lambda: fired.append("ended")).cancel()
    assert len(loop.timers) <= 20
    assert any(timer is live for _, _, timer in loop.timers)
    kept = [loop.later(60, lambda: fired.append("ended")) for _ in range(100)]
    assert {id(timer) for _, _, timer in loop.timers} >= {id(timer) for timer in kept}
    assert loop.timers == sorted(loop.timers) or loop.timers[0] == min(loop.timers)
    assert not fired


def test_an_ended_stream_has_no_timer(loop: loops.Loop) -> None:
    """One whose client has gone while it began: a timer would hold it, with its request, until it is due."""
    stream = Recorder(loop)
    client, over = start(stream)
    client.close()
    assert over.wait(20)
    before = len(loop.timers)
    timer = stream.later(60, lambda: stream.note("late"))
    timer.cancel()
    assert (len(loop.timers), stream.timers) == (before, set())


def test_an_error_in_one_stream_is_its_own(loop: loops.Loop, capsys: pytest.CaptureFixture[str]) -> None:
    class Faulty(Recorder):
        def received(self, data: bytes) -> None:
            raise RuntimeError("a mistake")

    other, faulty = Recorder(loop), Faulty(loop)
    client, over = start(other)
    bad, bad_over = start(faulty)
    bad.sendall(b"x")
    assert bad_over.wait(20)
    client.sendall(b"still here")
    until(lambda: b"still here" in other.seen)
    client.close()
    assert over.wait(20)
    assert "a mistake" in capsys.readouterr().err
    bad.close()


def test_the_services_stop_is_an_event(default_loop: loops.Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    shutdown.prepare()
    try:
        monkeypatch.setattr(loops, "STREAM_STOP_S", 0.2)
        client, over = start(EventStream(CALLER, lambda: None, "req-1"), head=b"")
        silent, silent_over = start(Recorder(default_loop), head=b"")
        until(lambda: len(default_loop.streams) == 2)
        shutdown.begin()
        received = b""
        while part := client.recv(4096):
            received += part
        assert received.startswith(b"retry: ")
        assert received.endswith(b"event: restarting\ndata: {}\n\n")
        assert over.wait(20)
        assert silent_over.wait(20)  # though its client reads nothing and stays
        late, late_over = start(EventStream(CALLER, lambda: None, "req-2"), head=b"")
        assert b"restarting" in late.recv(4096)
        late.close()
        assert late_over.wait(20)
        client.close()
        silent.close()
    finally:
        default_loop.close()
        for end in shutdown._pair or ():
            end.close()
        shutdown._pair = None
