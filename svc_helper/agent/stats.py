"""What the processes of a workspace use."""

from __future__ import annotations

from typing import Any

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.podman import Podman


def stats(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """One sample."""
    raise Failure("failed", "not yet")
