"""Administration: the audit, templates that await a review; and everybody's own audit rows."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from svc.domain import audit, template_reviews
from svc.domain.callers import Caller
from svc.web.access import ACCOUNT, ADMIN, Access, reserve, route
from svc.web.schemas.audit import AUDIT, OWN_AUDIT, AuditQuery, OwnAuditQuery
from svc.web.schemas.pages import ListQuery
from svc.web.schemas.templates import TEMPLATES

blueprint = Blueprint("admin", __name__)

ADMINISTRATORS = Access(ADMIN)


@route(blueprint, "GET", "/admin/audit", ADMINISTRATORS, query=AuditQuery(), answer=AUDIT)
def everybody(_caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """The audit table, newest first."""
    return audit.page_of(**query)


@route(blueprint, "GET", "/audit", Access(ACCOUNT), query=OwnAuditQuery(), answer=OWN_AUDIT)
def own(caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """The caller's own audit rows, newest first."""
    return audit.page_of(**query, owner_id=caller.user_id)


@route(blueprint, "GET", "/admin/templates", ADMINISTRATORS, query=ListQuery(), answer=TEMPLATES)
def awaiting_review(caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """Global templates whose present revision nobody has enabled yet, with what was found in each.

    What changed, line by line, is in a template's own record.
    """
    return template_reviews.awaiting(caller, query["page"])


reserve(blueprint, "GET", "/admin/license", ADMINISTRATORS, "The licence")
reserve(blueprint, "GET", "/admin/backups", ADMINISTRATORS, "The list of backups")
reserve(blueprint, "GET", "/admin/users", ADMINISTRATORS, "Accounts with their usage")
