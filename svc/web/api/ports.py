"""Named ports of the caller's workspaces."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from svc.domain.principal import Caller
from svc.domain.workspaces import ports
from svc.web.access import MEMBERS, route
from svc.web.schemas.ports import PORTS, PortAdd, PortState

blueprint = Blueprint("ports", __name__)


@route(blueprint, "GET", "/workspaces/<ref>/ports", MEMBERS, answer=PORTS)
def list_(caller: Caller, ref: str) -> dict[str, Any]:
    """The ports of a workspace, and whether each is open."""
    return ports.listing(caller, ref)


@route(
    blueprint, "POST", "/workspaces/<ref>/ports", MEMBERS,
    body=PortAdd(), answer=PortState(), status=201, location="/api/workspaces/{ref}/ports/{name}",
)  # fmt: skip
def add(caller: Caller, ref: str, body: dict[str, Any]) -> dict[str, Any]:
    """Add a port; in a running workspace it opens at once. Its name is enough."""
    return ports.add(caller, ref, **body)


@route(blueprint, "DELETE", "/workspaces/<ref>/ports/<name>", MEMBERS, status=204)
def remove(caller: Caller, ref: str, name: str) -> None:
    """Close a port and remove it."""
    ports.remove(caller, ref, name)
