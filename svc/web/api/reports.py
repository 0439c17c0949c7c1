"""Reports for administrators about what only root can read; `svc admin` writes them."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from svc.actions.access import ADMINISTRATORS
from svc.domain import host_reports
from svc.domain.audit.chain import archived, newest
from svc.domain.principal import Caller
from svc.web.access import route
from svc.web.schemas.administration.reports import (
    BACKUPS,
    FINDINGS,
    RECOVERY_SETS,
    AuditChain,
    UpdatesReport,
)
from svc.web.schemas.pages import ListQuery

blueprint = Blueprint("reports", __name__)


@route(blueprint, "GET", "/admin/backups", ADMINISTRATORS, query=ListQuery(), answer=BACKUPS)
def backups(_caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """The complete snapshots in the directory of backups, as root's last report has them."""
    return host_reports.page_of(host_reports.BACKUPS, query["page"])


@route(blueprint, "GET", "/admin/recovery-sets", ADMINISTRATORS, query=ListQuery(), answer=RECOVERY_SETS)
def recovery_sets(_caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """The recovery sets and whether each can be applied, as root's last report has them."""
    return host_reports.page_of(host_reports.RECOVERY_SETS, query["page"])


@route(blueprint, "GET", "/admin/updates", ADMINISTRATORS, answer=UpdatesReport())
def updates(_caller: Caller) -> dict[str, Any]:
    """The installed release and what is available, as root's last report has it."""
    found = host_reports.read(host_reports.UPDATES)
    return {"report": found.about, "updates": found.items[0] if found.items else None}


@route(blueprint, "GET", "/admin/host", ADMINISTRATORS, query=ListQuery(), answer=FINDINGS)
def host(_caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """What `svc admin doctor` found at its last run."""
    return host_reports.page_of(host_reports.HOST, query["page"])


@route(blueprint, "GET", "/admin/audit/chain", ADMINISTRATORS, answer=AuditChain())
def chain(_caller: Caller) -> dict[str, Any]:
    """Whether the audit's chain was intact at the doctor's last run, and its present ends.

    Not verified here: a process that can write the database could say anything.
    """
    report = host_reports.read(host_reports.HOST)
    unknown = {"level": None, "found": "", "remedy": report.kind.command}
    found = next((item for item in report.items if item["code"] == "audit_chain"), unknown)
    return {
        "report": report.about, "level": found["level"], "found": found["found"], "remedy": found["remedy"],
        "head": newest()._asdict(), "archived": archived()._asdict(),
    }  # fmt: skip
