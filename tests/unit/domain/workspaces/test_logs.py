"""Logs: the newest lines, what follows them, and that it is the owner's alone."""

from __future__ import annotations

import socket
from contextlib import closing
from dataclasses import replace

import pytest
from unit.serving import FarEnd, make_template, make_workspace

from svc import errors
from svc.domain.principal import Caller
from svc.domain.workspaces import logs

WEB = {"name": "web", "title": "", "command": ["serve"], "env": [], "port": None, "autostart": False}


@pytest.fixture
def lab(ada: Caller) -> str:
    return make_workspace(ada.user_id, make_template(ada.user_id, launchers=[WEB]), status="running")


def test_tail(ada: Caller, far: FarEnd, lab: str) -> None:
    assert logs.tail(ada, "lab", 7) == {"text": "hello\n", "truncated": False}
    assert far.calls[0].args == {"id": lab, "tail": 7}
    far.answers["ctr.logs"] = "not_found"
    assert logs.tail(ada, "lab", 7) == {"text": "", "truncated": False}
    far.answers["ctr.logs"] = {"text": "nul \0 and \x1b[31m", "truncated": True}
    assert logs.tail(ada, "lab", 7)["text"] == "nul \0 and \x1b[31m"


def test_others_see_none(boss: Caller, bob: Caller, far: FarEnd, lab: str) -> None:
    for caller in (boss, bob):
        with pytest.raises(errors.NotFound):
            logs.tail(caller, lab, 10)
        with pytest.raises(errors.NotFound):
            logs.follow(caller, lab, 10)
    assert far.verbs() == []


def test_follow(ada: Caller, far: FarEnd, lab: str) -> None:
    far.answers["ctr.follow"] = [{"text": "a"}, {"text": "\0b\n"}, {"ended": True}]
    assert list(logs.follow(ada, "lab", 7)) == ["a", "\0b\n"]
    assert far.calls[0].args == {"id": lab, "launcher": None, "tail": 7}
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


@pytest.mark.parametrize("message", [{}, {"text": 5}, {"text": "x" * (logs.PIECE_MAX + 1)}, {"txt": "a"}])
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
