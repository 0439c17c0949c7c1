"""Disk usage of a store's images, what uses them, and removal.

"`image prune`: removes unused images in the caller's store", and "never removes
what a workspace needs": neither an image that a container was made from, nor one
that a workspace without a container names or that an upgrade would take, nor one
that an operation works with.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import suppress
from typing import Any, NamedTuple

from svc.actions.table import IMAGE_DELETE, IMAGE_PRUNE, IMAGE_REMOVE
from svc.db.connect import database, write
from svc.domain import operations, pages, untrusted
from svc.domain.audit import audit
from svc.domain.images import images, records
from svc.domain.principal import Caller
from svc.domain.quotas import quotas
from svc.domain.templates import rows as template_rows
from svc.errors import Conflict, EngineFailed, NotFound, OperationInProgress, SvcError
from svc_helper.wire.limits import IMAGES_AT_ONCE

USAGE_S, PRUNE_S = 60, 120  # reading all layers; removing many images
PLATFORMS_MAX = 32  # of one list of images, which have its digest in common
NAMES_MAX = 200  # of one image; of workspaces in one reply
NAME_MAX = 512  # characters; Podman takes longer ones than a template may name

_IMAGE_ID = re.compile(r"[0-9a-f]{64}")  # as the helper checks it
_ID_BEGIN = re.compile(r"[0-9a-f]{12,64}")  # as people give it
SHORT_ID = 12


class Usage(NamedTuple):
    """One image of a store, as its user's agent described it."""

    image_id: str
    names: tuple[str, ...]
    digest: str | None
    size_bytes: int
    shared_bytes: int
    unique_bytes: int
    containers: int
    created_at: str | None
    left_by_build: bool


class Store(NamedTuple):
    """All images of one store, their bytes together, the bytes free on its disk, and its unused volumes."""

    images: list[Usage]
    total_bytes: int
    free_bytes: int
    unused_volumes: int


def of_store(caller: Caller) -> Store:
    """Read the caller's own store; raises EngineFailed for an implausible reply."""
    found = caller.ask("image.usage", {}, timeout_s=USAGE_S)
    rows = found.get("images")
    if type(rows) is not list or not all(type(row) is dict for row in rows):
        raise EngineFailed("the engine's answer is no list of images")
    usages = [_usage(row) for row in rows]
    _require_distinct(usages)
    total = untrusted.find_capped(found, "total_bytes")
    if total is None:  # an estimate: shared layers count once
        total = sum(one.unique_bytes for one in usages) + max((one.shared_bytes for one in usages), default=0)
    volumes = untrusted.find_capped(found, "unused_volumes") or 0
    _remember_total(caller, max(0, total))
    return Store(usages, total, untrusted.get_capped(found, "free_bytes"), volumes)


def read_again(caller: Caller) -> None:
    """Read the store after a change, for the figures of its owner and of administrators."""
    with suppress(SvcError):  # the next look has them
        of_store(caller)


def _remember_total(caller: Caller, total: int) -> None:
    known = database.execute_sql("SELECT image_bytes FROM users WHERE id = ?", (caller.user_id,)).fetchone()
    if known is not None and known[0] != total:  # the usual case costs no write
        with write():
            database.execute_sql("UPDATE users SET image_bytes = ? WHERE id = ?", (total, caller.user_id))


def _require_distinct(usages: list[Usage]) -> None:
    """Bound the reply: a name has one image, a digest few, since each adds workspaces and templates."""
    names = [name for one in usages for name in one.names]
    digests = Counter(one.digest for one in usages if one.digest)
    if len(set(names)) < len(names) or any(count > PLATFORMS_MAX for count in digests.values()):
        raise EngineFailed("the engine's answer has many images of one name")


def _usage(row: dict[str, Any]) -> Usage:
    names = row.get("names")
    if type(names) is not list or not all(type(name) is str for name in names):
        raise EngineFailed("the engine's answer has no usable names")
    names = [name for name in names if len(name) <= NAME_MAX]
    image_id = untrusted.get_text(row, "image_id", 64)
    if not _IMAGE_ID.fullmatch(image_id):
        raise EngineFailed("the engine's answer has no usable image_id")
    return Usage(
        image_id,
        tuple(dict.fromkeys(names[:NAMES_MAX])),
        untrusted.find_text(row, "digest", 80),
        _count(row, "size_bytes"),
        _count(row, "shared_bytes"),
        _count(row, "unique_bytes"),
        _count(row, "containers"),
        untrusted.find_text(row, "created_at", 40),
        row.get("left_by_build") is True,
    )


def _count(row: dict[str, Any], key: str) -> int:
    return max(0, untrusted.get_number(row, key))


# --- uses of images ---------------------------------------------------------------------


class References:
    """Image references with a value each, found by the names and the digest of a stored image."""

    def __init__(self) -> None:
        self._found: dict[str, list[Any]] = {}

    def add(self, image_ref: str, value: Any) -> None:
        """Add a value for a reference."""
        digest = image_ref.partition("@")[2]
        for key in {records.whole(image_ref), digest} - {""}:
            self._found.setdefault(key, []).append(value)

    def add_digest(self, digest: str, value: Any) -> None:
        """Add a value for the image of this digest, whatever it is called."""
        self._found.setdefault(digest, []).append(value)

    def of(self, one: Usage) -> list[Any]:
        """The values of all references to this image."""
        keys = (*one.names, one.digest or "")  # a reference with a digest is found by both
        return list({id(value): value for key in keys for value in self._found.get(key, ())}.values())


