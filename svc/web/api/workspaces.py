"""Workspaces: list, create, set up, edit, start, stop, delete, exec, logs, monitor."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from svc.actions import table
from svc.actions.access import MEMBERS, OWNED
from svc.domain import versions
from svc.domain.principal import Caller
from svc.domain.versions import Expected
from svc.domain.workspaces import calls as workspace_calls
from svc.domain.workspaces import idle, logs, monitor, upgrades, workspaces
from svc.web.access import action, route
from svc.web.schemas.live.logs import LogQuery, LogText
from svc.web.schemas.live.monitor import Snapshot
from svc.web.schemas.operations import ACCEPTED
from svc.web.schemas.pages import OwnerQuery
from svc.web.schemas.workspaces import (
    WORKSPACE,
    WORKSPACES,
    ExecResult,
    UpgradePlan,
    WorkspaceCreate,
    WorkspaceEdit,
    WorkspaceExec,
    WorkspaceExtend,
    WorkspaceQuery,
    WorkspaceRename,
    WorkspaceStart,
    WorkspaceStarted,
    WorkspaceStop,
    WorkspaceUpgrade,
)

blueprint = Blueprint("workspaces", __name__)

LOCATION = "/api/workspaces/{id}"


@route(blueprint, "GET", "/workspaces", OWNED, query=WorkspaceQuery(), answer=WORKSPACES)
def list_(caller: Caller, query: dict[str, Any]) -> str:
    """The caller's workspaces; administrators may name another owner, or ask for all."""
    return workspaces.page_of(caller, query["page"], query.get("owner"), everyones=query["all"])


@action(
    blueprint, table.WORKSPACE_CREATE,
    body=WorkspaceCreate(), answer=WORKSPACE, status=201, location=LOCATION, version=versions.of_workspace,
)  # fmt: skip
def create(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """Create a stopped workspace; never pulls or builds an image."""
    return workspaces.create(caller, body)


@action(blueprint, table.WORKSPACE_SETUP, body=WorkspaceCreate(), answer=ACCEPTED, status=202)
def set_up(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """Pull a missing image and create the workspace, as one operation."""
    return {"operation": workspaces.set_up(caller, body)}


@route(
    blueprint, "GET", "/workspaces/<ref>", OWNED,
    query=OwnerQuery(), answer=WORKSPACE, version=versions.of_workspace,
)  # fmt: skip
def get(caller: Caller, ref: str, query: dict[str, Any]) -> dict[str, Any]:
    """One workspace, by its id or the owner's name for it."""
    return workspaces.get(caller, ref, query.get("owner"))


@action(
    blueprint, table.WORKSPACE_EDIT,
    body=WorkspaceEdit(), answer=WORKSPACE, version=versions.of_workspace, if_match=True,
)  # fmt: skip
def edit(caller: Caller, ref: str, body: dict[str, Any], expected: Expected) -> dict[str, Any]:
    """Edit a stopped workspace; POST workspaces/<id>/rename renames it in every state."""
    return workspaces.edit(caller, ref, body, expected=expected)


@action(
    blueprint, table.WORKSPACE_RENAME,
    body=WorkspaceRename(), answer=WORKSPACE, version=versions.of_workspace, if_match=True,
)  # fmt: skip
def rename(caller: Caller, ref: str, body: dict[str, Any], expected: Expected) -> dict[str, Any]:
    """Rename a workspace, in every state."""
    return workspaces.rename(caller, ref, body["name"], expected=expected)


@action(blueprint, table.WORKSPACE_DELETE, query=OwnerQuery(), status=204, if_match=True)
def delete(caller: Caller, ref: str, query: dict[str, Any], expected: Expected) -> None:
    """Delete a workspace and its container, which is stopped first; files under /work stay."""
    workspaces.delete(caller, ref, owner=query.get("owner"), expected=expected)


@action(blueprint, table.WORKSPACE_START, body=WorkspaceStart(), answer=WorkspaceStarted())
def start(caller: Caller, ref: str, body: dict[str, Any]) -> dict[str, Any]:
    """Start a workspace; never pulls or builds an image."""
    return workspaces.start(caller, ref)


@action(
    blueprint, table.WORKSPACE_STOP,
    body=WorkspaceStop(), query=OwnerQuery(), answer=WORKSPACE,
)  # fmt: skip
def stop(caller: Caller, ref: str, body: dict[str, Any], query: dict[str, Any]) -> dict[str, Any]:
    """Stop a workspace."""
    return workspaces.stop(caller, ref, grace_s=body["grace_s"], owner=query.get("owner"))


@action(blueprint, table.WORKSPACE_RESTART, body=WorkspaceStop(), answer=WorkspaceStarted())
def restart(caller: Caller, ref: str, body: dict[str, Any]) -> dict[str, Any]:
    """Stop a workspace and start it again; it keeps its GPUs. One that does not run is started."""
    return workspaces.restart(caller, ref, body["grace_s"])


@route(blueprint, "GET", "/workspaces/<ref>/upgrade", MEMBERS, answer=UpgradePlan())
def preview_upgrade(caller: Caller, ref: str) -> dict[str, Any]:
    """What an upgrade to the template's newest revision would change, and whether the container can stay."""
    return upgrades.preview(caller, ref)


@action(
    blueprint, table.WORKSPACE_UPGRADE,
    body=WorkspaceUpgrade(), answer=WORKSPACE, version=versions.of_workspace, if_match=True,
)  # fmt: skip
def upgrade(caller: Caller, ref: str, body: dict[str, Any], expected: Expected) -> dict[str, Any]:
    """Move a stopped workspace to its template's newest revision."""
    replace, revision = body["replace_container"], body.get("revision")
    return upgrades.upgrade(caller, ref, revision, replace=replace, expected=expected)


@action(blueprint, table.WORKSPACE_EXTEND, body=WorkspaceExtend(), answer=WORKSPACE)
def extend(caller: Caller, ref: str, body: dict[str, Any]) -> dict[str, Any]:
    """Suspend the idle policy of a running workspace for some hours."""
    return idle.extend(caller, ref, body["hours"])


@action(blueprint, table.WORKSPACE_EXEC, body=WorkspaceExec(), answer=ExecResult())
def run(caller: Caller, ref: str, body: dict[str, Any]) -> dict[str, Any]:
    """Run one non-interactive command in the caller's own running workspace."""
    return workspace_calls.run(caller, ref, body["command"], body["timeout_s"])


@route(blueprint, "GET", "/workspaces/<ref>/logs", MEMBERS, query=LogQuery(), answer=LogText())
def read_logs(caller: Caller, ref: str, query: dict[str, Any]) -> dict[str, Any]:
    """The newest output of the container."""
    return logs.tail(caller, ref, query.get("tail"), times=query["timestamps"])


@route(blueprint, "GET", "/workspaces/<ref>/monitor", MEMBERS, answer=Snapshot())
def snapshot(caller: Caller, ref: str) -> dict[str, Any]:
    """The CPU, memory and GPUs that a running workspace uses now, and its busiest processes."""
    return monitor.snapshot(caller, ref)
