"""Logs: the newest lines, what follows them, and that it is the owner's alone."""

from __future__ import annotations

import pytest
from unit.serving import FarEnd, make_template, make_workspace

from svc import errors
from svc.domain.places import long_calls
from svc.domain.principal import Caller
from svc.domain.workspaces import logs
from svc_helper.wire.limits import LOG_BYTES_MAX

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
    assert not long_calls.taken()


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
    assert far.verbs() == []
