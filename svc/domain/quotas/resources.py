"""The resources of a workspace: template defaults, the owner's request, template limits.

In the API's units: `cpu_limit` in cores, sizes in bytes. In a request null and a
missing key mean the template's default, "unlimited" no limit; in a record, a
template and a row null means no limit. Rows and the helper use thousandths of a core.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from svc.errors import ValidationFailed

LIMITED = ("cpu_limit", "memory_bytes", "shm_bytes", "pids_limit", "gpu_count")
THOUSANDTHS = 1000
UNLIMITED = "unlimited"


class Resources(NamedTuple):
    """Resources as in a workspace's row (`cpu_limit` in thousandths of a core)."""

    cpu_limit: int | None
    memory_bytes: int | None
    shm_bytes: int | None
    pids_limit: int | None
    gpu_count: int
    gpu_mode: str


def request_of(granted: Resources) -> dict[str, Any]:
    """The request that gets the same again."""
    request = {key: UNLIMITED if value is None else value for key, value in granted._asdict().items()}
    if granted.cpu_limit is not None:
        request["cpu_limit"] = granted.cpu_limit / THOUSANDTHS
    return request


def check_template(defaults: dict[str, Any], limits: dict[str, Any]) -> None:
    """Raise ValidationFailed for a default above the template's own limit."""
    over = [
        _over(f"defaults.{key}", limits[key])
        for key in LIMITED
        if defaults.get(key) is not None and limits.get(key) is not None and defaults[key] > limits[key]
    ]
    if over:
        raise ValidationFailed("a default exceeds the template's own limit", fields=over)


def resolve(
    request: dict[str, Any], defaults: dict[str, Any], limits: dict[str, Any], gpu: dict[str, Any]
) -> Resources:
    """The resources of a workspace: the request, else the default, else the limit.

    Raises ValidationFailed with each request above its limit, and for shared GPUs
    when the template (`gpu`) does not allow them. UNLIMITED gets the template's limit
    if there is one.
    """
    values: dict[str, Any] = {}
    over = []
    shared = request.get("gpu_mode") == "shared" != defaults.get("gpu_mode")
    if shared and not gpu.get("allow_shared"):
        message = "the template does not allow shared GPUs"
        over.append({"field": "resources.gpu_mode", "code": "not_shared", "message": message})
    for key in LIMITED:
        value, limit = request.get(key), limits.get(key)
        if value is None:
            value = defaults.get(key)
        if value in (None, UNLIMITED):
            value = 0 if key == "gpu_count" else limit
        if limit is not None and value > limit:
            over.append(_over(f"resources.{key}", limit))
        values[key] = value
    if over:
        raise ValidationFailed("the request exceeds the template's limits", fields=over)
    if values["cpu_limit"] is not None:
        values["cpu_limit"] = max(1, round(values["cpu_limit"] * THOUSANDTHS))
    mode = request.get("gpu_mode") or defaults.get("gpu_mode") or "exclusive"
    return Resources(**values, gpu_mode=mode)


def _over(field: str, limit: Any) -> dict[str, str]:
    return {"field": field, "code": "over_limit", "message": f"at most {limit}"}
