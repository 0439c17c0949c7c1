"""Administration, and everybody's own audit rows."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from svc.domain import audit
from svc.domain.callers import Caller
from svc.web.access import ACCOUNT, ADMIN, Access, reserve, route
from svc.web.schemas.audit import AUDIT, OWN_AUDIT, AuditQuery, OwnAuditQuery

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


reserve(blueprint, "GET", "/admin/license", ADMINISTRATORS, "The licence")
reserve(blueprint, "GET", "/admin/backups", ADMINISTRATORS, "The list of backups")
reserve(blueprint, "GET", "/admin/users", ADMINISTRATORS, "Accounts with their usage")
reserve(blueprint, "GET", "/admin/templates", ADMINISTRATORS, "Templates awaiting review")
