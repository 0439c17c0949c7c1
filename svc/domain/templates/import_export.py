"""Templates out of bundles and into them: what the archive says, under the rules of templates.

"Imported templates start disabled", whoever imports and whatever for. Secret
values are never in a bundle: their variables are, and wait for one. An import
and an export elsewhere give the same digest, as long as the name was free.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

from svc.db.connect import database, write
from svc.domain import audit, operations
from svc.domain.principal import Caller
from svc.domain.templates import bundles, contexts, sources, templates
from svc.domain.templates import rows as template_rows
from svc.domain.templates.bundle_paths import DOCKERFILE, MANIFEST, refused
from svc.domain.templates.bundles import Bundle
from svc.domain.templates.rows import EMPTY_SPEC, Template
from svc.errors import AdminOnly, RootNotAllowed

NAME_MAX = 63  # as a slug
_SOURCE_KEYS = {"type", "image_ref", "local_only"}


class Exported(NamedTuple):
    """What was written: the template's name and the bundle's digest."""

    name: str
    digest: str


class Imported(NamedTuple):
    """What was made of a bundle."""

    id: str
    name: str
    digest: str

    def facts(self) -> dict[str, str]:
        """For the audit."""
        return {"name": self.name, "bundle": self.digest}


# --- out ---------------------------------------------------------------------------------


def export(caller: Caller, ref: str, file: BinaryIO) -> Exported:
    """Write the bundle of a template that the caller sees; raises NotFound, TooLarge."""
    with database.atomic("DEFERRED"):  # one state of everything: nothing is swept meanwhile
        template = template_rows.find(caller, ref)
        dockerfile = template.dockerfile
        recipe = None if dockerfile is None else dockerfile.encode()
        digest = bundles.write(file, described(template), recipe, contexts.files_of(template.context))
    return Exported(template.name, digest)


def described(template: Template) -> dict[str, Any]:
    """What a bundle's manifest says of a template: not whose it is, no secret's value, nothing empty."""
    spec = template.spec
    source: dict[str, Any] = {"type": template.source_type}
    if template.source_type == "registry":
        source["image_ref"] = template.image_ref
    if template.local_only:
        source["local_only"] = True
    spec["env"] = [_variable(one) for one in spec["env"]]
    said = {key: spec[key] for key, empty in EMPTY_SPEC.items() if spec[key] != empty}
    return {"name": template.name, "source": source, **said}


def _variable(one: Mapping[str, Any]) -> dict[str, Any]:
    if one.get("secret"):
        return {"name": one["name"], "secret": True}
    return {"name": one["name"], "value": one["value"]}


# --- in ----------------------------------------------------------------------------------


def require(caller: Caller, scope: str) -> None:
    """Raise AdminOnly, RootNotAllowed for who may not import into this scope."""
    if scope == "global" and not caller.administers:
        raise AdminOnly("only an administrator imports global templates")
    if scope == "private" and caller.uid == 0:
        raise RootNotAllowed(
            "root has no templates of its own", hint="sudo svc admin template import FILE --global"
        )


def wanted(bundle: Bundle, scope: str) -> dict[str, Any]:
    """What the bundle asks for, in the form in which a template is created; its values are unchecked.

    Raises ValidationFailed where source and members do not belong together. A
    private one out of a published recipe is built by its owner, as a clone is.
    """
    said = dict(bundle.template)
    untrusted = said.get("source")
    if "scope" in said or type(untrusted) is not dict or not set(untrusted) <= _SOURCE_KEYS:
        raise refused(
            MANIFEST, "manifest", "its template has no source of exactly type, image_ref, local_only"
        )
    if any(map(_tells_secret, said["env"] if type(said.get("env")) is list else [])):
        raise refused(MANIFEST, "secret_value", "it has the value of a secret variable, as no bundle does")
    source = dict(untrusted)
    if source.get("type") not in ("registry", "dockerfile"):
        raise refused(MANIFEST, "manifest", "its template is made from neither a registry nor a Dockerfile")
    recipe = bundle.dockerfile()
    if recipe is None and (bundle.members or source.get("type") == "dockerfile"):
        raise refused(DOCKERFILE, "missing", "not in the archive, though its template is built from one")
    if recipe is not None:
        source["dockerfile"] = _text(recipe)
        if scope == "private":
            source = {"type": "dockerfile", "dockerfile": source["dockerfile"]}
    return said | {"source": source, "scope": scope}


def _tells_secret(untrusted: Any) -> bool:
    return type(untrusted) is dict and bool(untrusted.get("secret")) and untrusted.get("value") is not None


def _text(recipe: bytes) -> str:
    try:
        return recipe.decode("utf-8")
    except UnicodeDecodeError:
        raise refused(DOCKERFILE, "dockerfile", "not UTF-8") from None


def import_(caller: Caller, scope: str, bundle: Bundle, checked: dict[str, Any]) -> dict[str, Any]:
    """Make the template and give its record; `checked` is what wanted() asked for, through the schema."""
    with templates.in_line, write():
        imported = add(None if scope == "global" else caller.user_id, bundle, checked)
        audit.add(caller, "template.import", imported.id, "ok", scope=scope, **imported.facts())
    operations.wake()  # the worker folds a large log into the file
    return templates.get(caller, imported.id)


def add(owner_id: int | None, bundle: Bundle, checked: dict[str, Any]) -> Imported:
    """Add the template, disabled, with its files, in the caller's write transaction; the caller audits.

    A name that is taken becomes name-2. Raises QuotaExceeded, Conflict, ValidationFailed.
    """
    templates.require_room(owner_id)  # before a file is written
    source = sources.made(
        checked["source"],
        is_global=owner_id is None,
        context=contexts.keep(bundle.context()),
        bundle_digest=bundle.digest,
    )
    name = _free_name(owner_id, checked["name"])
    template_id = templates.insert(owner_id, checked | {"name": name}, source, status="disabled")
    contexts.require_room(owner_id, 0)
    return Imported(template_id, name, bundle.digest)


def _free_name(owner_id: int | None, name: str) -> str:
    """The name, or the first of name-2, name-3, ... that the owner has not."""
    rows = database.execute_sql("SELECT name FROM templates WHERE owner_id IS ?", (owner_id,))
    taken = {row[0] for row in rows}
    number, free = 1, name
    while free in taken:
        number += 1
        end = f"-{number}"
        free = name[: NAME_MAX - len(end)].rstrip("-") + end
    return free
