"""The screens of the administration in their states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pages.admin import records
from pages.admin.records import HOSTILE, administrator
from pages.canned import Canned
from pages.records import page
from pages.states import State
from pages.workspaces.states import press

USERS, QUOTAS, CAPACITY = "GET /api/admin/users", "GET /api/admin/quotas", "GET /api/workspaces/capacity"
DISK = "GET /api/admin/disk"
ALLOWLIST, AUDIT, HOST = "GET /api/images/allowlist", "GET /api/admin/audit", "GET /api/admin/host"
ROW = "#screen tbody tr"
MENU = press("[data-id=ada] [data-key=more]")
ITEMS = "[...document.querySelectorAll('[data-id=ada] details li > *')]"


def item(label: str) -> str:
    """The script that opens a menu and presses an item of it."""
    return f"{MENU}{ITEMS}.find(node => node.textContent.startsWith('{label}')).click();"


def changed(*answers: tuple[str, Any]) -> Callable[[Canned], None]:
    """An administrator before these answers."""

    def prepare(canned: Canned) -> None:
        administrator(canned)
        canned.answers |= dict(answers)

    return prepare


def held(*requests: str) -> Callable[[Canned], None]:
    """An administrator whose answers do not come."""

    def prepare(canned: Canned) -> None:
        gpus(canned)
        canned.hold(*requests)

    return prepare


def unread(request: str) -> Callable[[Canned], None]:
    """An administrator whose list cannot be read now."""

    def prepare(canned: Canned) -> None:
        gpus(canned)
        canned.refuse(request, 503, "database_busy", "the database is busy", after=600, retryable=True)

    return prepare


def gpus(canned: Canned) -> None:
    """A host with GPUs in all states."""
    administrator(canned)
    canned.answers[CAPACITY] = records.gpus()


def _restarting(canned: Canned) -> None:
    administrator(canned)
    canned.refuse("GET /api/events", 503, "unavailable", "stopping", retryable=True)
    canned.break_off("GET /api/health")


def _last(canned: Canned) -> None:
    administrator(canned)
    canned.refuse(
        "PATCH /api/users/ada", 409, "conflict", "ada is the last administrator besides root",
        hint="sudo svc admin edit-user ada --disable --last-administrator",
    )  # fmt: skip


def _wrong(canned: Canned) -> None:
    administrator(canned)
    field = {"field": "display_name", "code": "invalid", "message": "must not contain control characters"}
    canned.refuse("PATCH /api/users/ada", 422, "validation_failed", "display_name: no", fields=[field])


def _closed(canned: Canned) -> None:
    changed((DISK, records.disks(*MEASURED)))(canned)
    canned.refuse(
        "POST /api/admin/disk/measure", 503, "storage_full", "the disk is full", hint="sudo svc admin doctor"
    )


def _no_reports(canned: Canned) -> None:
    administrator(canned)
    for name in ("host", "backups", "recovery-sets"):
        canned.answers[f"GET /api/admin/{name}"] = records.no_report()
    none = records.no_report()["report"] | {"command": "sudo svc admin update status"}
    canned.answers["GET /api/admin/updates"] = {"report": none, "updates": None}


def _broken(canned: Canned) -> None:
    administrator(canned)
    canned.refuse("GET /api/admin/license", 500, "internal_error", "something failed")
    canned.refuse("GET /api/health", 503, "storage_full", "the disk is full", hint="sudo svc admin doctor")
    canned.answers[HOST] = records.report(records.findings(), hours=50)


MEASURED = (records.disk("ada", 41, 0, 2.2, 0.04, 1, 96.5), records.disk("radia", 3, 0, 0, 0, 0, 1))
NOT_MEASURED = records.disks(records.disk("ada"), records.disk("alan"))
NOBODY = NOT_MEASURED | page([])
ODD = records.disks(
    records.disk("ada", 1, 0, 0, 0, 0, 2**20, error=f"{HOSTILE} {'W' * 200}"), records.disk("x" * 32)
)
MANY = page([records.account(f"user-{number:04}") for number in range(450)])
NO_GPUS = records.gpus() | {"gpus": []}
NEW = page([]) | {"limit": 50}
QUOTA = press("[data-id=lab] [data-key=edit]")
TYPE = (
    "const field = document.querySelector('[name=max_gpus]');"
    "field.value = '1'; field.dispatchEvent(new Event('input', {bubbles: true}));"
)
ADD = (
    "const field = document.querySelector('[name=registry]'); field.value = 'ghcr.io';"
    "field.dispatchEvent(new Event('input', {bubbles: true}));"
    "document.querySelector('[data-key=add]').click();"
)
CONFIRM = press("dialog[open] [data-key=confirm]")
DIALOG_CONFIRM = press("dialog[open] button[value=confirm]")
SAID = "[data-no-permission]"

STATES: dict[str, State] = {
    "users": State("/admin/users", ROW, administrator),
    "users loading": State("/admin/users", ".skel", held(USERS)),
    "users not read": State("/admin/users", "#screen .notice", unread(USERS)),
    "users no permission": State("/admin/users", SAID),
    "users restarting": State("/admin/users", ".banner", _restarting),
    "users, many": State("/admin/users", ROW, changed((USERS, MANY))),
    "users none like that": State("/admin/users?q=nobody", "[data-none]:not([hidden])", administrator),
    "users menu": State("/admin/users", ROW, administrator, MENU),
    "users edit": State("/admin/users", ROW, administrator, press("[data-id=ada] [data-key=edit]")),
    "users edit, wrong": State(
        "/admin/users", ROW, _wrong, press("[data-id=ada] [data-key=edit]") + CONFIRM
    ),
    "users disable": State("/admin/users", ROW, administrator, item("Disable")),
    "users disable refused": State("/admin/users", ROW, _last, item("Disable") + DIALOG_CONFIRM),
    "users delete": State("/admin/users", ROW, administrator, item("Delete")),
    "users new": State("/admin/users", ROW, administrator, press("[data-key=new]")),
    "quotas": State("/admin/quotas", ROW, administrator),
    "quotas loading": State("/admin/quotas", ".skel", held(QUOTAS)),
    "quotas not read": State("/admin/quotas", "#screen .notice", unread(QUOTAS)),
    "quotas no permission": State("/admin/quotas", SAID),
    "quotas edit": State("/admin/quotas", ROW, administrator, QUOTA + TYPE),
    "quotas new": State("/admin/quotas", ROW, administrator, press("[data-key=new]") + CONFIRM),
    "quotas remove": State(
        "/admin/quotas", ROW, administrator, press("[data-id=course-2025] [data-key=remove]")
    ),
    "disk": State("/admin/disk", ROW, administrator),
    "disk loading": State("/admin/disk", ".skel", held(DISK)),
    "disk not read": State("/admin/disk", "#screen .notice", unread(DISK)),
    "disk no permission": State("/admin/disk", SAID),
    "disk not measured": State("/admin/disk", ".empty", changed((DISK, NOT_MEASURED))),
    "disk nobody": State("/admin/disk", ".empty", changed((DISK, NOBODY))),
    "disk none like that": State("/admin/disk?q=nobody", "[data-none]:not([hidden])", administrator),
    "disk hostile": State("/admin/disk", ROW, changed((DISK, ODD))),
    "disk measure refused": State("/admin/disk", ROW, _closed, press("[data-key=measure]")),
    "gpus": State("/admin/gpus", ROW, gpus),
    "gpus loading": State("/admin/gpus", ".skel", held(CAPACITY)),
    "gpus not read": State("/admin/gpus", "#screen .notice", unread(CAPACITY)),
    "gpus no permission": State("/admin/gpus", SAID),
    "gpus none": State("/admin/gpus", ".empty", changed((CAPACITY, NO_GPUS))),
    "gpus stop": State("/admin/gpus", ROW, gpus, press("[data-key=stop-ws-sweep-3]")),
    "registries": State("/admin/registries", ROW, administrator),
    "registries loading": State("/admin/registries", ".skel", held(ALLOWLIST)),
    "registries not read": State("/admin/registries", "#screen .notice", unread(ALLOWLIST)),
    "registries no permission": State("/admin/registries", SAID),
    "registries none": State("/admin/registries", "[data-none]", changed((ALLOWLIST, {"items": []}))),
    "registries changed": State(
        "/admin/registries", ROW, administrator, press("[data-key=turn]") + ADD
    ),
    "registries wrong": State("/admin/registries", ROW, administrator, press("[data-key=add]")),
    "audit": State("/admin/audit", ROW, administrator),
    "audit loading": State("/admin/audit", ".skel", held(AUDIT)),
    "audit not read": State("/admin/audit", "#screen .notice", unread(AUDIT)),
    "audit no permission": State("/admin/audit", SAID),
    "audit none": State("/admin/audit?user=nobody&span=24h", "[data-none]", changed((AUDIT, NEW))),
    "audit row": State("/admin/audit", ROW, administrator, press("[data-key=row]")),
    "audit chain": State("/admin/audit", ROW, administrator, press("[data-key=chain]")),
    "audit save": State("/admin/audit", ROW, administrator, press("[data-key=save]")),
    "host": State("/admin/host", "[data-panel]", administrator),
    "host loading": State("/admin/host", ".skel", held(HOST)),
    "host not read": State("/admin/host", "[data-panel]", _broken),
    "host no permission": State("/admin/host", SAID),
    "host no reports": State("/admin/host", "[data-panel]", _no_reports),
    "host opened": State(
        "/admin/host", "[data-panel]", administrator,
        "for (const node of document.querySelectorAll('details.more')) node.open = true;",
    ),
    "host check again": State("/admin/host", "[data-panel]", administrator, press("[data-key=again]")),
}  # fmt: skip
