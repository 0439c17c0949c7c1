"""Checks across the parts of a template's document: ports of launchers, roots of mounts, sizes.

A patch has some parts only, so the whole resulting document is checked.
"""

from __future__ import annotations

import json
from typing import Any

from svc.domain import configuration
from svc.domain.quotas import resources
from svc.errors import ValidationFailed
from svc.limits import DOCUMENT_MAX, ENV_BYTES_MAX, PORT_KINDS
from svc_helper.wire.limits import ACCESS_OWNER

IDLE_NONE = {"action": "none", "after_minutes": None}  # of a document without `idle`
# Of a port whose document has the name alone; without a container port it has the host's number.
PORT_DEFAULTS = {"container_port": None, "access": ACCESS_OWNER, "kind": PORT_KINDS[0], "user": None}
WORK = "work"  # "Mounts the file root `work` at `/work`": always


def full_port(port: dict[str, Any]) -> dict[str, Any]:
    """A port of a document with all its keys."""
    return {"name": port["name"], **PORT_DEFAULTS, **port}


def check(spec: dict[str, Any]) -> None:
    """Raise ValidationFailed, naming each field, for a document whose parts do not fit together."""
    resources.check_template(spec["defaults"], spec["limits"])
    wrong = [*_gpu(spec), *_launchers(spec), *_mounts(spec), *_size(spec)]
    if wrong:
        raise ValidationFailed(f"{wrong[0]['field']}: {wrong[0]['message']}", fields=wrong)


def check_size(spec: dict[str, Any], sealed: dict[str, str]) -> None:
    """Raise ValidationFailed, naming the longest part, for a document over DOCUMENT_MAX, secrets included."""
    sizes = {key: len(json.dumps(value)) for key, value in spec.items()}
    sizes["env"] += len(json.dumps(sealed))
    if sum(sizes.values()) > DOCUMENT_MAX:
        longest = max(sizes, key=lambda key: sizes[key])
        message = f"a template is at most {DOCUMENT_MAX} bytes as JSON, without its Dockerfile"
        raise ValidationFailed(f"{longest}: {message}", fields=[_wrong(longest, message)])


def _gpu(spec: dict[str, Any]) -> list[dict[str, str]]:
    if spec["defaults"].get("gpu_mode") != "shared" or spec["gpu"].get("allow_shared"):
        return []
    return [_wrong("defaults.gpu_mode", "shared is only possible with gpu.allow_shared true")]


def _launchers(spec: dict[str, Any]) -> list[dict[str, str]]:
    ports = {port["name"] for port in spec["ports"]}
    return [
        _wrong(f"launchers.{number}.port", f"the template has no port {launcher['port']}")
        for number, launcher in enumerate(spec["launchers"])
        if launcher["port"] is not None and launcher["port"] not in ports
    ]


def _mounts(spec: dict[str, Any]) -> list[dict[str, str]]:
    roots = configuration.current.file_roots
    others = ", ".join(sorted(set(roots) - {WORK})) or "none but work"
    wrong = []
    for number, mount in enumerate(spec["mounts"]):
        field, root = f"mounts.{number}.root", mount["root"]
        if root == WORK:
            wrong.append(_wrong(field, "work is always mounted, at /work"))
        elif root not in roots:
            wrong.append(_wrong(field, f"this host has no such file root (SVC_FILE_ROOTS has {others})"))
    return wrong


def _size(spec: dict[str, Any]) -> list[dict[str, str]]:
    """A container gets the variables in one message, a launcher gets them with its own."""
    shared = _bytes(spec["env"])
    wrong = []
    if shared > ENV_BYTES_MAX:
        wrong.append(_wrong("env", f"at most {ENV_BYTES_MAX} bytes of names and values"))
    for number, launcher in enumerate(spec["launchers"]):
        if shared + _bytes(launcher["env"]) > ENV_BYTES_MAX:
            message = f"at most {ENV_BYTES_MAX} bytes of names and values, the template's included"
            wrong.append(_wrong(f"launchers.{number}.env", message))
    return wrong


def _bytes(env: list[dict[str, Any]]) -> int:
    return sum(len(one["name"].encode()) + len((one.get("value") or "").encode()) for one in env)


def _wrong(field: str, message: str) -> dict[str, str]:
    return {"field": field, "code": "invalid", "message": message}
