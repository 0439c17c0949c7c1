"""Whether a workspace runs: the row corrected by what Podman reports, as the truth."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import CONTAINER, FarEnd, make_workspace

from svc import errors
from svc.domain.principal import Caller
from svc.domain.workspaces import running, states

STOPPED = {"exists": True, "status": "exited"}


def status(workspace_id: str) -> tuple[str, str | None]:
    workspace = states.of_id(workspace_id)
    assert workspace is not None
    return workspace.status, workspace.status_reason


@pytest.mark.parametrize(
    ("before", "container", "seen", "after"),
    [
        ("running", CONTAINER, STOPPED, "running"),  # the row is believed: the call itself finds out
        ("stopped", CONTAINER, {"exists": True, "status": "running"}, "running"),
        ("failed", CONTAINER, {"exists": True, "status": "running"}, "running"),
        ("stopped", CONTAINER, STOPPED, None),
        ("stopped", CONTAINER, "unavailable", None),
        ("stopped", None, None, None),
        ("starting", CONTAINER, {"exists": True, "status": "running"}, None),
    ],
)
def test_what_requires_a_running_workspace(
    ada: Caller, far: FarEnd, template: str, before: str, container: str | None, seen: Any, after: str | None
) -> None:
    far.answers["ctr.inspect"] = seen
    workspace_id = make_workspace(ada.user_id, template, status=before, container_id=container)
    workspace = states.find(ada, workspace_id)
    if after:
        running.require(ada, workspace)
        assert status(workspace_id)[0] == after
        return
    with pytest.raises(errors.WorkspaceNotRunning) as caught:
        running.require(ada, workspace)
    assert caught.value.hint == "svc ws start lab"
    assert status(workspace_id)[0] == before


def test_nobody_inspects_anothers(ada: Caller, boss: Caller, far: FarEnd, template: str) -> None:
    workspace_id = make_workspace(ada.user_id, template, container_id=CONTAINER)
    assert not running.runs_unseen(boss, states.find(boss, workspace_id, "ada"))
    assert far.verbs() == []


@pytest.mark.parametrize("error", [errors.NotFound("gone"), errors.WorkspaceNotRunning("ended")])
def test_a_call_that_finds_the_end_corrects_the_row(
    ada: Caller, far: FarEnd, template: str, error: errors.SvcError
) -> None:
    far.answers["ctr.inspect"] = STOPPED
    workspace_id = make_workspace(ada.user_id, template, status="running", container_id=CONTAINER)
    workspace = states.find(ada, workspace_id)
    with (
        pytest.raises(errors.WorkspaceNotRunning, match="lab is not running"),
        running.expected(ada, workspace),
    ):
        raise error
    assert status(workspace_id) == ("stopped", "container_exited")


def test_what_cannot_be_inspected_is_left_to_the_reconciler(
    ada: Caller, far: FarEnd, template: str, wakes: list[int]
) -> None:
    far.answers["ctr.inspect"] = "unavailable"
    workspace_id = make_workspace(ada.user_id, template, status="running", container_id=CONTAINER)
    running.note_end(ada, states.find(ada, workspace_id))
    assert status(workspace_id) == ("running", None)
    assert wakes
