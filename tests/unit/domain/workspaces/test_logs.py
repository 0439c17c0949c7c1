"""Logs: the newest lines, what follows them, and that it is the owner's alone."""

from __future__ import annotations

import socket
from contextlib import closing
from dataclasses import replace

import pytest
from unit.serving import FarEnd, make_template, make_workspace

from svc import errors
from svc.domain import long_calls
from svc.domain.principal import Caller
from svc.domain.workspaces import logs
from svc.limits import LOG_BYTES_MAX

WEB = {"name": "web", "title": "", "command": ["serve"], "env": [], "port": None, "autostart": False}


@pytest.fixture
def lab(ada: Caller) -> str:
    return make_workspace(ada.user_id, make_template(ada.user_id, launchers=[WEB]), status="running")


def test_tail(ada: Caller, far: FarEnd, lab: str) -> None:
    whole = {"text": "hello\n", "truncated": False, "older_gone": False, "markers": []}
    assert logs.tail(ada, "lab", 7) == whole
    of_all = {"launcher": None, "skip": 0, "start": None}
    assert far.calls[0].args == {"id": lab, "tail": 7, "times": False, "most": LOG_BYTES_MAX} | of_all
    far.files.output, far.files.kept["truncated"] = b"nul \0, \x1b[31m and \xff", True
    assert logs.tail(ada, "lab", None) == whole | {"text": "nul \0, \x1b[31m and \ufffd", "truncated": True}
    assert far.calls[1].args["tail"] is None
    assert not +long_calls._running


def test_the_rest_of_an_earlier_answer(ada: Caller, far: FarEnd, lab: str) -> None:
    far.files.kept["start"] = [3, 45]
    with logs.opened(ada, "lab", 9) as log:
        assert (log.start, log.read(100)) == ("3.45", b"hello\n")
    with logs.opened(ada, "lab", None, start=log.start, skip=4) as log:
        assert log.read(100) == b"o\n"
    assert far.calls[1].args["start"] == {"number": 3, "offset": 45}


@pytest.mark.parametrize(
    "changes",
    [
        {"start": [0]}, {"start": [0, -1]}, {"start": "0.0"}, {"older_gone": 1}, {"truncated": None},
        {"markers": None}, {"markers": [[0]]}, {"markers": [[-1, ""]]}, {"markers": [[0, "x" * 121]]},
        {"markers": [[0, 0]]}, {"markers": [[0, "x"]] * 33},
    ],
)  # fmt: skip
def test_a_hostile_agents_facts_are_refused(
    ada: Caller, far: FarEnd, lab: str, changes: dict[str, object]
) -> None:
    far.files.kept |= changes
    with pytest.raises(errors.EngineFailed):
        logs.tail(ada, "lab", 7)


def test_more_than_was_asked_for_is_refused(ada: Caller, far: FarEnd, lab: str) -> None:
    far.files.output = bytes(LOG_BYTES_MAX + 1)
    with pytest.raises(errors.EngineFailed, match="more output"):
        logs.tail(ada, "lab", 7)


def test_others_see_none(boss: Caller, bob: Caller, far: FarEnd, lab: str) -> None:
    for caller in (boss, bob):
        with pytest.raises(errors.NotFound):
            logs.tail(caller, lab, 10)
        with pytest.raises(errors.NotFound):
            logs.follow(caller, lab, 10)
    assert far.verbs() == []


def test_follow(ada: Caller, far: FarEnd, lab: str) -> None:
    far.answers["ctr.follow"] = [{"text": "a"}, {"marker": "started"}, {"text": "\0b\n"}, {"ended": True}]
    assert list(logs.follow(ada, "lab", 7)) == [("log", "a"), ("marker", "started"), ("log", "\0b\n")]
    assert far.calls[0].args == {"id": lab, "launcher": None, "tail": 7, "times": False}
    assert list(logs.follow(ada, "lab", 7, "web"))
    assert far.calls[1].args["launcher"] == "web"


def test_follow_of_no_launcher_is_refused_at_once(ada: Caller, far: FarEnd, lab: str) -> None:
    with pytest.raises(errors.NotFound) as caught:
        logs.follow(ada, "lab", 7, "none")
    assert caught.value.hint == "svc ws launchers lab"
    assert far.verbs() == []


def test_follow_of_what_never_ran_is_empty(ada: Caller, far: FarEnd, lab: str) -> None:
    far.answers["ctr.follow"] = "not_found"
    assert list(logs.follow(ada, "lab", 7)) == []


@pytest.mark.parametrize(
    "message", [{}, {"text": 5}, {"text": "x" * (logs.PIECE_MAX + 1)}, {"txt": "a"}, {"marker": "x" * 121}]
)
def test_a_hostile_agents_message_is_refused(
    ada: Caller, far: FarEnd, lab: str, message: dict[str, object]
) -> None:
    far.answers["ctr.follow"] = [message, {"ended": True}]
    with pytest.raises(errors.EngineFailed):
        list(logs.follow(ada, "lab", 7))


def test_silence_is_told(ada: Caller, far: FarEnd, lab: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "HEARTBEAT_S", 0.01)
    far.answers["ctr.follow"] = lambda call: far.hold()
    with closing(logs.follow(ada, "lab", 7)) as pieces:
        assert next(pieces) is None
        assert next(pieces) is None
        far.let_go()


@pytest.mark.parametrize("own", [True, False])
def test_it_ends_when_somebody_hangs_up(ada: Caller, far: FarEnd, lab: str, own: bool) -> None:
    far.answers["ctr.follow"] = lambda call: far.hold()
    near, away = socket.socketpair()
    with near:
        caller = replace(ada, hangup_fd=near.fileno()) if own else ada
        pieces = logs.follow(caller, "lab", 7, hangup_fds=() if own else (near.fileno(),))
        away.close()
        with pytest.raises(errors.Conflict, match="has gone"):
            list(pieces)
        far.let_go()