class Needs(NamedTuple):
    """The images that must stay: used by workspaces, their next upgrades or running operations."""

    workspaces: References
    upgrades: References
    operations: References
    building: bool

    def spare(self, one: Usage) -> bool:
        """Check that nothing needs an image; a running build needs its nameless ones."""
        if one.containers or any(of.of(one) for of in (self.workspaces, self.upgrades, self.operations)):
            return False
        return bool(one.names) or not self.building


def _needs(caller: Caller) -> Needs:
    building = database.execute_sql(
        "SELECT 1 FROM operations WHERE owner_id = ? AND status IN ('queued', 'running') AND kind <> 'pull'",
        (caller.user_id,),
    ).fetchone()
    needs = Needs(References(), References(), References(), building is not None)
    for name, image_ref, digest in _workspaces(caller):
        if digest is None:
            needs.workspaces.add(image_ref, name)
        else:
            needs.workspaces.add_digest(digest, name)
            needs.upgrades.add(image_ref, name)
    for image_ref in _in_operations(caller):
        needs.operations.add(image_ref, image_ref)
    return needs


def _workspaces(caller: Caller) -> list[tuple[str, str, str | None]]:
    """Name and image reference of each workspace, and the digest of what its container was made from."""
    return database.execute_sql(
        "SELECT name, image_ref, iif(container_id IS NULL, NULL, image_digest) FROM workspaces"
        " WHERE owner_id = ?",
        (caller.user_id,),
    ).fetchall()


def _in_operations(caller: Caller) -> set[str]:
    """The images of running operations, and the bases of their builds."""
    needed: set[str] = set()
    for image_ref, bases in database.execute_sql(
        f"SELECT json_extract({operations.REQUEST}, '$.image_ref'),"
        f" coalesce({pages.stored('r.images_json')}, '[]')"
        " FROM operations o LEFT JOIN template_revisions r"
        f" ON r.template_id = json_extract({operations.REQUEST}, '$.template_id')"
        f" AND r.revision = json_extract({operations.REQUEST}, '$.revision')"
        " WHERE o.owner_id = ? AND o.status IN ('queued', 'running')",
        (caller.user_id,),
    ):
        needed |= {image_ref, *json.loads(bases)} - {None}
    return needed


# --- overview and removal -----------------------------------------------------------------


def overview(caller: Caller) -> dict[str, Any]:
    """Every image of the caller's store: disk usage, alone and shared, and what uses it."""
    store, needs = of_store(caller), _needs(caller)
    templates = References()
    for image_ref, template in records.templates_of(caller):
        templates.add(image_ref, template)
    items = [_record(one, needs, templates) for one in store.images]
    items.sort(key=lambda item: (-item["unique_bytes"], item["image_id"]))
    return pages.whole(
        items,
        total_bytes=store.total_bytes,
        reclaimable_bytes=sum(item["reclaimable_bytes"] for item in items),
        free_bytes=store.free_bytes,
        unused_volumes=store.unused_volumes,
        quota_bytes=quotas.of(caller.user_id).max_image_bytes,
    )


def _record(one: Usage, needs: Needs, templates: References) -> dict[str, Any]:
    spare = needs.spare(one)
    return {
        "image_id": one.image_id,
        "names": list(one.names),
        "size_bytes": one.size_bytes,
        "unique_bytes": one.unique_bytes,
        "shared_bytes": one.shared_bytes,
        "reclaimable_bytes": one.unique_bytes if spare else 0,
        "unused": spare,
        "created_at": one.created_at,
        "used_by": sorted(used := set(needs.workspaces.of(one)))[:NAMES_MAX],
        "newer_for": sorted(set(needs.upgrades.of(one)) - used)[:NAMES_MAX],
        "templates": templates.of(one),
        "left_by_build": one.left_by_build,
        "containers": one.containers,
    }


def prune(caller: Caller) -> dict[str, Any]:
    """Remove every image that nothing needs, and the volumes of containers that are gone.

    {removed: [{image_id, names, size_bytes}], freed_bytes: by the images, removed_volumes}.

    The uses are read again before each part. The engine is never forced: it keeps
    images with containers, and bases of others.
    """
    before = of_store(caller)
    with audit.audited(caller, IMAGE_PRUNE, "images") as detail:
        gone: set[str] = set()
        for start in range(0, len(before.images), IMAGES_AT_ONCE):
            needs = _needs(caller)
            part = before.images[start : start + IMAGES_AT_ONCE]
            if ids := [one.image_id for one in part if needs.spare(one)]:
                found = caller.ask("image.prune", {"ids": ids, "volumes": False}, timeout_s=PRUNE_S)
                gone |= set(ids) & _texts(found.get("removed"))
        removed = [one for one in before.images if one.image_id in gone]
        detail["removed"] = [(one.names or (one.image_id,))[0] for one in removed]
        freed = detail["freed_bytes"] = _freed(caller, before, removed)
        volumes = 0
        if before.unused_volumes:
            found = caller.ask("image.prune", {"ids": [], "volumes": True}, timeout_s=PRUNE_S)
            volumes = detail["removed_volumes"] = untrusted.find_capped(found, "volumes") or 0
    _forget(caller, removed)
    return {
        "removed": [
            {"image_id": one.image_id, "names": list(one.names), "size_bytes": one.size_bytes}
            for one in removed
        ],
        "freed_bytes": freed,
        "removed_volumes": volumes,
    }


