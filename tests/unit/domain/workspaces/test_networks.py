"""The network of a workspace: where it comes from, what it costs to change, and what the agent is told."""

from __future__ import annotations

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
Make = Callable[..., str]


@pytest.fixture
def make(ada: Caller, template: str) -> Make:
    """Makes a stopped workspace `lab` of ada's."""
    return lambda **columns: make_workspace(ada.user_id, template, **columns)


def container_of(workspace_id: str) -> tuple[str | None, int]:
    row = database.execute_sql("SELECT container_id, stale FROM workspaces WHERE id = ?", (workspace_id,))
    found: tuple[str | None, int] = row.fetchone()
    return found


@pytest.mark.parametrize(
    ("request_", "expected"), [({}, "lab"), ({"network": "other"}, "other"), ({"network": None}, None)]
)
def test_the_templates_network_unless_another_is_chosen(
    ada: Caller, far: FarEnd, request_: dict[str, Any], expected: str | None
) -> None:
    make_template(ada.user_id, "net", network="lab")
    record = workspaces.create(ada, {"name": "nb", "template": "net"} | request_)
    assert record["network"] == expected
    told = far.calls[-1].args["network"]
    assert told == ({"name": expected, "alias": "nb"} if expected else None)


def test_a_start_says_the_present_name_and_network(ada: Caller, far: FarEnd, make: Make) -> None:
    make(network="lab", **HAS_RUN)
    workspaces.rename(ada, "lab", "nb")
    workspaces.edit(ada, "nb", {"network": "other"})
    workspaces.start(ada, "nb")
    assert far.calls[-1].args["network"] == {"name": "other", "alias": "nb"}


@pytest.mark.parametrize(("before", "after"), [(None, "lab"), ("lab", None)])
def test_what_has_run_is_replaced_only_when_that_is_said(
    ada: Caller, far: FarEnd, make: Make, before: str | None, after: str | None
) -> None:
    lab = make(network=before, **HAS_RUN)
    with pytest.raises(errors.ReplacementRequired) as raised:
        workspaces.edit(ada, "lab", {"network": after})
    assert raised.value.hint == f"svc ws edit lab --network {after or 'none'} --replace-container"
    assert container_of(lab) == (CONTAINER, 0)
    assert workspaces.edit(ada, "lab", {"network": after, "replace_container": True})["network"] == after
    assert container_of(lab) == (None, 1)
    workspaces.start(ada, "lab")
    assert [verb for verb in far.verbs() if verb.startswith("ctr.")] == [
        "ctr.remove",
        "ctr.create",
        "ctr.start",
    ]


def test_what_has_never_run_has_nothing_to_lose(ada: Caller, far: FarEnd, make: Make) -> None:
    lab = make(container_id=CONTAINER)
    workspaces.edit(ada, "lab", {"network": "lab"})
    assert container_of(lab) == (None, 1)


@pytest.mark.parametrize("patch", [{"network": "lab"}, {"network": "lab", "replace_container": True}])
def test_the_same_network_changes_nothing(ada: Caller, make: Make, patch: dict[str, Any]) -> None:
    lab = make(network="lab", **HAS_RUN)
    workspaces.edit(ada, "lab", patch)
    assert container_of(lab) == (CONTAINER, 0)


def test_a_consent_alone_is_no_change(ada: Caller, make: Make) -> None:
    make()
    with pytest.raises(errors.ValidationFailed, match="no key"):
        workspaces.edit(ada, "lab", {"replace_container": True, "resources": {}})


@pytest.mark.parametrize(("own", "after"), [(None, "new"), ("mine", "mine")])
def test_an_upgrade_brings_the_templates_network_unless_one_was_chosen(
    ada: Caller, far: FarEnd, make: Make, template: str, own: str | None, after: str
) -> None:
    far.answers["ctr.inspect"] = {"exists": True, "status": "stopped"}
    make(network=own, **HAS_RUN)
    templates.edit(ada, template, {"network": "new"})
    with write():
        database.execute_sql("UPDATE templates SET status = 'enabled'")
    plan = upgrades.preview(ada, "lab")
    assert plan["container"] == ("kept" if own else "replaced")
    assert upgrades.upgrade(ada, "lab", replace=True)["network"] == after
