"""`svc template revisions` and `svc template diff`."""

from __future__ import annotations

from typing import Any

from fake_service import Service, Svc

PATH = "GET /api/templates/python"
ROW = {
    "revision": 2, "created_at": "2025-01-02T03:04:05Z", "image_ref": "registry.example/a:1", "workspaces": 3,
    "is_current": True, "is_reviewed": False,
}  # fmt: skip
DIFF: dict[str, Any] = {
    "before": 1, "after": 2, "changed": ["env", "Dockerfile"],
    "fields": [{"field": "env", "before": [], "after": [{"name": "A", "value": "\x1b[2J"}]}],
    "dockerfile": "@@ -1 +1 @@\n-RUN one\n+RUN two", "context": None,
}  # fmt: skip


def test_revisions(service: Service, svc: Svc) -> None:
    service.answer(f"{PATH}/revisions?limit=200", {"items": [ROW], "total": 1, "next_offset": None})
    line = "2\t2025-01-02T03:04:05Z\tregistry.example/a:1\t3\ttrue\tfalse\n"
    assert svc("template", "revisions", "python") == (0, line, "")


def test_one_revision(service: Service, svc: Svc) -> None:
    service.answer(f"{PATH}/revisions/2", ROW | {"dockerfile": "FROM a\n"})
    assert svc("template", "revisions", "python", "--revision", "2") == (0, "FROM a\n", "")
    assert '"revision": 2' in svc("template", "revisions", "python", "--revision", "2", "--json").out
    service.replies.clear()
    service.answer(f"{PATH}/revisions/2", ROW | {"dockerfile": None})
    assert "registry.example/a:1" in svc("template", "revisions", "python", "--revision", "2").out


def test_diff(service: Service, svc: Svc) -> None:
    service.answer(f"{PATH}/diff", DIFF)
    service.answer(f"{PATH}/diff?from=1&to=2", DIFF)
    done = svc("template", "diff", "python", "--from", "1", "--to", "2")
    assert done == svc("template", "diff", "python")
    assert done.out.splitlines() == [
        "env:", "- []", '+ [{"name": "A", "value": "\\u001b[2J"}]', "@@ -1 +1 @@", "-RUN one", "+RUN two",
    ]  # fmt: skip


def test_no_difference(service: Service, svc: Svc) -> None:
    service.answer(f"{PATH}/diff", {"before": 2, "after": 2, "changed": [], "fields": [], "dockerfile": None})
    assert svc("template", "diff", "python") == (0, "", "svc: revisions 2 and 2 do not differ\n")
    assert svc("template", "diff", "python", "--from", "0").code == 2
