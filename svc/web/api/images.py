"""Images in the caller's own store, and the registry policy."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from svc.actions import table
from svc.actions.access import ACCOUNTS, MEMBERS
from svc.domain import pages, registries
from svc.domain.images import builds, dry_runs, images
from svc.domain.images import requests as image_requests
from svc.domain.images import usage as image_usage
from svc.domain.principal import Caller
from svc.web.access import action, route
from svc.web.schemas.images import (
    ALLOWLIST,
    BUILDS,
    IMAGES,
    BuildQuery,
    BuildRequest,
    CheckedImage,
    Image,
    ImageQuery,
    Overview,
    Pruned,
    Registries,
)
from svc.web.schemas.operations import ACCEPTED

blueprint = Blueprint("images", __name__)


@route(blueprint, "GET", "/images", MEMBERS, query=ImageQuery(), answer=IMAGES)
def list_(caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """The image of each visible template, also where several share one, and the caller's others."""
    return images.page_of(caller, query["page"])


@route(blueprint, "GET", "/images/allowlist", ACCOUNTS, answer=ALLOWLIST)
def allowlist(_caller: Caller) -> dict[str, Any]:
    """The registries that images may come from."""
    return pages.whole(registries.allowlist())


@route(blueprint, "GET", "/templates/<ref>/image", MEMBERS, answer=Image())
def get(caller: Caller, ref: str) -> dict[str, Any]:
    """A template's image in the caller's own store."""
    return images.of_template(caller, ref)


@route(blueprint, "GET", "/templates/<ref>/image/preflight", MEMBERS, answer=CheckedImage())
def preflight(caller: Caller, ref: str) -> dict[str, Any]:
    """What the pull or build of a template's image would download now, and whether that fits."""
    return dry_runs.of(caller, ref)


@action(blueprint, table.IMAGE_PULL, answer=ACCEPTED, status=202)
def pull(caller: Caller, ref: str) -> dict[str, Any]:
    """Pull a template's image into the caller's own store, as an operation."""
    return {"operation": image_requests.pull(caller, ref)}


@action(
    blueprint, table.IMAGE_BUILD,
    body=BuildRequest(), answer=ACCEPTED, status=202,
)  # fmt: skip
def build(caller: Caller, ref: str, body: dict[str, Any]) -> dict[str, Any]:
    """Build a Dockerfile template's image in the caller's own store, as an operation."""
    build_args = {argument["name"]: argument["value"] for argument in body["build_args"]}
    secrets = {secret["id"]: secret["value"] for secret in body["secrets"]}
    return {"operation": image_requests.build(caller, ref, build_args, secrets)}


@action(blueprint, table.IMAGE_DELETE, status=204)
def delete(caller: Caller, ref: str) -> None:
    """Remove a template's image from the caller's own store, unless a workspace needs it."""
    image_usage.delete(caller, ref)


@route(blueprint, "GET", "/images/builds", MEMBERS, query=BuildQuery(), answer=BUILDS)
def list_builds(caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """The caller's builds, newest first."""
    return builds.page_of(caller, query["page"])


@route(blueprint, "GET", "/images/overview", MEMBERS, answer=Overview())
def overview(caller: Caller) -> dict[str, Any]:
    """The images of the caller's own store with their sizes, shared sizes and users."""
    return image_usage.overview(caller)


@action(blueprint, table.IMAGE_PRUNE, answer=Pruned())
def prune(caller: Caller) -> dict[str, Any]:
    """Remove the unused images of the caller's own store; never one that a workspace needs."""
    return image_usage.prune(caller)


@action(blueprint, table.IMAGE_REMOVE, status=204)
def remove(caller: Caller, ref: str) -> None:
    """Remove one image of the caller's own store, by its id or 12 or more digits of it; one in use stays."""
    image_usage.remove(caller, ref)


@action(
    blueprint, table.ADMIN_REGISTRIES,
    body=Registries(), answer=Registries(),
)  # fmt: skip
def replace(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """Compare the registry policy; another one is refused with the command that sets it on the host."""
    return {"registries": registries.require_unchanged(caller, body["registries"])}
