"""`svc image`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_service import Service, Svc

RECORD = {
    "template": {"id": "tpl-1", "name": "python"},
    "ref": "r/python",
    "status": "ready",
    "digest": "sha256:1",
    "size_bytes": 2**20,
    "used_by": ["demo", "paper"],
    "updated_at": "2025-01-02T03:04:05Z",
}
LINE = "python\tready\t1048576\tr/python\tdemo, paper\t2025-01-02T03:04:05Z\n"
PULL = "POST /api/templates/python/image/pull"
STATUS = "GET /api/templates/python/image"
WATCH = "GET /api/operations/op-1"


def operation(status: str, **more: Any) -> dict[str, Any]:
    return {"id": "op-1", "kind": "pull", "status": status, "phase": "", "progress": {}, **more}


def test_list(service: Service, svc: Svc) -> None:
    service.answer("GET /api/images?limit=200", {"items": [RECORD, RECORD | {"template": None}]})
    assert svc("image", "list").out == LINE + LINE.replace("python", "", 1)
    assert "1.0 MiB" in svc("image", "list", terminal=True).out


def test_status(service: Service, svc: Svc) -> None:
    service.answer(STATUS, RECORD)
    assert "digest\tsha256:1" in svc("image", "status", "python").out.splitlines()
    assert svc("image", "status", "python", "--json").out == json.dumps(RECORD)


def test_pull_returns_at_once(service: Service, svc: Svc) -> None:
    service.answer(PULL, {"operation": operation("queued")}, status=202)
    assert svc("image", "pull", "python") == (0, "op-1\tpull\tqueued\n", "")
    assert "svc image status python" in svc("image", "pull", "python", terminal=True).out
    assert service.sent == [PULL, PULL]


def test_pull_waits(service: Service, svc: Svc) -> None:
    service.answer(PULL, {"operation": operation("queued")}, status=202)
    service.answer(WATCH, operation("running", phase="pulling"), operation("succeeded"))
    service.answer(STATUS, RECORD)
    assert svc("image", "pull", "python", "--wait") == (0, LINE, "pulling\n")


def test_pull_as_json(service: Service, svc: Svc) -> None:
    service.answer(PULL, {"operation": operation("queued")}, status=202)
    service.answer(WATCH, operation("succeeded"))
    assert json.loads(svc("image", "pull", "python", "--json").out) == {"operation": operation("queued")}
    assert json.loads(svc("image", "pull", "python", "--wait", "--json").out) == operation("succeeded")


def test_a_pull_that_fails(service: Service, svc: Svc) -> None:
    failed = operation(
        "failed", error={"code": "engine_failed", "message": "no such image", "hint": "svc template get"}
    )
    service.answer(PULL, {"operation": operation("queued")}, status=202)
    service.answer(WATCH, failed)
    assert svc("image", "pull", "python", "--wait") == (1, "", "svc: no such image\nhint: svc template get\n")
    done = svc("image", "pull", "python", "--wait", "--json")
    assert (done.code, json.loads(done.out)) == (1, failed)


def test_root_has_no_images(service: Service, svc: Svc) -> None:
    service.refuse("GET /api/images?limit=200", 403, "root_not_allowed", "root has no images")
    assert svc("image", "list") == (1, "", "svc: root has no images\n")


def test_allowlist(service: Service, svc: Svc) -> None:
    allowed = {"items": [{"host": "r.example", "path_prefix": "lab/", "insecure": False}]}
    service.answer("GET /api/images/allowlist", allowed)
    assert svc("image", "allowlist") == (0, "r.example\tlab/\tfalse\n", "")
    assert json.loads(svc("image", "allowlist", "--json").out) == allowed


@pytest.mark.parametrize(
    "line", ["image", "image status", "image pull", "image pull a b", "image prune --yes"]
)
def test_wrong_usage(svc: Svc, line: str) -> None:
    assert svc(*line.split()).code == 2
