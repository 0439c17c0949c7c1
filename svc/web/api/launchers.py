"""Launchers of the caller's own workspaces."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from svc.actions.access import OWNER_ONLY
from svc.actions.table import WORKSPACE_LAUNCHER_START, WORKSPACE_LAUNCHER_STOP
from svc.domain.principal import Caller
from svc.domain.workspaces import launchers
from svc.domain.workspaces import logs as workspace_logs
from svc.web.access import action, route
from svc.web.schemas.launchers import LAUNCHERS, LauncherChange, LauncherState
from svc.web.schemas.live.logs import LogQuery, LogText

blueprint = Blueprint("launchers", __name__)


@route(blueprint, "GET", "/workspaces/<ref>/launchers", OWNER_ONLY, answer=LAUNCHERS)
def list_(caller: Caller, ref: str) -> dict[str, Any]:
    """The launchers of a workspace and their states."""
    return launchers.listing(caller, ref)


@action(
    blueprint, WORKSPACE_LAUNCHER_START,
    body=LauncherChange(), answer=LauncherState(),
)  # fmt: skip
def start(caller: Caller, ref: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
    """Start a launcher in a running workspace."""
    return launchers.start(caller, ref, name)


@action(
    blueprint, WORKSPACE_LAUNCHER_STOP,
    body=LauncherChange(), answer=LauncherState(),
)  # fmt: skip
def stop(caller: Caller, ref: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
    """Stop a launcher and all its processes."""
    return launchers.stop(caller, ref, name)


@route(
    blueprint, "GET", "/workspaces/<ref>/launchers/<name>/logs", OWNER_ONLY,
    query=LogQuery(), answer=LogText(),
)  # fmt: skip
def logs(caller: Caller, ref: str, name: str, query: dict[str, Any]) -> dict[str, Any]:
    """The newest output of a launcher, in every state of the workspace."""
    return workspace_logs.tail(caller, ref, query.get("tail"), name, times=query["timestamps"])
