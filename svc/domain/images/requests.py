"""Requests of users for pulls and builds: checked, then queued for the worker.

"Pulls a registry image into the caller's own store", "Builds a Dockerfile-backed
template in the caller's own store".
"""

from __future__ import annotations

from typing import Any

from svc.actions.commands import command
from svc.actions.table import IMAGE_BUILD, IMAGE_PULL
from svc.domain import operations, registries
from svc.domain.images import build_secrets, builds, pulls
from svc.domain.images.build_secrets import BuildSecrets
from svc.domain.principal import Caller
from svc.domain.templates import rows as template_rows
from svc.domain.templates import templates
from svc.domain.templates.rows import Template
from svc.errors import Conflict
from svc.host.ids import new_id


def require_source(caller: Caller, template: Template) -> None:
    """Raise RegistryNotAllowed or ValidationFailed unless the template's image may be pulled or built."""
    if template.source_type == "registry":
        registries.require(template.image_ref)
    else:
        builds.require(caller, template)


def pull(caller: Caller, ref: str) -> dict[str, Any]:
    """Queue the pull of a template's image; refuses a disabled template and an off-list registry."""
    template = templates.usable(caller, ref)
    if template.source_type != "registry":
        raise Conflict(
            f"{template.name} is made from a Dockerfile: its image is built, not pulled",
            hint=command(IMAGE_BUILD, ref=template_rows.reference(caller.user_id, template.id)),
        )
    registries.require(template.image_ref)
    request = {"image_ref": template.image_ref, "template_id": template.id}
    return operations.enqueue(caller, "pull", "image", template.image_ref, request)


def build(
    caller: Caller,
    ref: str,
    build_args: builds.BuildArgs | None = None,
    secrets: BuildSecrets | None = None,
) -> dict[str, Any]:
    """Queue the build of a template's image from its Dockerfile.

    A disabled template may be built, since it must be before it is enabled. "Also
    usable as a private fallback for a published managed recipe whose download
    failed", then without arguments and secrets. Raises Conflict, RegistryNotAllowed, ValidationFailed.
    """
    template = template_rows.find(caller, ref)
    if template.source_type == "registry":
        _require_fallback(caller, template)
        if build_args or secrets:
            raise Conflict(
                f"{template.name} is a published recipe: it is built as it is, without arguments and secrets"
            )
    builds.require(caller, template, build_args, secrets)
    request: dict[str, Any] = {
        "image_ref": template.image_ref,
        "template_id": template.id,
        "revision": template.revision,
    }
    if build_args:
        request["build_args"] = dict(build_args)
    operation_id = new_id("op")
    if secrets:  # their ids; the values are with the agent, before the worker can begin
        operations.require_none(caller, "image", template.image_ref)
        request["secrets"] = sorted(secrets)
        build_secrets.keep(caller, operation_id, secrets)
    return operations.enqueue(caller, "build", "image", template.image_ref, request, operation_id)


def _require_fallback(caller: Caller, template: Template) -> None:
    """Raise unless this recipe is published, enabled, and the caller's download of its image failed."""
    pull_it = command(IMAGE_PULL, ref=template_rows.reference(caller.user_id, template.id))
    if template.dockerfile is None:
        raise Conflict(f"{template.name} comes from a registry: its image is pulled, not built", hint=pull_it)
    templates.usable(caller, template.id)
    registries.require(template.image_ref)
    if not pulls.last_failed(caller, template.image_ref):
        raise Conflict(
            f"{template.name} can only be built after a failed download; pull its image first", hint=pull_it
        )
