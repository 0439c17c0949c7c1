"""A template's source: checks of the input's `source` as a whole.

It is a registry image or a Dockerfile; a published managed recipe has both. "A
global template's Dockerfile is read-only": a clone can have another one.
"""

from __future__ import annotations

from typing import Any

from svc.actions.commands import command
from svc.actions.table import TEMPLATE_CLONE
from svc.domain import registries
from svc.domain.principal import Caller
from svc.domain.templates import rows
from svc.domain.templates.revisions import BUILT, source_of
from svc.domain.templates.rows import Source, Template
from svc.errors import Conflict, ReadOnly, ValidationFailed, invalid_field


def new(
    request: dict[str, Any],
    *,
    is_global: bool,
    context: str | None = None,
    written_by: int | None = None,
    bundle_digest: str | None = None,
) -> Source:
    """The source of a new template; raises ValidationFailed, naming the field."""
    kind, dockerfile = request.get("type", "registry"), request.get("dockerfile")
    image_ref, local_only = request.get("image_ref"), request.get("local_only", False)
    if kind == "registry":
        if image_ref is None:
            raise _wrong("image_ref", "required", "a registry template names its image")
        _check_image(image_ref)
        if dockerfile is not None and not is_global:
            raise _wrong("dockerfile", "both", "only a global template has both an image and a Dockerfile")
    else:
        if dockerfile is None:
            raise _wrong("dockerfile", "required", "a Dockerfile template has its text here")
        if image_ref is not None:
            raise _wrong("image_ref", "both", "the image of a Dockerfile is named by the service")
    _require_local(kind, local_only, is_global)
    return Source(
        kind, image_ref, dockerfile, context, local_only,
        written_by if dockerfile is not None else None, bundle_digest,
    )  # fmt: skip


def edited(caller: Caller, template: Template, patch: dict[str, Any]) -> Source:
    """The source after a change; raises ReadOnly, Conflict and ValidationFailed, naming the field."""
    before = source_of(template)
    source = before
    if patch.get("type", before.type) != before.type:
        raise _wrong("type", "fixed", f"{template.name} stays a {before.type} template; create another one")
    if "image_ref" in patch and before.type != "registry":
        raise _wrong("image_ref", "both", "the image of a Dockerfile is named by the service")
    if "image_ref" in patch:
        source = source._replace(image_ref=_check_image(patch["image_ref"]))
    if "dockerfile" in patch:
        require_writable(caller, template)
        if patch["dockerfile"] != before.dockerfile:
            source = source._replace(dockerfile=patch["dockerfile"], written_by=caller.user_id)
    if "local_only" in patch:
        _require_local(before.type, patch["local_only"], template.owner_id is None)
        source = source._replace(local_only=patch["local_only"])
    return source


def require_writable(caller: Caller, template: Template) -> None:
    """Raise ReadOnly for a global template's Dockerfile and context, Conflict where there is none."""
    name = rows.reference(caller.user_id, template.id)
    if template.owner_id is None:
        raise ReadOnly(
            f"{template.name} is global: its Dockerfile and build context are read-only; a clone has its own",
            hint=command(TEMPLATE_CLONE, ref=name, name=f"{template.name}-own"),
        )
    if template.dockerfile is None:
        raise Conflict(
            f"{template.name} is made from a registry's image: it has no Dockerfile and no build context",
            hint=f"svc template get {name}",
        )


def _check_image(image_ref: str) -> str:
    registries.check_image_ref(image_ref)
    if image_ref.startswith(BUILT):
        raise _wrong("image_ref", "reserved", f"{BUILT} is reserved for images that the service builds")
    return image_ref


def _require_local(kind: str, local_only: bool, is_global: bool) -> None:
    if local_only and (kind != "dockerfile" or not is_global):
        raise _wrong("local_only", "not_here", "only a global Dockerfile template is local only")


def _wrong(key: str, code: str, message: str) -> ValidationFailed:
    return invalid_field(f"source.{key}", code, message)
