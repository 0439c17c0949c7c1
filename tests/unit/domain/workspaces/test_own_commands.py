"""The main command of a workspace: its own or its template's, and what it costs to change."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from typing import Any

import pytest
from unit.serving import CONTAINER, FarEnd, make_template, make_workspace

from svc import errors
from svc.db.connect import database, write
from svc.domain.principal import Caller
from svc.domain.templates import templates
from svc.domain.workspaces import upgrades, workspaces

HAS_RUN = {"container_id": CONTAINER, "started_at": "2026-01-01T00:00:00.000Z"}
TRAIN, SERVE = ["python3", "train.py"], ["sleep", "infinity"]
Make = Callable[..., str]


@pytest.fixture
def make(ada: Caller) -> Make:
    """Makes a stopped workspace `job` of ada's, of a template with a command."""
    template = make_template(ada.user_id, "batch", command=SERVE)
    return lambda **columns: make_workspace(ada.user_id, template, "job", **columns)


def container_of(workspace_id: str) -> tuple[str | None, int]:
    row = database.execute_sql("SELECT container_id, stale FROM workspaces WHERE id = ?", (workspace_id,))
    found: tuple[str | None, int] = row.fetchone()
    return found


@pytest.mark.parametrize(
    ("request_", "own", "runs"),
    [({}, None, SERVE), ({"command": TRAIN}, TRAIN, TRAIN), ({"command": None}, None, SERVE)],
)
def test_its_own_command_takes_the_place_of_the_templates(
    ada: Caller, far: FarEnd, request_: dict[str, Any], own: list[str] | None, runs: list[str]
) -> None:
    make_template(ada.user_id, "batch", command=SERVE)
    record = workspaces.create(ada, {"name": "job", "template": "batch"} | request_)
    assert record["command"] == own
    assert far.calls[-1].args["command"] == runs


def test_what_has_run_is_replaced_only_when_that_is_said(ada: Caller, far: FarEnd, make: Make) -> None:
    job = make(**HAS_RUN)
    patch = {"command": ["sh", "-c", "echo 'a b'"]}
    with pytest.raises(errors.ReplacementRequired) as raised:
        workspaces.edit(ada, "job", patch)
    assert raised.value.details == {"parts": ["command"]}
    head, _, body = raised.value.hint.partition("<<< ")
    assert head == "svc ws edit job --file - "
    again = json.loads(shlex.split(body)[0])
    assert again == patch | {"replace_container": True}
    assert container_of(job) == (CONTAINER, 0)
    assert workspaces.edit(ada, "job", again)["command"] == patch["command"]
    assert container_of(job) == (None, 1)
    workspaces.start(ada, "job")
    created = next(call for call in far.calls if call.verb.name == "ctr.create")
    assert created.args["command"] == patch["command"]


def test_a_refused_edit_does_not_print_variables(ada: Caller, make: Make) -> None:
    make(**HAS_RUN)
    patch = {"command": ["true"], "env": [{"name": "KEY", "value": "s3cret"}], "idle_policy": None}
    with pytest.raises(errors.ReplacementRequired, match="edit the variables after that") as raised:
        workspaces.edit(ada, "job", patch)
    assert "s3cret" not in f"{raised.value.hint} {raised.value.message}"
    assert '"command": ["true"]' in raised.value.hint


def test_the_same_command_under_another_title_keeps_the_container(ada: Caller, make: Make) -> None:
    job = make(**HAS_RUN)
    assert workspaces.edit(ada, "job", {"command": SERVE})["command"] == SERVE
    assert workspaces.edit(ada, "job", {"command": None})["command"] is None
    assert container_of(job) == (CONTAINER, 0)


def test_a_container_that_never_ran_is_made_again(ada: Caller, make: Make) -> None:
    job = make(container_id=CONTAINER)
    workspaces.edit(ada, "job", {"command": TRAIN})
    assert container_of(job) == (None, 1)


@pytest.mark.parametrize(("own", "kept"), [(None, False), (TRAIN, True)])
def test_an_upgrade_keeps_its_own_command(ada: Caller, make: Make, own: list[str] | None, kept: bool) -> None:
    make(command_json=None if own is None else json.dumps(own), **HAS_RUN)
    with write():
        templates.edit(ada, "batch", {"command": ["sleep", "9"]})
    plan = upgrades.preview(ada, "job")
    assert ([change["part"] for change in plan["changes"]] == []) is kept
    assert plan["container"] == ("kept" if kept else "replaced")
