"""The command lines for a workspace with given resources."""

from __future__ import annotations

from typing import Any

from svc.db.connect import database
from svc.domain.principal import Caller
from svc.domain.quotas import quotas
from svc.domain.quotas.resources import Resources
from svc.domain.templates.rows import Template

GIB, MIB = 2**30, 2**20


def record(granted: Resources) -> dict[str, Any]:
    """Resources in the API's units."""
    return granted._asdict() | {"cpu_limit": quotas.cores(granted.cpu_limit)}


def free_name(caller: Caller, template: Template) -> str:
    """A name that none of the caller's workspaces has: the template's with a number."""
    rows = database.execute_sql("SELECT name FROM workspaces WHERE owner_id = ?", (caller.user_id,))
    taken = {row[0] for row in rows}
    stem = template.name[:56]
    return next(name for number in range(1, len(taken) + 2) if (name := f"{stem}-{number}") not in taken)


def create(template_ref: str, name: str, resources: dict[str, Any]) -> str:
    """The command that creates a workspace with these resources, in the API's units; None has no option."""
    return f"svc ws create --template {template_ref} --name {name}{_options(resources)}"


def set_up_and_start(template_ref: str, name: str, resources: dict[str, Any]) -> str:
    """The commands that get a missing image, create the workspace and start it."""
    options = _options(resources)
    return f"svc ws setup --template {template_ref} --name {name}{options} && svc ws start {name}"


def _options(resources: dict[str, Any]) -> str:
    options = []
    for key, option, form in (
        ("cpu_limit", "--cpus", _number),
        ("memory_bytes", "--memory", _size),
        ("shm_bytes", "--shm-size", _size),
        ("pids_limit", "--pids", _number),
        ("gpu_count", "--gpu-count", _number),
    ):
        if resources[key] is not None:
            options.append(f" {option} {form(resources[key])}")
    if resources["gpu_count"]:
        options.append(f" --gpu-mode {resources['gpu_mode']}")
    return "".join(options)


def _number(count: float) -> str:
    return f"{count:g}" if isinstance(count, float) else str(count)


def _size(count: float) -> str:
    """Bytes as the command line takes them: 32g, 512m, or the number."""
    for unit, letter in ((GIB, "g"), (MIB, "m")):
        if count % unit == 0:
            return f"{int(count // unit)}{letter}"
    return str(int(count))
