"""Enabling and disabling templates: the review of global ones, the build before it.

"Global ones are disabled until a superuser enables them; private ones their
owner enables." A Dockerfile is built first, in the store of whoever enables it;
a `local_only` managed recipe needs the review alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from svc.actions.commands import command
from svc.actions.table import IMAGE_BUILD, TEMPLATE_DISABLE, TEMPLATE_ENABLE, Action
from svc.db.connect import database, write
from svc.domain import registries
from svc.domain.audit import audit
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates import records, rows, templates
from svc.domain.templates.rows import Template
from svc.errors import AdminOnly, BuildRequired, Conflict
from svc.host.ids import now

IsBuilt = Callable[[Caller, Template], bool]  # images.builds.is_built: the layer of images is above this one


def awaiting(caller: Caller, page: Page) -> dict[str, Any]:
    """One page of the global templates that await a review; administrators only."""
    if not caller.administers:
        raise AdminOnly("only an administrator reviews templates")
    return records.awaiting(caller, page)


def enable(caller: Caller, ref: str, revision: int | None = None, *, is_built: IsBuilt) -> dict[str, Any]:
    """Enable a template; idempotent.

    Raises Conflict where `revision` is not the present one, RegistryNotAllowed
    for an off-list registry, BuildRequired for a Dockerfile that was not built.
    """
    template = templates.changeable(caller, ref)
    _require_present(caller, template, template.revision if revision is None else revision)
    if template.source_type == "registry":
        registries.require(template.image_ref)
    for image in template.images:
        registries.require(image)
    _require_built(caller, template, is_built)
    return _set_status(caller, template, "enabled", TEMPLATE_ENABLE)


def disable(caller: Caller, ref: str) -> dict[str, Any]:
    """Disable a template for new workspaces; existing ones continue. Idempotent."""
    return _set_status(caller, templates.changeable(caller, ref), "disabled", TEMPLATE_DISABLE)


def _require_built(caller: Caller, template: Template, is_built: IsBuilt) -> None:
    """Raise BuildRequired unless the caller has built the present Dockerfile successfully."""
    if template.source_type != "dockerfile" or template.local_only:
        return
    if caller.uid == 0:
        raise BuildRequired(
            f"{template.name} is built before it is enabled, and root builds no images:"
            " a superuser with an account of their own builds and enables it",
            hint="sudo svc admin list-users",
        )
    if not is_built(caller, template):
        raise BuildRequired(
            f"{template.name} is made from a Dockerfile: build it once, as it is now, before it is enabled",
            hint=command(IMAGE_BUILD, ref=rows.reference(caller.user_id, template.id)),
            details={"image_ref": template.image_ref, "revision": template.revision},
        )


def _require_present(caller: Caller, template: Template, revision: int) -> None:
    if template.revision != revision:
        raise Conflict(
            f"{template.name} is at revision {template.revision}, not {revision}: review it again",
            hint=f"svc template get {rows.reference(caller.user_id, template.id)}",
            details={"revision": template.revision},
        )


def _set_status(caller: Caller, template: Template, status: str, action: Action) -> dict[str, Any]:
    """Change the status of this revision; raises Conflict if there is a newer one."""
    with write():
        _require_present(caller, templates.changeable(caller, template.id), template.revision)
        changed = database.execute_sql(
            "UPDATE templates SET status = ?1, updated_at = ?2,"
            " reviewed_revision = iif(?1 = 'enabled', revision, reviewed_revision)"
            " WHERE id = ?3 AND status <> ?1",
            (status, now(), template.id),
        ).rowcount
        if changed:
            audit.add(caller, action, template.id, "ok", revision=template.revision)
    return templates.get(caller, template.id)
