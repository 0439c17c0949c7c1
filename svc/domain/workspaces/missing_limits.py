"""Limits that this host cannot apply, and whether a workspace may run without them.

"A production host refuses limits it cannot keep unless the administrator allows
it in a setting": SVC_MISSING_LIMITS. The agent reports the missing limits when it
creates or starts a container.
"""

from __future__ import annotations

import os
from typing import Any

from svc.actions.commands import edit
from svc.domain import configuration
from svc.domain.quotas import resources
from svc.errors import LimitsNotEnforceable

AUTO, REFUSE = "auto", "refuse"
SYSTEMD = "/run/systemd/system"  # where this exists, the host is expected to apply limits
NAMES = ("cpu_limit", "memory_bytes", "shm_bytes", "pids_limit")


def refused() -> bool:
    """Whether a workspace is refused when this host cannot apply its limits."""
    setting = configuration.current.missing_limits
    return setting == REFUSE or (setting == AUTO and os.path.isdir(SYSTEMD))


def of(untrusted: dict[str, Any]) -> list[str]:
    """The limits that an agent's reply names as not applied; none where it has no such list."""
    names = untrusted.get("limits_missing")
    return [name for name in NAMES if name in names] if isinstance(names, list) else []


def refusal(workspace: str, missing: list[str]) -> LimitsNotEnforceable:
    """The refusal, with both ways out: run without the limits, or change the setting."""
    without = edit(workspace, {"resources": dict.fromkeys(missing, resources.UNLIMITED)})
    return LimitsNotEnforceable(
        f"this host cannot apply {' and '.join(missing)} to {workspace}: no cgroup controllers",
        hint=f"{without}   (or an administrator sets SVC_MISSING_LIMITS=allow)",
        details={"missing": missing},
    )
