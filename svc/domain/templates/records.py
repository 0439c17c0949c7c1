"""Templates as records of the API, one or a page."""

from __future__ import annotations

from typing import Any

from svc.domain import pages
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates import contexts, parts, variables
from svc.domain.templates import findings as template_findings
from svc.domain.templates.rows import COLUMNS, FROM, VISIBLE, Template
from svc.errors import TemplateDamaged

AWAITING = "(t.owner_id IS NULL AND t.status = 'disabled' AND t.reviewed_revision IS NOT t.revision)"
_SORT = {"name": "t.name", "created_at": "t.created_at", "updated_at": "t.updated_at", "status": "t.status"}


def record(caller: Caller, template: Template, *, diffs: bool = True) -> dict[str, Any]:
    """The template's record for this caller; lists leave out the diffs of its findings.

    One that is damaged is a record without what a document says, and with a finding that names the damage.
    """
    try:
        findings = template_findings.present(caller, template)
        found = content(template)
    except TemplateDamaged as damage:
        findings = [template_findings.damaged(damage.message)]
        found = content(template.without_documents())
    return found | {"findings": findings if diffs else [one | {"diff": None} for one in findings]}


def content(template: Template) -> dict[str, Any]:
    """The record without the findings, which depend on the host."""
    spec = template.spec
    files, size = contexts.totals(template.context)
    return {
        "id": template.id,
        "name": template.name,
        "scope": template.scope,
        "owner": template.owner,
        "status": template.status,
        "source": {
            "type": template.source_type,
            "image_ref": template.image_ref,
            "local_only": bool(template.local_only),
            "has_dockerfile": template.dockerfile is not None,
            "context_files": files,
            "context_bytes": size,
        },
        "managed": bool(template.managed),
        "cloned_from": template.cloned_from,
        "revision": template.revision,
        "reviewed_revision": template.reviewed_revision,
        **spec,
        "env": variables.redacted(template),
        "ports": [parts.full_port(port) for port in spec["ports"]],
        "idle": parts.IDLE_NONE | spec["idle"],
        "created_at": template.created_at,
        "updated_at": template.updated_at,
    }


def page_of(caller: Caller, page: Page, owner_id: int | None = None) -> dict[str, Any]:
    """The templates visible to the caller, or those of an owner, one page."""
    return _page(caller, page, VISIBLE, (owner_id or caller.user_id, caller.administers))


def awaiting(caller: Caller, page: Page) -> dict[str, Any]:
    """The global templates whose present revision was never enabled, one page."""
    return _page(caller, page, AWAITING, ())


def _page(caller: Caller, page: Page, condition: str, arguments: tuple[Any, ...]) -> dict[str, Any]:
    found, values = pages.matching(page, ("t.name",))
    status, statuses = pages.with_status(page, "t.status")
    order = pages.order_by(page, _SORT, "name", "t.id")
    source = f"{FROM.format(revision='t.revision')} WHERE {condition} AND {found} AND {status}"
    parameters = (*arguments, *values, *statuses)
    return pages.select(
        page, COLUMNS, source, parameters, order, lambda row: record(caller, Template(*row), diffs=False)
    )
