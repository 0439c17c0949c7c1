"""The files of a build context over both listeners, and a template created with its files."""

from __future__ import annotations

import json
from typing import Any

import pytest
from unit.bundling import END, FILES, RECIPE, manifest, member, written
from unit.serving import checked

from svc.db.connect import database
from svc.limits import BUNDLE_MEMBER_MAX

TAR, BYTES = "application/x-tar", "application/octet-stream"
CONTEXT = "/api/templates/trainer/context"
FILE = f"{CONTEXT}/file?path="


@pytest.fixture
def built(listeners: Any) -> dict[str, Any]:
    """ada's template with FILES, created in one request."""
    template = {"name": "trainer", "source": {"type": "dockerfile"}, "env": [
        {"name": "KEY", "value": "hidden", "secret": True}
    ]}  # fmt: skip
    body = manifest({}, template=template)
    document = json.loads(body[512:].rstrip(b"\0"))
    del document["members"]
    parts = [member("manifest.json", json.dumps(document).encode()), member("Dockerfile", RECIPE)]
    for path, (data, run) in FILES.items():
        parts.append(member(f"context/{path}", data, mode=b"0000755\0" if run else b"0000644\0"))
    answer = listeners.ask("ada", "POST", "/api/templates", data=b"".join(parts) + END, content_type=TAR)
    assert answer.status_code == 201, answer.text
    record: dict[str, Any] = answer.get_json()
    assert answer.headers["Location"] == f"/api/templates/{record['id']}"
    return record


def test_a_template_is_created_with_its_files(listeners: Any, built: dict[str, Any]) -> None:
    """As from JSON: secrets are taken, the Dockerfile is the caller's own, a taken name is refused."""
    assert (built["status"], built["source"]["context_files"]) == ("disabled", len(FILES))
    assert built["env"] == [{"name": "KEY", "value": None, "secret": True, "is_set": True}]
    [(written_by, digest)] = database.execute_sql(
        "SELECT written_by, bundle_digest FROM template_revisions WHERE template_id = ?", (built["id"],)
    ).fetchall()
    assert written_by is not None and digest is None
    again = written({"name": "trainer", "source": {"type": "dockerfile"}})
    checked(listeners.ask("ada", "POST", "/api/templates", data=again, content_type=TAR), 409, "name_taken")
    scoped = written({"name": "open", "scope": "global", "source": {"type": "dockerfile"}})
    checked(listeners.ask("ada", "POST", "/api/templates", data=scoped, content_type=TAR), 403, "admin_only")
    answer = listeners.ask("boss", "POST", "/api/templates", data=scoped, content_type=TAR)
    assert (answer.status_code, answer.get_json()["scope"]) == (201, "global")
    wrong = written({"name": "x", "sauce": 1, "source": {"type": "dockerfile"}})
    error = checked(
        listeners.ask("ada", "POST", "/api/templates", data=wrong, content_type=TAR), 422, "validation_failed"
    )
    assert error["fields"][0]["field"] == "sauce"
    checked(
        listeners.ask("ada", "POST", "/api/templates", data=b"x", content_type="text/plain"),
        400,
        "invalid_json",
    )


def test_files_there_and_back(listeners: Any, built: dict[str, Any]) -> None:
    page = listeners.ask("ada", "GET", f"{CONTEXT}?limit=2").get_json()
    assert [one["path"] for one in page["items"]] == ["data/empty", "data/notes.txt"]
    assert (page["total"], page["next_offset"]) == (3, 2)
    assert listeners.ask("ada", "GET", f"{CONTEXT}?q=run").get_json()["items"][0]["executable"] is True
    answer = listeners.ask("ada", "GET", f"{FILE}run.sh", buffered=True)
    assert (answer.data, answer.headers["Content-Type"]) == (FILES["run.sh"][0], BYTES)
    assert answer.headers["X-Svc-Executable"] == "true"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert 'filename="run.sh"' in answer.headers["Content-Disposition"]

    name = "data/%C3%BC%20%22.txt&executable=true"
    put = listeners.ask("ada", "PUT", FILE + name, data=b"\0\xff", content_type=BYTES)
    assert (put.status_code, put.get_json()["revision"]) == (200, 2)
    answer = listeners.ask("ada", "GET", FILE + name.partition("&")[0], buffered=True)
    assert (answer.data, answer.headers["X-Svc-Executable"]) == (b"\0\xff", "true")
    gone = listeners.ask("ada", "DELETE", f"{FILE}run.sh")
    assert (gone.status_code, gone.get_json()["source"]["context_files"]) == (200, 3)
    replaced = listeners.ask("ada", "PUT", CONTEXT, data=member("only", b"1") + END, content_type=TAR)
    assert replaced.get_json()["source"]["context_bytes"] == 1
    rows = database.execute_sql("SELECT detail_json FROM audit WHERE action = 'template.edit'").fetchall()
    details = [json.loads(row[0]) for row in rows]
    assert {detail.pop("target_name") for detail in details} == {"trainer"}
    assert [sorted(detail) for detail in details] == [
        ["keys", "revision", "set"], ["keys", "removed", "revision"], ["keys", "replaced", "revision"],
    ]  # fmt: skip


def test_what_is_refused_changes_nothing(listeners: Any, built: dict[str, Any]) -> None:
    def put(query: str, data: Any = b"x", kind: str = BYTES, **more: Any) -> Any:
        return listeners.ask("ada", "PUT", FILE + query, data=data, content_type=kind, **more)

    for path in ("../x", "%2Fx", "a%00b", "a%FFb", ""):
        checked(put(path), 422, "validation_failed")
    checked(put("a&executable=yes"), 422, "validation_failed")
    checked(put("a", kind=TAR), 400, "invalid_request")
    checked(put("a", b"x" * (BUNDLE_MEMBER_MAX + 1)), 413, "too_large")
    checked(listeners.ask("ada", "GET", f"{FILE}none"), 404, "not_found")
    checked(
        listeners.ask("ada", "PUT", CONTEXT, data=b"x" * 2000, content_type=TAR), 422, "validation_failed"
    )
    assert listeners.ask("ada", "GET", "/api/templates/trainer").get_json()["revision"] == 1
