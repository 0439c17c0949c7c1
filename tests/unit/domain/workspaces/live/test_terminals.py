"""Terminals: the owner's alone, audited without their content, and what a hostile shim may send."""

from __future__ import annotations

import json
from typing import Any

import pytest
from unit.serving import CONTAINER, TERMINAL, FarEnd, make_workspace

from svc import errors
from svc.db.connect import database
from svc.domain import pages
from svc.domain.principal import Caller
from svc.domain.workspaces.live import terminals
from svc_helper.wire import terminal_frames as frames

AT = "2025-01-02T03:04:05.000Z"
RECORD = TERMINAL | {"opened_at": AT, "active_at": AT}


@pytest.fixture
def running(ada: Caller, template: str) -> str:
    return make_workspace(ada.user_id, template, status="running", container_id=CONTAINER)


def audited() -> list[tuple[Any, ...]]:
    """The audit: action, outcome, detail."""
    rows = database.execute_sql("SELECT action, outcome, detail_json FROM audit ORDER BY id").fetchall()
    found = [(action, outcome, json.loads(detail)) for action, outcome, detail in rows]
    return [
        (*row, {key: value for key, value in detail.items() if key != "target_name"})
        for *row, detail in found
    ]


def test_open_list_and_close(ada: Caller, far: FarEnd, running: str) -> None:
    assert terminals.open_(ada, "lab", 80, 24, ["top", "-d1"]) == RECORD
    assert far.asked()[0].args == {
        "id": running, "cols": 80, "rows": 24, "command": ["top", "-d1"], "attach": False
    }  # fmt: skip
    assert terminals.listing(ada, "lab") == pages.whole([RECORD], max=8)
    terminals.close(ada, "lab", "t-4k2m9x")
    assert audited() == [
        ("terminal.open", "begun", {"program": "top"}),
        ("terminal.open", "ok", {"terminal": "t-4k2m9x"}),
        ("terminal.close", "begun", {"terminal": "t-4k2m9x"}),
        ("terminal.close", "ok", {}),
    ]


def test_opened_and_attached_in_one_call(ada: Caller, far: FarEnd, running: str) -> None:
    with terminals.opened(ada, "lab", 80, 24) as viewer:
        [shim] = far.streams
        assert far.verbs() == ["terminal.open"] and viewer.record == RECORD
        assert viewer.receive() is None
        shim.send(frames.facts(frames.STATE, {"title": "a\x1b[2Jb", "cols": 80, "rows": 24}))
        shim.send(frames.OUTPUT + b"\xff\x00$ ")
        assert viewer.receive() == ("state", {"title": "a\\x1b[2Jb", "cols": 80, "rows": 24})
        assert viewer.receive() == ("output", b"\xff\x00$ ")
        assert viewer.send(b"x" * 40_000) == 40_000 and viewer.resize(100, 30)
        assert [len(shim.recv(1 << 16)) for _ in range(2)] == [frames.FRAME_MAX, 40_000 - frames.DATA_MAX + 1]
        assert shim.recv(1 << 16) == b'r{"cols":100,"rows":30}'
        shim.send(frames.facts(frames.END, {"reason": "exited", "exit_code": 3}))
        assert viewer.receive() == ("end", {"reason": "exited", "exit_code": 3})
        assert viewer.receive() is None
        viewer.touch()
    assert shim.recv(10) == b"", "leaving detaches"
    assert "x" * 10 not in json.dumps(audited())


@pytest.mark.parametrize(
    "row",
    [
        {"id": "t-../x"}, {"id": "x-4k2m9x"}, {"title": "x" * 5000}, {"command": "sh"}, {"command": [1]},
        {"cols": 0}, {"rows": 1001}, {"viewers": -1}, {"state": "mad"}, {"exit_code": "0"},
        {"opened_at": "now"},
    ],
)  # fmt: skip
def test_rubbish_of_the_agent_is_refused(ada: Caller, far: FarEnd, running: str, row: dict[str, Any]) -> None:
    far.answers["terminal.list"] = {"terminals": [TERMINAL | row]}
    far.answers["terminal.open"] = {"terminal": TERMINAL | row}
    with pytest.raises(errors.EngineFailed):
        terminals.listing(ada, "lab")
    with pytest.raises(errors.EngineFailed), terminals.opened(ada, "lab", 80, 24):
        pass
    assert far.streams[0].recv(10) == b"", "its stream is closed"


