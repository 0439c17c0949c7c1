"""Templates as bundles: export and import."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from flask import Blueprint, Response

from svc.actions.access import ACCOUNT, Access
from svc.actions.table import TEMPLATE_IMPORT
from svc.domain.files import spool
from svc.domain.places import long_calls
from svc.domain.principal import Caller
from svc.domain.templates import bundles, import_export
from svc.limits import BUNDLE_MAX
from svc.web import outputs, uploads
from svc.web.access import action, route
from svc.web.schemas.loading import load
from svc.web.schemas.templates import TEMPLATE, ImportQuery, TemplateCreate

blueprint = Blueprint("template_bundles", __name__)

EXPORT = Access(ACCOUNT, pat=True, ticket=True)
DIGEST = "X-Svc-Bundle-Digest"
_CREATE = TemplateCreate()


@route(blueprint, "GET", "/templates/<ref>/export", EXPORT, gives=uploads.TAR)
def export(caller: Caller, ref: str) -> Response:
    """Export a template as a bundle: a reproducible plain tar without secrets."""
    with ExitStack() as held:
        held.enter_context(long_calls.counted(caller))
        file = held.enter_context(spool.unnamed_file())
        written = import_export.export(caller, ref, file)
        spool.ended(file)
        return outputs.file(file, uploads.TAR, f"{written.name}.tar", held, **{DIGEST: written.digest})


@action(
    blueprint, TEMPLATE_IMPORT,
    takes=uploads.TAR, query=ImportQuery(), answer=TEMPLATE, status=201, location="/api/templates/{id}",
)  # fmt: skip
def import_(caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """Import a template from a bundle, always disabled; `scope` global is for administrators."""
    scope = query["scope"]
    import_export.require(caller, scope)
    with uploads.received(uploads.TAR, BUNDLE_MAX) as (caller, file):
        import_export.require(caller, scope)
        bundle = bundles.read(file)
        checked = load(_CREATE, import_export.create_request(bundle, scope), "template")
        return import_export.import_(caller, scope, bundle, checked)
