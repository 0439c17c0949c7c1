"""`svc ws`: lists and changes, for people, for programs and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_service import Service, Svc


def record(name: str = "demo", **more: Any) -> dict[str, Any]:
    """A workspace as the API tells of it."""
    base = {
        "id": f"ws-{name}",
        "name": name,
        "status": "running",
        "template": {"id": "tpl-1", "name": "python"},
    }
    base |= {"image_status": "ready", "resources": {"gpu_count": 0}, "status_since": "2025-01-02T03:04:05Z"}
    base |= {"status_reason": "user_requested"}
    return base | more


LINE = "ws-demo\tdemo\trunning\tpython\tready\t0\t2025-01-02T03:04:05Z\tuser_requested\n"
LIST = "GET /api/workspaces?limit=200"


def page(*names: str, following: int | None = None) -> dict[str, Any]:
    return {"items": [record(name) for name in names], "total": 9, "next_offset": following}


def test_list_in_a_pipe(service: Service, svc: Svc) -> None:
    service.answer(LIST, page("demo"))
    assert svc("ws", "list") == (0, LINE, "")


def test_list_on_a_terminal(service: Service, svc: Svc) -> None:
    service.answer(LIST, page("demo"))
    heading, row = svc("ws", "list", terminal=True).out.splitlines()
    assert heading.split() == ["ID", "NAME", "STATUS", "TEMPLATE", "IMAGE", "GPUS", "SINCE", "REASON"]
    assert row.split()[-2] == "2025-01-02"


def test_list_of_nothing(service: Service, svc: Svc) -> None:
    service.answer(LIST, page())
    assert svc("ws", "list") == (0, "", "")
    assert "svc ws setup" in svc("ws", "list", terminal=True).out


def test_list_as_json_is_the_first_page_as_it_came(service: Service, svc: Svc) -> None:
    service.answer(LIST, page("demo", following=200))
    assert svc("ws", "list", "--json").out == json.dumps(page("demo", following=200))
    assert len(service.sent) == 1


def test_list_follows_all_pages(service: Service, svc: Svc) -> None:
    service.answer(LIST, page("a", "b", following=2))
    service.answer("GET /api/workspaces?limit=200&offset=2", page("c"))
    assert [line.split("\t")[1] for line in svc("ws", "list").out.splitlines()] == ["a", "b", "c"]


def test_a_list_that_never_ends_ends(service: Service, svc: Svc) -> None:
    service.answer(LIST, page("a", following=1))
    service.answer("GET /api/workspaces?limit=200&offset=1", page("a", following=1))
    assert svc("ws", "list").code == 0
    assert len(service.sent) == 2


def test_the_owner_is_named_to_the_server(service: Service, svc: Svc) -> None:
    service.answer(LIST + "&owner=al%20ice", page())
    service.answer("POST /api/workspaces/demo/stop?owner=alice", record())
    service.answer("DELETE /api/workspaces/demo?owner=alice", None, status=204)
    assert svc("ws", "list", "--owner", "al ice").code == 0
    assert svc("ws", "stop", "demo", "--owner", "alice").code == 0
    assert svc("ws", "delete", "demo", "--owner", "alice", "--yes").code == 0


@pytest.mark.parametrize("verb", ["start", "stop"])
def test_start_and_stop(service: Service, svc: Svc, verb: str) -> None:
    service.answer(f"POST /api/workspaces/demo/{verb}", record())
    assert svc("ws", verb, "demo") == (0, LINE, "")
    assert service.last.json == {}
    assert svc("ws", verb, "demo", terminal=True).out == "demo is running.\n"
    assert svc("ws", verb, "demo", "--json").out == json.dumps(record())


def test_a_missing_image_is_told_with_the_way_out(service: Service, svc: Svc) -> None:
    hint = "svc image pull tpl-1 --wait"
    service.refuse("POST /api/workspaces/demo/start", 409, "image_missing", "the image is missing", hint=hint)
    assert svc("ws", "start", "demo") == (1, "", f"svc: the image is missing\nhint: {hint}\n")


def test_with_json_a_refusal_is_on_both_streams(service: Service, svc: Svc) -> None:
    service.refuse("POST /api/workspaces/x/start", 404, "not_found", "no such workspace")
    done = svc("ws", "start", "x", "--json")
    assert (done.code, done.err) == (1, "svc: no such workspace\n")
    assert json.loads(done.out)["error"]["code"] == "not_found"


def test_delete_needs_a_confirmation(service: Service, svc: Svc) -> None:
    service.answer("DELETE /api/workspaces/demo", None, status=204)
    done = svc("ws", "delete", "demo")
    assert (done.code, service.sent) == (1, [])
    assert "svc ws delete demo --yes" in done.err
    assert svc("ws", "delete", "demo", terminal=True, stdin=b"n\n").code == 1
    assert service.sent == []
    done = svc("ws", "delete", "demo", terminal=True, stdin=b"y\n")
    assert (done.code, done.out) == (0, "demo is deleted.\n")
    assert svc("ws", "delete", "demo", "--yes") == (0, "", "")
    assert svc("ws", "delete", "demo", "--yes", "--json") == (0, "", "")
    assert service.sent == ["DELETE /api/workspaces/demo"] * 3


def test_rename(service: Service, svc: Svc) -> None:
    service.answer("PATCH /api/workspaces/demo", record())
    assert svc("ws", "rename", "demo", "--name", "paper") == (0, LINE, "")
    assert service.last.json == {"name": "paper"}


def test_get_shows_everything_and_json_is_as_it_came(service: Service, svc: Svc) -> None:
    service.answer("GET /api/workspaces/demo", record())
    printed = dict(line.split("\t") for line in svc("ws", "get", "demo").out.splitlines())
    assert (printed["id"], printed["template"], printed["gpus"]) == ("ws-demo", "python", "")
    assert json.loads(svc("ws", "get", "demo", "--json").out) == record()
    service.answer("GET /api/workspaces/demo?owner=alice", record())
    assert svc("ws", "get", "demo", "--owner", "alice").code == 0


def test_limits_that_are_not_kept_are_told_at_the_start(service: Service, svc: Svc) -> None:
    missing = {"limits_missing": ["memory_bytes", "pids_limit"]}
    service.answer("POST /api/workspaces/demo/start", record(**missing))
    done = svc("ws", "start", "demo")
    assert (done.code, done.out) == (0, LINE)
    assert "memory_bytes, pids_limit; see svc admin doctor" in done.err
    service.replies.clear()
    service.answer("POST /api/workspaces/demo/start", record(limits_missing=[]))
    assert svc("ws", "start", "demo").err == ""


def test_extend(service: Service, svc: Svc) -> None:
    service.answer("POST /api/workspaces/demo/extend", record())
    assert svc("ws", "extend", "demo", "--hours", "12") == (0, LINE, "")
    assert service.last.json == {"hours": 12}


def test_edit(service: Service, svc: Svc, tmp_path: Path) -> None:
    service.answer("PATCH /api/workspaces/demo", record())
    (tmp_path / "patch.json").write_text('{"env": []}')
    assert svc("ws", "edit", "demo", "--file", f"{tmp_path}/patch.json").code == 0
    assert service.last.json == {"env": []}
    assert svc("ws", "edit", "demo", "--file", "-", stdin=b'{"a": 1}').code == 0
    assert service.last.json == {"a": 1}
    assert svc("ws", "edit", "demo", "--file", f"{tmp_path}/none").code == 1


def test_edit_of_a_running_one_is_refused(service: Service, svc: Svc) -> None:
    fields = [{"field": "env", "code": "x", "message": "only while stopped"}]
    service.refuse("PATCH /api/workspaces/demo", 409, "workspace_not_stopped", "it runs", fields=fields)
    done = svc("ws", "edit", "demo", "--file", "-", stdin=b"{}")
    assert (done.code, done.err) == (1, "svc: it runs\n  env: only while stopped\n")


def test_a_name_stays_one_segment_of_the_path(service: Service, svc: Svc) -> None:
    svc("ws", "start", "..")
    svc("ws", "start", "a?b#c%2fd e\udcff")
    assert service.sent == [
        "POST /api/workspaces/%2E%2E/start",
        "POST /api/workspaces/a%3Fb%23c%252fd%20e%FF/start",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "ws",
        "ws bogus",
        "ws start",
        "ws start a b",
        "ws start a/b",
        "ws rename demo",
        "ws edit demo",
        "ws get",
        "ws extend demo",
        "ws extend demo --hours 0",
        "ws extend demo --hours 73",
        "ws extend demo --hours 1.5",
        "ws logs demo --tail x",
        "ws logs demo --tail -1",
        "ws list --jso",
        "ws list --url http://x",
        "ws start http://x/demo",
        "ws delete demo --force",
    ],
)
def test_wrong_usage(service: Service, svc: Svc, line: str) -> None:
    done = svc(*line.split())
    assert (done.code, done.out, service.sent) == (2, "", [])
    assert done.err.startswith("svc: ")
    assert "\nhint: " in done.err


def test_an_empty_name_is_wrong_usage(service: Service, svc: Svc) -> None:
    assert svc("ws", "delete", "", "--yes").code == 2
    assert service.sent == []


@pytest.mark.parametrize("body", [{"items": 5}, {}, {"items": {"a": 1}}, {"items": None}])
def test_a_list_that_is_none_is_refused(service: Service, svc: Svc, body: object) -> None:
    service.answer(LIST, body)
    done = svc("ws", "list")
    assert done.code == 1
    assert "no list" in done.err


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_hostile_answer_steers_nothing(service: Service, svc: Svc, options: list[str]) -> None:
    service.raw(LIST, b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n\x1b[2J\x07hello")
    done = svc("ws", "list", *options, terminal=True)
    assert (done.code, done.out) == (1, "")
    assert "\x1b" not in done.err


def test_a_hostile_message_steers_nothing(service: Service, svc: Svc) -> None:
    service.refuse(LIST, 500, "\x1b[2J", "\x1b]0;x\x07 bad\nsvc: worse", hint="\x9b\u202e")
    done = svc("ws", "list", terminal=True)
    assert done.code == 1
    assert done.err == "svc: \\x1b]0;x\\x07 bad\\nsvc: worse\nhint: \\x9b\\u202e\n"
