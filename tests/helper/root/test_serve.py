"""A call's way through the helper: to the right agent, with the right rights, also past a helper's death."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from helper.stage import WS, Stage, call

from svc import errors
from svc_helper.wire.protocol import send


def test_a_call_reaches_the_users_own_agent(stage: Stage, uid: dict[str, int]) -> None:
    data = stage.client("worker").call("ctr.inspect", "tsh-ada", WS, rid="r-7", timeout_s=3)
    assert data["message"] == {"verb": "ctr.inspect", "args": WS, "rid": "r-7", "timeout_s": 3}
    assert data["fds"] == 1  # the reply path alone
    other = stage.client("tls").call("ctr.inspect", "tsh-ben", WS, rid="r-8")
    assert os.stat(f"/proc/{data['pid']}").st_uid == uid["tsh-ada"]
    assert os.stat(f"/proc/{other['pid']}").st_uid == uid["tsh-ben"]


def test_a_stopped_agent_does_not_stop_the_helper(stage: Stage) -> None:
    helper = stage.client("worker")
    pid = helper.call("ctr.inspect", "tsh-ada", WS, rid="r")["pid"]
    os.kill(pid, signal.SIGSTOP)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        for _ in range(2000):  # far beyond what the channel holds
            send(stage.pairs["worker"], call("ctr.inspect", "tsh-ada", WS), [theirs.fileno()])
        assert helper.call("ctr.inspect", "tsh-ben", WS, rid="r")["pid"] != pid
        with pytest.raises(errors.EngineUnavailable):
            helper.call("ctr.inspect", "tsh-ada", WS, rid="r")
        os.kill(pid, signal.SIGKILL)


def test_a_killed_helper_costs_nothing_but_what_it_held(stage: Stage) -> None:
    helper = stage.client("worker")
    helper.call("ctr.inspect", "tsh-ada", WS, rid="r")
    with ThreadPoolExecutor(8) as pool:
        held = pool.submit(helper.call, "ctr.inspect", "tsh-ada", {"id": "ws-hold0000"}, rid="held")
        time.sleep(0.3)
        stage.process.kill()
        stage.process.wait()
        queued = [pool.submit(helper.call, "ctr.inspect", "tsh-ben", WS, rid="queued") for _ in range(5)]
        time.sleep(0.2)
        stage.start()
        assert held.result(5)["message"]["rid"] == "held"  # "calls already with an agent finish"
        assert {future.result(5)["message"]["rid"] for future in queued} == {"queued"}


def test_many_calls_at_once_are_not_mixed_up(stage: Stage) -> None:
    helper = stage.client("worker")

    def one(number: int) -> bool:
        user = ("tsh-ada", "tsh-ben")[number % 2]
        data = helper.call("ctr.inspect", user, WS, rid=f"r-{number}")
        return data["message"]["rid"] == f"r-{number}"

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(one, range(400)))


def test_descriptors_and_long_answers_come_through(stage: Stage) -> None:
    helper = stage.client("worker")
    long = helper.call("ctr.inspect", "tsh-ada", {"id": "ws-long0000"}, rid="r")
    assert long["text"] == "\u00fc[" * 100_000
    data, pidfd = helper.call_fd("ctr.watch", "tsh-ada", {"id": "ws-give0000"}, rid="r")
    os.close(pidfd)
    assert data["fds"] == 1
    with pytest.raises(errors.EngineFailed):
        helper.call_fd("ctr.watch", "tsh-ada", WS, rid="r")


def test_the_helper_keeps_nothing_of_a_call(stage: Stage) -> None:
    helper = stage.client("worker")
    helper.call("ctr.inspect", "tsh-ada", WS, rid="r")
    before = stage.descriptors()
    for _ in range(200):
        helper.call("ctr.inspect", "tsh-ada", WS, rid="r")
    assert stage.descriptors() == before


def test_who_hangs_up_is_not_waited_for(stage: Stage) -> None:
    helper = stage.client("worker")
    client, ours = socket.socketpair()
    with ours:
        threading.Timer(0.2, client.close).start()
        started = time.monotonic()
        with pytest.raises(errors.Conflict):
            helper.call("ctr.inspect", "tsh-ada", {"id": "ws-mute0000"}, rid="r", hangup_fd=ours.fileno())
        assert time.monotonic() - started < 2


def test_each_call_is_one_line_in_roots_log(stage: Stage) -> None:
    stage.client("worker").call("ctr.inspect", "tsh-ada", WS, rid="r-log")
    (line,) = [line for line in stage.log() if line.get("rid") == "r-log"]
    assert (line["verb"], line["user"], line["outcome"]) == ("ctr.inspect", "tsh-ada", "sent")
    assert line["ms"] >= 0
