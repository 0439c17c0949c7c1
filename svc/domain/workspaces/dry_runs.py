"""Whether a workspace with exactly these resources could be created and started now; it reserves nothing.

    {allocatable_now, blocked_by: [{code, message, hint, action}], template, resources, image_status,
     gpus: [{index, uuid, model}], quota: {name, max_*}, used, after, remaining}

`gpus` are those that a start would take now; `after` is the use of the quota while the
workspace runs, `remaining` what is left of the quota then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from svc.actions.commands import action_of
from svc.db.connect import database
from svc.domain import names
from svc.domain.gpus.gpus import Gpu
from svc.domain.images.records import STATUS as IMAGE_STATUS
from svc.domain.licence import gate
from svc.domain.principal import Caller
from svc.domain.quotas import quotas, usage
from svc.domain.quotas.quotas import Claim, Quota
from svc.domain.quotas.resources import Resources
from svc.domain.templates import templates
from svc.domain.templates.rows import Template
from svc.domain.workspaces import commands, leases, ports, workspaces
from svc.domain.workspaces.leases import Offer
from svc.errors import SvcError


class Draft(NamedTuple):
    """A workspace that is not created, as leases and quotas need it."""

    owner_id: int
    name: str
    template: Template
    template_ref: str
    granted: Resources
    id: str = ""

    @property
    def gpu_count(self) -> int:
        """Its GPUs."""
        return self.granted.gpu_count

    @property
    def gpu_mode(self) -> str:
        """Whether it shares them."""
        return self.granted.gpu_mode

    @property
    def claim(self) -> Claim:
        """What its start would take of the owner's quota."""
        return Claim(
            "", self.owner_id, self.name, self.granted.cpu_limit, self.granted.memory_bytes, self.gpu_count,
            self.command_with,
        )  # fmt: skip

    def command_with(self, changed: dict[str, Any]) -> str:
        """The command that creates it with other resources."""
        resources = commands.record(self.granted) | changed
        return commands.create(self.template_ref, self.name, resources)


def of(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """The record for the body of a create, whose name may be missing.

    Raises NotFound, TemplateDisabled and ValidationFailed, as a create does.
    """
    template = templates.usable(caller, request["template"])
    columns = workspaces.columns_of(template, request)
    ports.combine(template.spec["ports"], request.get("ports", []))
    granted = Resources(*(columns[key] for key in Resources._fields))
    name = request.get("name") or commands.free_name(caller, template)
    draft = Draft(caller.user_id, name, template, request["template"], granted)
    offer = leases.offer()
    blocks, gpus = _blocks(caller, draft, offer, is_named="name" in request)
    quota = quotas.of(caller.user_id)
    used = usage.amounts(caller.user_id, quota)
    after = _after(used, granted, quota)
    return {
        "allocatable_now": not blocks,
        "blocked_by": blocks,
        "template": {"id": template.id, "name": template.name},
        "resources": commands.record(granted),
        "image_status": _image_status(caller, template),
        "gpus": [{"index": offer.place(gpu), "uuid": gpu.uuid, "model": gpu.model} for gpu in gpus],
        "quota": quotas.record(quota),
        "used": used,
        "after": after,
        "remaining": usage.remaining(quota, after),
    }


def _blocks(
    caller: Caller, draft: Draft, offer: Offer, *, is_named: bool
) -> tuple[list[dict[str, Any]], list[Gpu]]:
    """What is in the way, each with its message and command, and the GPUs that it would get."""
    blocks: list[dict[str, Any]] = []

    def checked(check: Callable[[], Any]) -> Any:
        try:
            return check()
        except SvcError as error:
            reason = {"message": error.message, "hint": error.hint, "action": action_of(error.hint)}
            blocks.append({"code": error.code, **reason})
            return None

    checked(lambda: gate.require_valid(caller.user_id))
    if is_named:
        checked(lambda: _require_free_name(caller, draft.name))
    checked(lambda: quotas.require_room(caller.user_id))
    checked(lambda: quotas.require_start(draft.claim))
    gpus = checked(lambda: leases.choose(draft, offer)) or []
    if gpus:
        checked(lambda: gate.require_gpus(len(gpus), ahead=True))
    return blocks, gpus


def _require_free_name(caller: Caller, name: str) -> None:
    taken = "SELECT 1 FROM workspaces WHERE owner_id = ? AND name = ?"
    if database.execute_sql(taken, (caller.user_id, name)).fetchone():
        raise names.taken("workspace", name)


def _after(used: dict[str, Any], granted: Resources, quota: Quota) -> dict[str, Any]:
    """The use while the workspace runs; without a limit it counts with the policy's whole limit."""
    cpu = granted.cpu_limit if granted.cpu_limit is not None else quota.max_cpu or 0
    memory = granted.memory_bytes if granted.memory_bytes is not None else quota.max_memory_bytes or 0
    more = {
        "workspaces": 1, "running": 1, "gpus": granted.gpu_count, "cpu": quotas.cores(cpu),
        "memory_bytes": memory,
    }  # fmt: skip
    return {key: amount + more.get(key, 0) for key, amount in used.items()}


def _image_status(caller: Caller, template: Template) -> str:
    """The status of its image, as the lists have it."""
    row = database.execute_sql(
        f"SELECT {IMAGE_STATUS} FROM images i WHERE i.owner_id = ? AND i.image_ref = ?",
        (caller.user_id, template.image_ref),
    ).fetchone()
    return str(row[0]) if row else "missing"
