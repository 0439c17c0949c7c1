"""Launchers: named apps in a running workspace, held by its keeper."""

from __future__ import annotations

from typing import Any

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.podman import Podman


def listing(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """How each launcher is."""
    raise Failure("failed", "not yet")


def start(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Start one."""
    raise Failure("failed", "not yet")


def stop(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Stop one."""
    raise Failure("failed", "not yet")


def logs(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Its captured output."""
    raise Failure("failed", "not yet")
