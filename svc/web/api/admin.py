"""Administration, and everybody's own audit rows."""

from __future__ import annotations

from flask import Blueprint

from svc.web.access import ACCOUNT, ADMIN, Access, reserve

blueprint = Blueprint("admin", __name__)

ADMINISTRATORS = Access(ADMIN)

reserve(blueprint, "GET", "/admin/audit", ADMINISTRATORS, "The audit table")
reserve(blueprint, "GET", "/admin/license", ADMINISTRATORS, "The licence")
reserve(blueprint, "GET", "/admin/backups", ADMINISTRATORS, "The list of backups")
reserve(blueprint, "GET", "/admin/users", ADMINISTRATORS, "Accounts with their usage")
reserve(blueprint, "GET", "/admin/templates", ADMINISTRATORS, "Templates awaiting review")
reserve(blueprint, "GET", "/audit", Access(ACCOUNT), "The caller's own audit rows")
