"""Limits that this host cannot apply, and whether a workspace may run without them.

"A production host refuses limits it cannot keep unless the administrator allows
it in a setting": SVC_MISSING_LIMITS. Which limits are missing the agent says
when it makes or starts a container; nothing asks it beforehand.
"""

from __future__ import annotations

import json
import os
from typing import Any

from svc.domain import configuration
from svc.domain.workspaces.states import Workspace
from svc.errors import LimitsNotEnforceable

AUTO, REFUSE = "auto", "refuse"
SYSTEMD = "/run/systemd/system"  # where this is, limits are what the host promises
NAMES = ("cpu_limit", "memory_bytes", "shm_bytes", "pids_limit")


def refused() -> bool:
    """Whether a workspace is refused when this host cannot apply its limits."""
    setting = configuration.current.missing_limits
    return setting == REFUSE or (setting == AUTO and os.path.isdir(SYSTEMD))


def of(untrusted: dict[str, Any]) -> list[str]:
    """The limits that an agent says were not applied; an answer without a word of it names none."""
    names = untrusted.get("limits_missing")
    return [name for name in NAMES if name in names] if isinstance(names, list) else []


def refusal(workspace: Workspace, missing: list[str]) -> LimitsNotEnforceable:
    """The refusal, with both ways out: without the limits, or the administrator's word."""
    without = json.dumps({"resources": dict.fromkeys(missing)})
    return LimitsNotEnforceable(
        f"this host cannot apply {' and '.join(missing)} to {workspace.name}: no cgroup controllers",
        hint=f"svc ws edit {workspace.name} --file - <<< '{without}'"
        "   (or an administrator sets SVC_MISSING_LIMITS=allow)",
        details={"missing": missing},
    )