def _forget(caller: Caller, removed: list[Usage]) -> None:
    """Delete the rows of removed images."""
    known = References()
    for image_ref in records.references(caller):
        known.add(image_ref, image_ref)
    for image_ref in {ref for one in removed for ref in known.of(one)}:
        images.forget(caller, image_ref)


def _freed(caller: Caller, before: Store, removed: list[Usage]) -> int:
    """The decrease of the store; at least the bytes that the removed images used alone."""
    alone = sum(one.unique_bytes for one in removed)
    if not removed:
        return 0
    try:
        return max(alone, before.total_bytes - of_store(caller).total_bytes)
    except SvcError:
        return alone


def _texts(value: Any) -> set[str]:
    if type(value) is not list:
        raise EngineFailed("the engine's answer is no list of images")
    return {one for one in value if type(one) is str}


def remove(caller: Caller, ref: str) -> None:
    """Remove one image that nothing needs, by its id or the beginning of it, with all its names.

    Raises NotFound, and Conflict or OperationInProgress with what needs it. An image that
    others are built on can go: they keep its layers.
    """
    stored = of_store(caller).images if _ID_BEGIN.fullmatch(ref) else []
    found = [one for one in stored if one.image_id.startswith(ref)]
    if len(found) != 1:
        which = f"{len(found)} images begin with {ref}" if found else f"there is no image {ref} in your store"
        raise NotFound(which, hint="svc image overview")
    (one,) = found
    name = (one.names or (one.image_id[:SHORT_ID],))[0]
    _require_spare(caller, one, name)
    with audit.audited(caller, IMAGE_REMOVE, name, image=one.image_id):
        reply = caller.ask("image.prune", {"ids": [one.image_id], "volumes": False}, timeout_s=PRUNE_S)
        if one.image_id not in _texts(reply.get("removed")):
            raise Conflict(f"{name} has come into use meanwhile", hint="svc image overview")
        _forget(caller, [one])
    read_again(caller)


def _require_spare(caller: Caller, one: Usage, name: str) -> None:
    """Raise what keeps an image in the store: workspaces, operations, containers, a template."""
    needs = _needs(caller)
    if names := sorted(set(needs.workspaces.of(one))):
        raise _needed_by(name, names)
    if needs.operations.of(one) or (not one.names and needs.building):
        raise OperationInProgress(
            f"a running operation of yours uses {name}", hint="svc operation list --open"
        )
    if one.containers:
        count = f"{one.containers} container{'' if one.containers == 1 else 's'}"
        raise Conflict(
            f"{name} is needed by {count} made from it",
            hint=f"podman ps --all --filter ancestor={one.image_id[:SHORT_ID]}",
        )
    templates = References()
    for image_ref, template in records.templates_of(caller):
        templates.add(image_ref, template)
    if of_template := templates.of(one):
        raise Conflict(
            f"{name} is the image of the template {of_template[0]['name']}",
            hint=f"svc image delete {template_rows.reference(caller.user_id, of_template[0]['id'])}",
            details={"templates": of_template[:NAMES_MAX]},
        )


def _needed_by(name: str, workspaces: list[str]) -> Conflict:
    return Conflict(
        f"{name} is needed by {', '.join(workspaces[:5])}{' and others' if len(workspaces) > 5 else ''}",
        hint=f"svc ws delete {workspaces[0]}",
        details={"workspaces": workspaces[:NAMES_MAX]},
    )


def delete(caller: Caller, template_ref: str) -> None:
    """Remove a template's image from the caller's own store.

    Raises Conflict with the names of workspaces that use it,
    OperationInProgress, and NotFound when the store has no such image.
    """
    template = template_rows.find(caller, template_ref)
    image_ref = template.image_ref
    operations.require_none(caller, "image", image_ref)
    if image_ref in _in_operations(caller):
        raise OperationInProgress(f"a running operation of yours uses {image_ref}", hint="svc operation list")
    if names := records.used_by(caller, image_ref):
        raise _needed_by(image_ref, names)
    with audit.audited(caller, IMAGE_DELETE, image_ref, template=template.id):
        gone = caller.ask("image.remove", {"image": image_ref}, timeout_s=USAGE_S)
        images.forget(caller, image_ref)
        read_again(caller)
        if not untrusted.get_flag(gone, "removed"):
            name = template_rows.reference(caller.user_id, template.id)
            raise NotFound(
                f"the image {image_ref} is not in your store",
                hint=f"svc image {records.verb(image_ref)} {name} --wait",
            )
