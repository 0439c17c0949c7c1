"""Export of templates as bundles, and import.

"Imported templates start disabled", in every scope. A bundle never has the value
of a secret variable, only its name. An imported template is exported with the
same digest, unless its name was taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, BinaryIO, NamedTuple

from svc.actions.table import TEMPLATE_IMPORT
from svc.db.connect import database, write
from svc.domain import operations
from svc.domain.audit import audit
from svc.domain.principal import Caller
from svc.domain.templates import bundles, contexts, sources, templates
from svc.domain.templates import rows as template_rows
from svc.domain.templates.bundle_paths import DOCKERFILE, MANIFEST, refused
from svc.domain.templates.bundles import Bundle
from svc.domain.templates.rows import EMPTY_SPEC, Template
from svc.errors import AdminOnly, RootNotAllowed, ValidationFailed

NAME_MAX = 63  # as a slug
_SOURCE_KEYS = {"type", "image_ref", "local_only"}


class Exported(NamedTuple):
    """The template's name and the bundle's digest."""

    name: str
    digest: str


class Imported(NamedTuple):
    """A template created from a bundle."""

    id: str
    name: str
    digest: str

    def facts(self) -> dict[str, str]:
        """Details for the audit."""
        return {"name": self.name, "bundle": self.digest}


# --- export ------------------------------------------------------------------------------


def export(caller: Caller, ref: str, file: BinaryIO) -> Exported:
    """Write the bundle of a template visible to the caller; raises NotFound, TooLarge."""
    with database.atomic("DEFERRED"):  # one snapshot: no content is deleted meanwhile
        template = template_rows.find(caller, ref)
        dockerfile = None if template.dockerfile is None else template.dockerfile.encode()
        digest = bundles.write(file, document(template), dockerfile, contexts.files_of(template.context))
    return Exported(template.name, digest)


def document(template: Template) -> dict[str, Any]:
    """The template in a manifest: without its owner, secret values and empty keys."""
    spec = template.spec
    source: dict[str, Any] = {"type": template.source_type}
    if template.source_type == "registry":
        source["image_ref"] = template.image_ref
    if template.local_only:
        source["local_only"] = True
    spec["env"] = [_variable(one) for one in spec["env"]]
    filled = {key: spec[key] for key, empty in EMPTY_SPEC.items() if spec[key] != empty}
    return {"name": template.name, "source": source, **filled}


def _variable(one: Mapping[str, Any]) -> dict[str, Any]:
    if one.get("secret"):
        return {"name": one["name"], "secret": True}
    return {"name": one["name"], "value": one["value"]}


# --- import ------------------------------------------------------------------------------


def require(caller: Caller, scope: str) -> None:
    """Raise AdminOnly, RootNotAllowed for a caller who may not import into this scope."""
    if scope == "global" and not caller.administers:
        raise AdminOnly("only an administrator imports global templates")
    if scope == "private" and caller.uid == 0:
        raise RootNotAllowed(
            "root has no templates of its own", hint="sudo svc admin template import FILE --global"
        )


def create_request(bundle: Bundle, scope: str) -> dict[str, Any]:
    """The bundle's template in the form of a create request; its values are unchecked.

    Raises ValidationFailed if source and members do not match. A private template
    from a published recipe is built by its owner, as a clone is.
    """
    template = dict(bundle.template)
    if "scope" in template:
        raise _without_source()
    if any(map(_has_secret_value, template["env"] if type(template.get("env")) is list else [])):
        raise refused(MANIFEST, "secret_value", "it has the value of a secret variable")
    source = _source(bundle)
    if "dockerfile" in source and scope == "private":
        source = {"type": "dockerfile", "dockerfile": source["dockerfile"]}
    return template | {"source": source, "scope": scope}


def own_create_request(bundle: Bundle) -> dict[str, Any]:
    """The create request in a bundle that its caller wrote: as JSON it could have the same keys.

    Raises ValidationFailed if source and members do not match.
    """
    return bundle.template | {"source": _source(bundle)}


def _without_source() -> ValidationFailed:
    return refused(MANIFEST, "manifest", "its template has no source of exactly type, image_ref, local_only")


def _source(bundle: Bundle) -> dict[str, Any]:
    """The unchecked source of a bundle's template, with the text of the Dockerfile."""
    untrusted = bundle.template.get("source")
    if type(untrusted) is not dict or not set(untrusted) <= _SOURCE_KEYS:
        raise _without_source()
    source = dict(untrusted)
    if source.get("type") not in ("registry", "dockerfile"):
        raise refused(MANIFEST, "manifest", "its template is made from neither a registry nor a Dockerfile")
    dockerfile = bundle.dockerfile()
    if dockerfile is None and (bundle.members or source.get("type") == "dockerfile"):
        raise refused(DOCKERFILE, "missing", "not in the archive, though its template is built from one")
    if dockerfile is not None:
        try:
            text = dockerfile.decode()
        except UnicodeDecodeError:
            raise refused(DOCKERFILE, "dockerfile", "not UTF-8") from None
        source["dockerfile"] = text
    return source


def _has_secret_value(untrusted: Any) -> bool:
    return type(untrusted) is dict and bool(untrusted.get("secret")) and untrusted.get("value") is not None


def import_(caller: Caller, scope: str, bundle: Bundle, checked: dict[str, Any]) -> dict[str, Any]:
    """Create the template and return its record; `checked` is create_request() after the schema."""
    with templates.editing(caller), write():
        imported = add(None if scope == "global" else caller.user_id, bundle, checked)
        audit.add(caller, TEMPLATE_IMPORT, imported.id, "ok", scope=scope, **imported.facts())
    operations.wake()  # the worker checkpoints a large write-ahead log
    return templates.get(caller, imported.id)


def add(owner_id: int | None, bundle: Bundle, checked: dict[str, Any]) -> Imported:
    """Add the template, disabled, with its files, in the caller's write transaction; the caller audits.

    A taken name becomes name-2. Raises QuotaExceeded, Conflict, ValidationFailed.
    """
    templates.require_room(owner_id)  # before a file is written
    source = sources.new(
        checked["source"],
        is_global=owner_id is None,
        context=contexts.store(bundle.context()),
        bundle_digest=bundle.digest,
    )
    name = _free_name(owner_id, checked["name"])
    template_id = templates.insert(owner_id, checked | {"name": name}, source, status="disabled")
    contexts.require_room(owner_id)
    return Imported(template_id, name, bundle.digest)


def _free_name(owner_id: int | None, name: str) -> str:
    """The name, or the first of name-2, name-3, ... that is free."""
    rows = database.execute_sql("SELECT name FROM templates WHERE owner_id IS ?", (owner_id,))
    taken = {row[0] for row in rows}
    number, free = 1, name
    while free in taken:
        number += 1
        end = f"-{number}"
        free = name[: NAME_MAX - len(end)].rstrip("-") + end
    return free
