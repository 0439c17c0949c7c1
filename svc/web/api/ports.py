"""Named ports of the caller's workspaces."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from svc.actions.access import MEMBERS
from svc.actions.table import APP_LINK, WORKSPACE_PORT_ADD, WORKSPACE_PORT_REMOVE
from svc.domain.apps import links
from svc.domain.principal import Caller
from svc.domain.workspaces import ports
from svc.web.access import action, route
from svc.web.schemas.ports import PORTS, AppLink, AppOpen, PortAdd, PortState

blueprint = Blueprint("ports", __name__)


@route(blueprint, "GET", "/workspaces/<ref>/ports", MEMBERS, answer=PORTS)
def list_(caller: Caller, ref: str) -> dict[str, Any]:
    """The ports of a workspace, and whether each is open."""
    return ports.listing(caller, ref)


@action(
    blueprint, WORKSPACE_PORT_ADD,
    body=PortAdd(), answer=PortState(), status=201, location="/api/workspaces/{ref}/ports/{name}",
)  # fmt: skip
def add(caller: Caller, ref: str, body: dict[str, Any]) -> dict[str, Any]:
    """Add a port; in a running workspace it opens at once. Its name is enough."""
    return ports.add(caller, ref, **body)


@action(blueprint, WORKSPACE_PORT_REMOVE, status=204)
def remove(caller: Caller, ref: str, name: str) -> None:
    """Close a port and remove it."""
    ports.remove(caller, ref, name)


@action(blueprint, APP_LINK, body=AppOpen(), answer=AppLink(), status=201)
def open_(caller: Caller, ref: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
    """Make a one-time link that opens a port in a browser: a click there signs it in."""
    return links.issue(caller, ref, name, body["path"])
