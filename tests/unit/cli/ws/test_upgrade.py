"""`svc ws upgrade` and `svc ws restart`."""

from __future__ import annotations

from typing import Any

from fake_service import Service, Svc

PATH = "/api/workspaces/demo/upgrade"
RECORD: dict[str, Any] = {
    "id": "ws-demo", "name": "demo", "status": "stopped", "template": {"id": "tpl-1", "name": "python"},
    "image_status": "ready", "resources": {"gpu_count": 0}, "status_since": "2025-01-02T03:04:05Z",
    "status_reason": None,
}  # fmt: skip


def plan(container: str, *changes: dict[str, Any]) -> dict[str, Any]:
    return {"before": 1, "after": 3, "container": container, "changes": list(changes)}


ENV = {"part": "env", "name": "A", "before": None, "after": "\x1b1", "needs_container": False}
IMAGE = {"part": "image", "name": None, "before": "a:1", "after": "a:2", "needs_container": True}


def test_a_kept_container_needs_no_question(service: Service, svc: Svc) -> None:
    service.answer(f"GET {PATH}", plan("kept", ENV))
    service.answer(f"POST {PATH}", RECORD)
    done = svc("ws", "upgrade", "demo")
    assert (done.code, done.out.split("\t")[:3]) == (0, ["ws-demo", "demo", "stopped"])
    assert done.err.splitlines() == [
        "demo is at revision 1, the newest is 3", "  env A: none -> \\x1b1",
        "The container stays, with what is installed in it.",
    ]  # fmt: skip
    assert service.last.json == {"revision": 3, "replace_container": False}


def test_a_new_container_needs_yes(service: Service, svc: Svc) -> None:
    service.answer(f"GET {PATH}", plan("replaced", IMAGE))
    service.answer(f"POST {PATH}", RECORD)
    done = svc("ws", "upgrade", "demo")
    assert done.code == 1
    assert "hint: svc ws upgrade demo --yes" in done.err
    assert "what was installed in it is lost" in done.err
    assert service.sent == [f"GET {PATH}"]
    assert svc("ws", "upgrade", "demo", "--yes").code == 0
    assert service.last.json == {"revision": 3, "replace_container": True}


def test_an_image_that_was_built_again(service: Service, svc: Svc) -> None:
    service.answer(f"GET {PATH}", plan("replaced", IMAGE) | {"after": 1})
    service.answer(f"POST {PATH}", RECORD)
    done = svc("ws", "upgrade", "demo", "--yes")
    assert done.code == 0
    assert done.err.splitlines() == [
        "demo is at revision 1, the newest; its image was built or pulled again", "  image: a:1 -> a:2",
        "The container is replaced: what was installed in it is lost, the files of /work stay.",
    ]  # fmt: skip


def test_a_dry_run_only_prints(service: Service, svc: Svc) -> None:
    service.answer(f"GET {PATH}", plan("replaced", IMAGE))
    done = svc("ws", "upgrade", "demo", "--dry-run")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[1] == "  image: a:1 -> a:2"
    assert '"container": "replaced"' in svc("ws", "upgrade", "demo", "--dry-run", "--json").out
    assert set(service.sent) == {f"GET {PATH}"}


def test_json_is_the_record(service: Service, svc: Svc) -> None:
    service.answer(f"GET {PATH}", plan("kept"))
    service.answer(f"POST {PATH}", RECORD)
    done = svc("ws", "upgrade", "demo", "--json")
    assert done.err == ""
    assert '"id": "ws-demo"' in done.out


def test_restart(service: Service, svc: Svc) -> None:
    service.answer("POST /api/workspaces/demo/restart", RECORD | {"status": "running"})
    done = svc("ws", "restart", "demo", "other")
    assert (done.code, done.out.split("\t")[:3]) == (1, ["ws-demo", "demo", "running"])
    assert service.sent == ["POST /api/workspaces/demo/restart", "POST /api/workspaces/other/restart"]
