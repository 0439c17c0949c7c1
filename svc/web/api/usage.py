"""Usage, capacity, recommendations, checks of resources and the hardware of the host."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from svc.actions.access import ACCOUNTS, MEMBERS
from svc.domain.gpus import servers
from svc.domain.principal import Caller
from svc.domain.quotas import usage
from svc.domain.workspaces import capacity, dry_runs, live_use, recommend
from svc.web.access import route
from svc.web.schemas.usage import (
    Capacity,
    CheckedWorkspace,
    HostHardware,
    Recommendation,
    RecommendRequest,
    Usage,
)
from svc.web.schemas.workspaces import LIVE_USE, WorkspaceCheck

blueprint = Blueprint("usage", __name__)


@route(blueprint, "GET", "/usage/me", ACCOUNTS, answer=Usage())
def mine(caller: Caller) -> dict[str, Any]:
    """What the caller uses, and the caller's quota."""
    return usage.me(caller)


@route(blueprint, "GET", "/usage/workspaces", MEMBERS, answer=LIVE_USE)
def use_of_all(caller: Caller) -> dict[str, Any]:
    """What each of the caller's running workspaces uses now, and the states of its launchers."""
    return live_use.listing(caller)


@route(blueprint, "GET", "/servers/hardware", ACCOUNTS, answer=HostHardware())
def hardware(_caller: Caller) -> dict[str, Any]:
    """The host's GPU driver, the newest CUDA version that it supports, and its GPUs."""
    return servers.record()


@route(blueprint, "GET", "/workspaces/capacity", MEMBERS, answer=Capacity())
def headroom(caller: Caller) -> dict[str, Any]:
    """The caller's quota and headroom, the host, and the users of each GPU."""
    return capacity.of(caller)


@route(blueprint, "POST", "/workspaces/recommend", MEMBERS, body=RecommendRequest(), answer=Recommendation())
def recommended(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """The recommended resources for a use of GPUs, with the command to create such a workspace."""
    return recommend.of(caller, body["template"], body["gpu_use_case"])


@route(blueprint, "POST", "/workspaces/check", MEMBERS, body=WorkspaceCheck(), answer=CheckedWorkspace())
def check(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """Whether exactly this workspace could be created and started now, and what is in the way."""
    return dry_runs.of(caller, body)
