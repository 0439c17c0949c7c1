"""`svc template`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_service import Service, Svc

RECORD = {
    "id": "tpl-1",
    "name": "python",
    "description": "Python",
    "scope": "private",
    "owner": "alice",
    "status": "enabled",
    "source": {"type": "registry", "image_ref": "r/python"},
    "revision": 2,
    "findings": [{"code": "registry_not_allowed", "message": "not on the list"}],
    "defaults": {"memory_bytes": 2**30, "cpu_limit": None},
    "limits": {},
    "env": [{"name": "A", "value": "1"}],
    "updated_at": "2025-01-02T03:04:05Z",
}
LINE = "tpl-1\tpython\tprivate\tenabled\tr/python\t2\t2025-01-02T03:04:05Z\n"


def test_list(service: Service, svc: Svc) -> None:
    service.answer("GET /api/templates?limit=200", {"items": [RECORD], "next_offset": None})
    assert svc("template", "list") == (0, LINE, "")
    assert svc("template", "list", terminal=True).out.split()[:3] == ["ID", "NAME", "SCOPE"]
    assert json.loads(svc("template", "list", "--json").out)["items"] == [RECORD]


def test_get(service: Service, svc: Svc) -> None:
    service.answer("GET /api/templates/python", RECORD)
    lines = svc("template", "get", "python").out.splitlines()
    assert "memory\t1073741824" in lines
    assert "env\tA=1" in lines
    assert "Memory:           1.0 GiB" in svc("template", "get", "python", terminal=True).out.splitlines()
    assert svc("template", "get", "python", "--json").out == json.dumps(RECORD)


def test_create(service: Service, svc: Svc, tmp_path: Path) -> None:
    service.answer("POST /api/templates", RECORD, status=201)
    (tmp_path / "spec.json").write_text('{"name": "python"}')
    assert svc("template", "create", "--file", f"{tmp_path}/spec.json") == (0, LINE, "")
    assert service.last.json == {"name": "python"}
    assert (
        svc("template", "create", "--file", "-", stdin=b"[]", terminal=True).out
        == "python (tpl-1) is created, enabled.\n"
    )
    assert service.last.body == b"[]"  # the server's to judge


def test_edit(service: Service, svc: Svc) -> None:
    service.answer("PATCH /api/templates/python", RECORD)
    assert svc("template", "edit", "python", "--file", "-", stdin=b'{"env": []}') == (0, LINE, "")
    assert service.last.json == {"env": []}


def test_bad_json_is_the_server_s_refusal(service: Service, svc: Svc) -> None:
    service.refuse("POST /api/templates", 400, "invalid_json", "not JSON")
    assert svc("template", "create", "--file", "-", stdin=b"{") == (1, "", "svc: not JSON\n")


@pytest.mark.parametrize("verb", ["enable", "disable"])
def test_enable_and_disable(service: Service, svc: Svc, verb: str) -> None:
    service.answer(f"POST /api/templates/python/{verb}", RECORD)
    assert svc("template", verb, "python", terminal=True).out == "python is enabled.\n"


def test_delete_needs_a_confirmation(service: Service, svc: Svc) -> None:
    service.answer("DELETE /api/templates/python", None, status=204)
    assert svc("template", "delete", "python").code == 1
    assert service.sent == []
    assert svc("template", "delete", "python", "--yes") == (0, "", "")


@pytest.mark.parametrize(
    "line", ["template", "template get", "template create", "template edit x", "template clone x"]
)
def test_wrong_usage(svc: Svc, line: str) -> None:
    assert svc(*line.split()).code == 2
