"""What a pull or build would download, before it is begun: shown to its user, and nothing is refused.

The record, with the reason, when it does not fit, that the operation would end with:

    {verb, ref, images, download_bytes, present_bytes, needed_bytes, free_bytes, used_bytes, quota_bytes,
     fits, blocked_by, message, hint, action}
"""

from __future__ import annotations

from typing import Any

from svc.actions.commands import action_of
from svc.domain import engine_hints, registries
from svc.domain.images import builds, preflight, usage
from svc.domain.images.preflight import Figures
from svc.domain.places import long_calls
from svc.domain.principal import Caller
from svc.domain.quotas import quotas
from svc.domain.templates import rows as template_rows
from svc.domain.templates import templates
from svc.domain.templates.rows import Template
from svc.errors import QuotaExceeded, StorageFull


def of(caller: Caller, ref: str) -> dict[str, Any]:
    """The record for a template's image; raises what the request of the operation, or its registry, would.

    It asks registries, so it counts as a long call and ends with the client's connection.
    """
    template = template_rows.find(caller, ref)
    verb = "build" if template.source_type == "dockerfile" else "pull"
    with long_calls.counted(caller):
        images, extra_bytes = _sources(caller, template)
        store = usage.of_store(caller)
        figures = Figures(0, 0, store.free_bytes)
        if images:
            with engine_hints.completing(**_names(caller, template, images, verb)):
                figures = preflight.ask(caller, images, hangup_fd=caller.hangup_fd)
    quota = quotas.of(caller.user_id).max_image_bytes
    return {
        "verb": verb,
        "ref": template.image_ref,
        "images": images,
        **figures._asdict(),
        "needed_bytes": figures.needed_bytes + extra_bytes,
        "used_bytes": store.total_bytes,
        "quota_bytes": quota,
        **_judged(figures, quota, store.total_bytes, extra_bytes),
    }


def _names(caller: Caller, template: Template, images: list[str], verb: str) -> dict[str, str]:
    """What the hint of a failure may name."""
    hosts = {image.partition("/")[0] for image in images}
    names = {"template": template_rows.reference(caller.user_id, template.id), "verb": verb}
    return names | ({"registry": hosts.pop()} if len(hosts) == 1 else {})


def _sources(caller: Caller, template: Template) -> tuple[list[str], int]:
    """The images that come from registries, and the bytes of a build's own files."""
    if template.source_type == "registry":
        templates.usable(caller, template.id)
        registries.require(template.image_ref)
        return [template.image_ref], 0
    builds.require(caller, template)
    _, absent, size = builds.sources(caller, template)
    return absent, size


def _judged(figures: Figures, quota: int | None, used: int, extra_bytes: int) -> dict[str, Any]:
    try:
        preflight.require_room(figures, quota, used, extra_bytes)
    except (StorageFull, QuotaExceeded) as error:
        reason = {"message": error.message, "hint": error.hint, "action": action_of(error.hint)}
        return {"fits": False, "blocked_by": error.code, **reason}
    return {"fits": True, **dict.fromkeys(("blocked_by", "message", "hint", "action"))}
