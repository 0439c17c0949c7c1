"""Podman's descriptions of a container, as the facts that the verbs return."""

from __future__ import annotations

import time
from _datetime import datetime, timezone  # the C half alone: ten times quicker to import

from svc_helper.agent.podman.http import not_understood
from svc_helper.wire.quick_typing import Any

_STATUS = {
    "running": "running",
    "paused": "running",
    "stopping": "running",
    "created": "created",
    "configured": "created",
    "initialized": "created",
}


def from_inspect(untrusted: dict[str, Any]) -> dict[str, Any]:
    """The facts from the output of inspect, whose State is an object."""
    state = untrusted["State"]
    return {
        "container_id": _text(untrusted, "Id"),
        "image_id": _text(untrusted, "Image"),
        "status": _STATUS.get(str(state.get("Status")), "stopped"),
        "pid": _number(state, "Pid") or None,
        "exit_code": _number(state, "ExitCode"),
        "oom_killed": state.get("OOMKilled") is True,
        "started_at": _time(state.get("StartedAt")),
        "finished_at": _time(state.get("FinishedAt")),
        "error": "the container's command could not be run" if state.get("Error") else None,
    }


def from_list(untrusted: dict[str, Any]) -> dict[str, Any]:
    """The same facts from one row of a list, which lacks `oom_killed` and `error`."""
    return {
        "container_id": _text(untrusted, "Id"),
        "image_id": _text(untrusted, "ImageID"),
        "status": _STATUS.get(str(untrusted.get("State")), "stopped"),
        "pid": _number(untrusted, "Pid") or None,
        "exit_code": _number(untrusted, "ExitCode"),
        "oom_killed": False,
        "started_at": _stamp(_number(untrusted, "StartedAt")),
        "finished_at": _stamp(_number(untrusted, "ExitedAt")),
        "error": None,
    }


def _text(untrusted: dict[str, Any], name: str) -> str:
    value = untrusted.get(name)
    if not isinstance(value, str) or len(value) > 128:
        raise not_understood()
    return value


def _number(untrusted: dict[str, Any], name: str) -> int:
    value = untrusted.get(name, 0)
    if type(value) is not int or not -(2**62) < value < 2**62:
        raise not_understood()
    return value


def _time(untrusted: Any) -> str | None:
    """Podman's time (RFC 3339, any zone, nanoseconds) as UTC with milliseconds; None for its year one."""
    if not isinstance(untrusted, str) or untrusted.startswith("0001-") or len(untrusted) > 40:
        return None
    try:
        at = datetime.fromisoformat(untrusted).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"


def _stamp(seconds: int) -> str | None:
    if not 0 < seconds < 2**33:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))
