"""Exec with a standard input, over the boundary to a hostile agent."""

from __future__ import annotations

import json
import os
import select
import threading
from typing import Any

import pytest
from unit.serving import FarEnd, make_workspace

from svc import errors
from svc.db.connect import database
from svc.domain.principal import Caller
from svc.domain.workspaces.live import piped
from svc_helper.wire import terminal_frames as frames

RESULT = {"exit_code": 3, "timed_out": False, "duration_ms": 7}


@pytest.fixture
def running(ada: Caller, template: str) -> str:
    return make_workspace(ada.user_id, template, status="running")


@pytest.fixture
def ended(far: FarEnd) -> threading.Event:
    """Set when the command ends."""
    event = threading.Event()

    def answer(call: Any) -> dict[str, Any]:
        event.wait(30)
        far.streams[-1].close()
        return RESULT

    far.answers["ctr.pipe"] = answer
    return event


def next_message(run: piped.Piped) -> piped.Message:
    """Wait for it."""
    while (message := run.receive()) is None:
        run.wait({run.fileno(): select.POLLIN}, 30)
    return message


def test_bytes_both_ways_and_the_exit_code(
    ada: Caller, far: FarEnd, running: str, ended: threading.Event
) -> None:
    with piped.started(ada, "lab", ["cat"], 5) as run:
        assert run.send(b"\x00\xff") == 2 and run.finish_input()
        while not far.streams:
            run.wait({}, 0.05)
        [agent] = far.streams
        assert (agent.recv(100), agent.recv(100)) == (b"i\x00\xff", b"z")
        agent.send(frames.OUTPUT + b"\x00out")
        agent.send(frames.ERRORS + b"err")
        assert next_message(run) == ("stdout", b"\x00out")
        assert next_message(run) == ("stderr", b"err")
        ended.set()
        assert next_message(run) == ("end", RESULT)
        assert run.receive() is None and run.send(b"late") == 4
    rows = database.execute_sql("SELECT action, outcome, detail_json FROM audit ORDER BY id").fetchall()
    assert [row[:2] for row in rows] == [("workspace.exec", "begun"), ("workspace.exec", "ok")]
    assert json.loads(rows[0][2])["stdin"] is True and json.loads(rows[1][2])["exit_code"] == 3


def test_a_long_command_goes_beside_the_message(
    ada: Caller, far: FarEnd, running: str, ended: threading.Event
) -> None:
    ended.set()
    with piped.started(ada, "lab", ["echo", *["x"] * 400], 5) as run:
        assert next_message(run) == ("end", RESULT)
    assert far.inputs[0].count(b"\0") == 401 and far.asked()[0].args["command"] is None


def test_rubbish_and_refusals(ada: Caller, boss: Caller, far: FarEnd, running: str) -> None:
    for rubbish in (b"?", b"s{}", b"o" + b"x" * 40_000):
        hold = threading.Event()
        far.answers["ctr.pipe"] = lambda call, hold=hold: hold.wait(30) and RESULT
        with pytest.raises(errors.EngineFailed), piped.started(ada, "lab", ["cat"]) as run:
            while not far.streams:
                run.wait({}, 0.05)
            far.streams.pop().send(rubbish)
            next_message(run)
        hold.set()
    with pytest.raises(errors.OwnerOnly), piped.started(boss, running, ["cat"]):
        pass
    far.answers["ctr.pipe"] = "command_not_found"
    with pytest.raises(errors.EngineFailed), piped.started(ada, "lab", ["nope"]) as run:
        next_message(run)


def test_a_caller_that_hangs_up_ends_it(
    ada: Caller, far: FarEnd, running: str, ended: threading.Event
) -> None:
    reading, writing = os.pipe()
    try:
        with pytest.raises(errors.Conflict), piped.started(ada, "lab", ["cat"], hangup_fds=[reading]) as run:
            os.close(writing)
            next_message(run)
    finally:
        ended.set()
        os.close(reading)
