"""Administration: accounts, the audit, quotas, templates that await a review; the caller's own audit rows."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from svc.actions.access import ACCOUNT, ADMINISTRATORS, Access
from svc.actions.table import DISK_MEASURE, QUOTA_DELETE, QUOTA_SET
from svc.domain.accounts import account_usage, disk_usage
from svc.domain.audit import audit
from svc.domain.licence import reports
from svc.domain.principal import Caller
from svc.domain.quotas import policies as quota_policies
from svc.domain.templates import reviews as template_reviews
from svc.web.access import action, route
from svc.web.schemas.administration.accounts import ACCOUNTS
from svc.web.schemas.administration.audit import AUDIT, OWN_AUDIT, AuditQuery, OwnAuditQuery
from svc.web.schemas.administration.disk import DISK_USAGE, MeasureReply, MeasureRequest
from svc.web.schemas.licence import License
from svc.web.schemas.pages import ListQuery
from svc.web.schemas.quotas import QUOTAS, QuotaPolicy, QuotaPut
from svc.web.schemas.templates import TEMPLATES

blueprint = Blueprint("admin", __name__)


@route(blueprint, "GET", "/admin/audit", ADMINISTRATORS, query=AuditQuery(), answer=AUDIT)
def everybody(_caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """The audit table, newest first."""
    return audit.page_of(**query)


@route(blueprint, "GET", "/audit", Access(ACCOUNT), query=OwnAuditQuery(), answer=OWN_AUDIT)
def own(caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """What the caller did, and what others did to what was the caller's; newest first."""
    return audit.page_of(**query, owner_id=caller.user_id)


@route(blueprint, "GET", "/admin/templates", ADMINISTRATORS, query=ListQuery(), answer=TEMPLATES)
def awaiting_review(caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """Global templates whose current revision was never enabled, with the findings of each.

    The record of one template has the differences too.
    """
    return template_reviews.awaiting(caller, query["page"])


@route(blueprint, "GET", "/admin/quotas", ADMINISTRATORS, query=ListQuery(), answer=QUOTAS)
def list_quotas(_caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """The quota policies, each with the number of its accounts."""
    return quota_policies.page_of(query["page"])


@action(blueprint, QUOTA_SET, body=QuotaPut(), answer=QuotaPolicy())
def set_quota(caller: Caller, name: str, body: dict[str, Any]) -> dict[str, Any]:
    """Create or replace a quota policy; null or a missing key means unlimited."""
    return quota_policies.put(caller, name, body)


@action(blueprint, QUOTA_DELETE, status=204)
def delete_quota(caller: Caller, name: str) -> None:
    """Delete a quota policy that no account has, except the default one."""
    quota_policies.delete(caller, name)


@route(blueprint, "GET", "/admin/license", ADMINISTRATORS, answer=License())
def show_license(_caller: Caller) -> dict[str, Any]:
    """The trial or the licence in force, with its limits, their use, and what should be done."""
    return reports.current()


@route(blueprint, "GET", "/admin/disk", ADMINISTRATORS, query=ListQuery(), answer=DISK_USAGE)
def list_disk_usage(_caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """What each user's disks hold, as its own agent measured it last, with the sums; the largest first."""
    return disk_usage.page_of(query["page"])


@action(
    blueprint, DISK_MEASURE,
    body=MeasureRequest(), answer=MeasureReply(), status=202,
)  # fmt: skip
def measure_disk(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """Have the disks of these users measured, of all active ones without a name; a few at a time."""
    return {"waiting": disk_usage.request(caller, body["users"])}


@route(blueprint, "GET", "/admin/users", ADMINISTRATORS, query=ListQuery(), answer=ACCOUNTS)
def list_accounts(_caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """All accounts with what each uses, as the database has it."""
    return account_usage.page_of(query["page"])
