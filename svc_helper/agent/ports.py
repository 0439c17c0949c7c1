"""Ports of a running workspace, held open by its keeper."""

from __future__ import annotations

from typing import Any

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.podman import Podman


def open_(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Open one."""
    raise Failure("failed", "not yet")


def close(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Close one."""
    raise Failure("failed", "not yet")


def listing(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Those that are open."""
    raise Failure("failed", "not yet")