def test_more_terminals_than_there_can_be(ada: Caller, far: FarEnd, running: str) -> None:
    far.answers["terminal.list"] = {"terminals": [TERMINAL] * 17}
    with pytest.raises(errors.EngineFailed):
        terminals.listing(ada, "lab")
    for rubbish in ({}, {"terminal": 1}, {"terminal": None}):
        far.answers["terminal.open"] = rubbish
        with pytest.raises(errors.EngineFailed):
            terminals.open_(ada, "lab", 80, 24)


def test_they_are_the_owners_alone(ada: Caller, bob: Caller, boss: Caller, far: FarEnd, running: str) -> None:
    def tries(caller: Caller, ref: str) -> list[Any]:
        return [
            lambda: terminals.open_(caller, ref, 80, 24),
            lambda: terminals.close(caller, ref, "t-4k2m9x"),
            lambda: terminals.listing(caller, ref),
            lambda: terminals.opened(caller, ref, 80, 24).__enter__(),
            lambda: terminals.attached(caller, ref, "t-4k2m9x", 80, 24).__enter__(),
        ]

    for attempt in tries(boss, running):
        with pytest.raises(errors.OwnerOnly):
            attempt()
    for caller, ref in ((bob, running), (bob, "lab"), (boss, "lab")):
        for attempt in tries(caller, ref):
            with pytest.raises(errors.NotFound):
                attempt()
    assert far.verbs() == []
    assert {row[0] for row in audited()} == {"terminal.open", "terminal.close", "terminal.attach"}


@pytest.mark.parametrize("name", ["t-1", "t-ABCDEF", "t-4k2m9x\n", "\x1b[2J", "", "x" * 9000])
def test_what_is_no_id_is_not_asked_for(ada: Caller, far: FarEnd, running: str, name: str) -> None:
    """The helper would take it for a fault of the service, and the answer would be that too."""
    for attempt in (
        lambda: terminals.attached(ada, "lab", name, 80, 24).__enter__(),
        lambda: terminals.close(ada, "lab", name),
    ):
        with pytest.raises(errors.NotFound) as missing:
            attempt()
        assert len(missing.value.message) < 200
    assert far.asked() == [] and audited() == []


def test_stopped_missing_full_and_outdated(ada: Caller, far: FarEnd, running: str, template: str) -> None:
    make_workspace(ada.user_id, template, name="off")
    assert terminals.listing(ada, "off") == pages.whole([], max=8)
    with pytest.raises(errors.WorkspaceNotRunning):
        terminals.open_(ada, "off", 80, 24)
    far.answers |= {"terminal.attach": "not_found", "terminal.close": "not_found"}
    for attempt in (
        lambda: terminals.attached(ada, "lab", "t-000000", 80, 24).__enter__(),
        lambda: terminals.close(ada, "lab", "t-000000"),
    ):
        with pytest.raises(errors.NotFound) as missing:
            attempt()
        assert "t-000000" in missing.value.message
    far.answers["terminal.open"] = "too_many"
    with pytest.raises(errors.TooManyTerminals) as full:
        terminals.open_(ada, "lab", 80, 24)
    assert full.value.hint == "svc ws shell lab --list"
    far.answers["terminal.open"] = "outdated"
    with pytest.raises(errors.WorkspaceOutdated) as old:
        terminals.open_(ada, "lab", 80, 24)
    assert old.value.hint == "svc ws restart lab"
    far.answers |= {"terminal.open": "not_running", "ctr.inspect": {"exists": True, "status": "exited"}}
    with pytest.raises(errors.WorkspaceNotRunning):
        terminals.open_(ada, "lab", 80, 24)
