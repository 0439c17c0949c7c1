"""The screens of templates, in each state."""

from __future__ import annotations

from typing import Any

from pages.canned import Canned
from pages.records import page
from pages.states import State
from pages.templates import records

LONG = "x" * 200
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>${7*7}{{7*7}}\u202egnp.exe"


def _empty(canned: Canned) -> None:
    canned.answers |= {"GET /api/templates": page([]), "GET /api/images": page([])}


def _failing(request: str) -> Any:
    def prepare(canned: Canned) -> None:
        canned.answers |= {"GET /api/images": page([])}
        canned.refuse(request, 503, "engine_unavailable", "Podman could not answer", retryable=True, after=60)

    return prepare


def _held(request: str) -> Any:
    def prepare(canned: Canned) -> None:
        records.failed_build(canned)
        if "my-torch" not in request:
            records.gallery(canned)
        canned.hold(request)

    return prepare


def _ports(canned: Canned) -> None:
    records.failed_build(canned)
    ports = [
        {"name": "lab", "container_port": None, "access": "owner", "kind": "http", "user": None},
        {"name": "login", "container_port": 22, "access": "host", "kind": "ssh", "user": "ada"},
    ]
    record = records.my_torch(ports=ports, network="lab")
    for ref in (record["id"], record["name"]):
        canned.answers[f"GET /api/templates/{ref}"] = records.tagged(record)


def hostile(canned: Canned) -> None:
    """Records whose every text is hostile or without a break."""
    record = records.my_torch(
        description=f"{HOSTILE} {LONG}",
        findings=[records.finding("root_user", f"{HOSTILE} {LONG}", 1)],
        launchers=[records.launcher("a", HOSTILE)],
        env=[{"name": "A" * 64, "value": LONG + HOSTILE, "secret": False, "is_set": True}],
    )
    build = records.operation(
        record, "failed", error=records.records_error("build_failed", f"{HOSTILE} {LONG}")
    )
    records.one(
        canned,
        record,
        status="failed",
        error=f"{HOSTILE} {LONG}",
        used_by=[LONG],
        build=build,
        texts=[HOSTILE, LONG],
    )
    canned.answers["GET /api/templates/tpl-my-torch/diff"] = records.difference(
        fields=[{"field": HOSTILE, "before": LONG, "after": HOSTILE}],
        dockerfile=f"@@ -1 +1 @@\n-{LONG}\n+{HOSTILE}",
    )


def building(canned: Canned) -> None:
    """A build under way."""
    record = records.my_torch()
    records.one(canned, record, status="building", build=records.operation(record), texts=records.LOG[:4])


def enabled(canned: Canned) -> None:
    """A template of everybody's that can be used."""
    record = records.of_the_mock_up()[0]
    records.one(canned, record, status="ready", size_bytes=10**10, used_by=["train-7b"])


def read_only(canned: Canned) -> None:
    """A Dockerfile of everybody's."""
    records.one(canned, records.everybodys("vllm", dockerfile=True), status="ready", size_bytes=10**10)


def _nothing_waits(canned: Canned) -> None:
    records.review(canned)
    canned.answers["GET /api/admin/templates"] = page([])


_OPEN_MENU = "document.querySelector('details.menu').open = true"
_IMPORT = "document.querySelector('[data-key=import]').click()"
_NEW = "document.querySelector('[data-key=new]').click()"
STATES: dict[str, State] = {
    "templates": State("/templates", ".card", records.gallery),
    "templates_loading": State("/templates", ".skel", _held("GET /api/templates")),
    "templates_empty": State("/templates", ".empty", _empty),
    "templates_error": State("/templates", ".notice", _failing("GET /api/templates")),
    "templates_import": State("/templates", ".card", records.gallery, _IMPORT),
    "templates_new": State("/templates", ".card", records.gallery, _NEW),
    "templates_hostile": State("/templates", ".card", hostile),
    "template": State("/templates/my-torch", "[data-steps] li", records.failed_build),
    "template_enabled": State("/templates/torch", "[data-steps] li", enabled),
    "template_edit ports": State(
        "/templates/my-torch", "[data-key=edit]", _ports, "document.querySelector('[data-key=edit]').click()"
    ),
    "template_edit": State(
        "/templates/my-torch", "[data-key=edit]", records.failed_build,
        "document.querySelector('[data-key=edit]').click()",
    ),
    "template_menu": State("/templates/my-torch", "details.menu", records.failed_build, _OPEN_MENU),
    "template_dockerfile": State("/templates/my-torch/dockerfile", "[data-log] .err", records.failed_build),
    "template_building": State("/templates/my-torch/dockerfile", "[data-log] span", building),
    "template_read_only": State("/templates/vllm/dockerfile", "textarea[readonly]", read_only),
    "template_image": State("/templates/torch/dockerfile", "[data-steps] li", enabled),
    "template_changes": State("/templates/my-torch/changes", ".diff", records.failed_build),
    "template_loading": State("/templates/my-torch", ".skel", _held("GET /api/templates/tpl-my-torch/image")),
    "template_gone": State("/templates/none", "[data-gone]"),
    "template_hostile": State("/templates/my-torch/dockerfile", "[data-log] .err", hostile),
    "template_changes_hostile": State("/templates/my-torch/changes", ".diff", hostile),
    "template_error": State("/templates/my-torch", ".notice", _failing("GET /api/templates/my-torch")),
    "review": State("/admin/templates", ".diff", records.review),
    "review_new": State("/admin/templates", "[data-all-fields]", records.review_of_a_new_one),
    "review_empty": State("/admin/templates", ".empty", _nothing_waits),
    "review_no_permission": State("/admin/templates", "[data-no-permission]"),
}  # fmt: skip
