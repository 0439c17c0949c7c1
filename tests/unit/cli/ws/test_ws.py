"""`svc ws`: lists and changes, for people, for programs and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fake_service import Service, Svc

from svc.client import transport
from svc.limits import COPY_MOST_S


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
    assert svc("ws", "list", "--json").out == json.dumps(page("demo", following=200)) + "\n"
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
    assert svc("ws", verb, "demo", "--json").out == json.dumps(record()) + "\n"


@pytest.mark.parametrize("verb", ["start", "restart"])
def test_a_start_has_the_time_to_copy_an_image(
    service: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """The first one makes the container, for which run_as may need a copy."""
    sent, times = transport.request, []

    def request(*parts: Any, **options: Any) -> transport.Answer:
        times.append(options["wait_s"])
        return sent(*parts, **options)

    monkeypatch.setattr(transport, "request", request)
    service.answer(f"POST /api/workspaces/demo/{verb}", record())
    assert svc("ws", verb, "demo").code == 0
    assert times == [COPY_MOST_S]


def test_a_missing_image_is_told_with_the_way_out(service: Service, svc: Svc) -> None:
    hint = "svc image pull tpl-1 --wait"
    service.refuse("POST /api/workspaces/demo/start", 409, "image_missing", "the image is missing", hint=hint)
    assert svc("ws", "start", "demo") == (1, "", f"svc: the image is missing\nhint: {hint}\n")


def test_with_json_a_refusal_is_on_both_streams(service: Service, svc: Svc) -> None:
    service.refuse("POST /api/workspaces/x/start", 404, "not_found", "no such workspace")
    done = svc("ws", "start", "x", "--json")
    assert (done.code, done.err) == (1, "svc: no such workspace\n")
    assert json.loads(done.out)["error"]["code"] == "not_found"


def test_those_of_every_user(service: Service, svc: Svc) -> None:
    line = "GET /api/workspaces?limit=200&all=true"
    service.answer(line, {"items": [{"id": "ws-1", "name": "demo", "owner": "ada"}], "next_offset": None})
    for option in ("--all", "-A"):
        done = svc("ws", "list", option)
        assert (done.code, done.out.split("\t")[0], done.out.split("\t")[-1]) == (0, "ws-1", "ada\n")
    assert svc("ws", "list", "-A", terminal=True).out.splitlines()[0].split()[-1] == "OWNER"
    for other in ("--live", "--owner ada"):
        assert svc("ws", "list", "-A", *other.split()).code == 2


@pytest.mark.parametrize(
    ("verb", "sent"), [("stop", "POST /api/workspaces/lab/stop"), ("delete", "DELETE /api/workspaces/lab")]
)
def test_an_administrator_s_hint_has_the_verb(service: Service, svc: Svc, verb: str, sent: str) -> None:
    hint = "svc ws get ws-1 --owner alice"
    service.refuse(sent, 404, "not_found", "no workspace lab", hint=hint)
    options = ["--yes"] if verb == "delete" else []
    assert svc("ws", verb, "lab", *options).err.endswith(f"hint: svc ws {verb} ws-1 --owner alice\n")


def test_delete_needs_a_confirmation(service: Service, svc: Svc) -> None:
    service.answer("DELETE /api/workspaces/demo", None, status=204)
    service.answer("GET /api/workspaces/demo", record(status="stopped"))
    service.answer("GET /api/workspaces/demo?owner=bob", record(status="stopped"))
    done = svc("ws", "delete", "demo", "--json")
    assert (done.code, service.sent) == (1, ["GET /api/workspaces/demo"])
    assert "svc ws delete demo --json --yes" in done.err
    other = svc("ws", "delete", "demo", "--owner", "bob")
    assert "hint: svc ws delete demo --owner bob --yes" in other.err, "not one's own of that name"
    assert svc("ws", "delete", "demo", terminal=True, stdin=b"n\n").code == 1
    assert {line.partition(" ")[0] for line in service.sent} == {"GET"}
    done = svc("ws", "delete", "demo", terminal=True, stdin=b"y\n")
    assert (done.code, done.out) == (0, "demo is deleted.\n")
    count = len(service.sent)
    assert svc("ws", "delete", "demo", "--yes") == (0, "", "")
    assert svc("ws", "delete", "demo", "--yes", "--json") == (0, '{"deleted":"demo"}\n', "")
    assert service.sent[count:] == ["DELETE /api/workspaces/demo"] * 2


def test_the_question_says_what_runs(service: Service, svc: Svc) -> None:
    """Of another user's, who alone sees the processes, only that it runs."""
    commands = ["/run/podman-init -- python3", "python3 train.py --out " + "x" * 60]
    commands += [f"sleep {number}" for number in range(7)]
    snapshot = {"processes": [{"command": command} for command in commands], "more_processes": 2}
    for query in ("", "?owner=alice"):
        service.answer(f"GET /api/workspaces/demo{query}", record())
        service.answer(f"DELETE /api/workspaces/demo{query}", None, status=204)
    service.answer("GET /api/workspaces/demo/monitor", snapshot)
    done = svc("ws", "delete", "demo", terminal=True, stdin=b"y\n")
    assert done.code == 0
    shown = "python3 train.py --out " + "x" * 36 + "…"
    running = f"demo is running: {shown}, sleep 0, sleep 1, sleep 2, sleep 3 and 5 more.\n"
    assert done.err.startswith(running + "Delete workspace demo? [y/N]")
    done = svc("ws", "delete", "demo", "--owner", "alice", terminal=True, stdin=b"y\n")
    assert done.err.startswith("demo is running.\nDelete workspace demo? [y/N]")


def test_a_question_about_nothing_is_not_asked(service: Service, svc: Svc) -> None:
    service.refuse("GET /api/workspaces/demo", 404, "not_found", "no workspace demo")
    for terminal in (True, False):
        done = svc("ws", "delete", "demo", terminal=terminal, stdin=b"y\n")
        assert (done.code, done.err) == (1, "svc: no workspace demo\n")
    service.answer("GET /api/workspaces/paper", record("paper", status="stopped"))
    service.answer("DELETE /api/workspaces/paper", None, status=204)
    done = svc("ws", "delete", "demo", "paper", terminal=True, stdin=b"y\n")
    assert done.err.startswith("Delete workspace paper? [y/N]") and done.code == 1
    assert done.err.endswith("svc: no workspace demo\n")
    assert service.sent[-1] == "DELETE /api/workspaces/paper"


def test_rename(service: Service, svc: Svc) -> None:
    service.answer("POST /api/workspaces/demo/rename", record())
    for form in (["paper"], ["--name", "paper"]):
        assert svc("ws", "rename", "demo", *form) == (0, LINE, "")
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
    assert "memory_bytes, pids_limit; for an administrator: sudo svc admin doctor" in done.err
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
        "ws bogus",
        "ws start",
        "ws get a b",
        "ws start a/b",
        "ws rename demo",
        "ws rename demo paper --name other",
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


def test_several_in_turn(service: Service, svc: Svc) -> None:
    """The others have their turn after a refusal, and the exit code tells of it."""
    service.refuse(
        "POST /api/workspaces/gone/start", 404, "not_found", "no workspace gone", hint="svc ws list"
    )
    for name in ("demo", "paper"):
        service.answer(f"POST /api/workspaces/{name}/start", record(name))
        service.answer(f"DELETE /api/workspaces/{name}", None, status=204)
    done = svc("ws", "start", "demo", "gone", "paper", "demo")
    assert [line.split("\t")[1] for line in done.out.splitlines()] == ["demo", "paper"]
    assert (done.code, done.err) == (1, "svc: no workspace gone\nhint: svc ws list\n")
    for name in ("demo", "paper", "demo?owner=ada", "my%20ws?owner=ada"):
        service.answer(f"GET /api/workspaces/{name}", record(status="stopped"))
    asked = svc("ws", "rm", "demo", "--owner=ada", "my ws")
    assert (asked.code, "hint: svc ws delete demo 'my ws' --owner ada --yes" in asked.err) == (1, True)
    done = svc("ws", "rm", "demo", "paper", terminal=True, stdin=b"y\n")
    assert (done.code, done.out) == (0, "demo is deleted.\npaper is deleted.\n")
    assert done.err.startswith("Delete workspaces demo, paper? [y/N]")


def test_what_is_true_of_all_is_said_once(service: Service, svc: Svc) -> None:
    service.refuse("POST /api/workspaces/a/start", 403, "account_missing", "no account")
    done = svc("ws", "start", "a", "b")
    assert (done.code, done.err, len(service.sent)) == (3, "svc: no account\n", 1)


def test_labels_are_spelt_as_people_spell_them(service: Service, svc: Svc) -> None:
    service.answer("GET /api/workspaces/demo", record())
    labels = [line.partition(":")[0] for line in svc("ws", "get", "demo", terminal=True).out.splitlines()]
    assert {"ID", "CPUs", "GPUs", "GPU count", "Image status", "SHM size", "PIDs"} <= set(labels)


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


def test_a_start_that_fails_shows_the_engines_words(service: Service, svc: Svc) -> None:
    path = "POST /api/workspaces/demo/start"
    refusal = ("command_not_found", "demo cannot run: the command is not in the image")
    hint, details = "svc template get tpl-1", {"exit_code": 1, "engine": "failed to exec\x1b[2J pid1"}
    service.refuse(path, 422, *refusal, hint=hint, details=details)
    code, out, err = svc("ws", "start", "demo")
    assert (code, out) == (1, "")
    lines = err.splitlines()
    assert (lines[0], lines[-1]) == (f"svc: {refusal[1]}", f"hint: {hint}")
    assert lines[1].startswith("engine: failed to exec")
    assert "\x1b" not in err
    service.replies.clear()
    service.refuse(path, 422, "exited_at_once", "demo has exited", details={"output": ["one", "two"]})
    assert svc("ws", "start", "demo").err == "svc: demo has exited\n  one\n  two\n"
    for strange in ({"output": 7, "engine": ["x"]}, [], "x", None):
        service.replies.clear()
        service.refuse(path, 422, "exited_at_once", "demo has exited", details=strange)
        assert svc("ws", "start", "demo").err == "svc: demo has exited\n"


def test_a_batch_job_has_ended(service: Service, svc: Svc) -> None:
    for _ in range(2):
        service.answer("POST /api/workspaces/demo/start", record(status="stopped", exit_code=0))
    done = svc("ws", "start", "demo", terminal=True)
    assert (done.code, done.out) == (0, "demo has ended with exit code 0; its output: svc ws logs demo\n")
    assert svc("ws", "start", "demo").out.split("\t")[2] == "stopped"


WAYS = "/api/workspaces/ws-1/launchers"


@pytest.mark.parametrize("words", [["get"], ["start"], ["restart"]])
def test_the_ways_into_its_launchers_are_below(service: Service, svc: Svc, words: list[str]) -> None:
    """On a terminal; a script's line stays one line, and another's launchers are nobody else's."""
    found = record(id="ws-1", launchers=[{"name": "lab"}])
    verb = "GET" if words == ["get"] else "POST"
    tail = "" if verb == "GET" else f"/{words[0]}"
    service.answer(f"{verb} /api/workspaces/demo{tail}", found)
    lab = {"name": "lab", "state": "started", "connect": "http://127.0.0.1:20001", "ssh": "ssh -N -L x"}
    dead = {"name": "job", "state": "exited", "exit_code": 3}
    service.answer(f"GET {WAYS}", {"items": [lab, dead]})
    out = svc("ws", *words, "demo", terminal=True).out
    assert out.endswith(
        "lab is started\njob is exited with exit code 3\n\nlab: http://127.0.0.1:20001\n"
        "The output of job: svc ws logs demo --launcher job\nFrom another computer, first: ssh -N -L x\n"
    )
    assert svc("ws", *words, "demo").out.count("127.0.0.1") == 0
    assert svc("ws", *words, "demo", "--json", terminal=True).code == 0
    assert [sent for sent in service.sent if sent == f"GET {WAYS}"] == [f"GET {WAYS}"]


def test_launchers_that_cannot_be_read_fail_no_start(service: Service, svc: Svc) -> None:
    service.answer("POST /api/workspaces/demo/start", record(id="ws-1", launchers=[{"name": "lab"}]))
    service.refuse(f"GET {WAYS}", 503, "engine_unavailable", "no reply")
    done = svc("ws", "start", "demo", terminal=True)
    assert (done.code, "no reply" in done.err) == (0, True)


def test_a_start_names_launchers_that_have_failed(service: Service, svc: Svc) -> None:
    failed = {"name": "lab", "exit_code": 1, "output": ["no module \x1b[2J"]}
    service.answer("POST /api/workspaces/demo/start", record(launchers=[], launchers_failed=[failed]))
    done = svc("ws", "start", "demo")
    assert done.code == 0
    assert done.err == (
        "svc: the launcher lab has exited with exit code 1\n  no module \\x1b[2J\n"
        "hint: svc ws logs demo --launcher lab\n"
    )


def test_a_start_names_launchers_that_do_not_listen(service: Service, svc: Svc) -> None:
    deaf = [{"name": "lab", "container_port": 23160}]
    service.answer("POST /api/workspaces/demo/start", record(launchers=[], launchers_not_listening=deaf))
    done = svc("ws", "start", "demo")
    assert done.code == 0
    assert done.err == (
        "svc: the launcher lab does not listen on port 23160 yet (the number is in SVC_PORT)\n"
        "hint: svc ws ports demo\n"
    )


def test_a_list_names_launchers_that_have_failed(service: Service, svc: Svc) -> None:
    running = record(id="ws-1", launchers=[{"name": "lab"}])
    service.answer("GET /api/workspaces?limit=200", {"items": [running], "next_offset": None})
    states = [("lab", "exited", 1), ("job", "exited", 0), ("web", "started", None), ("none", "stopped", 143)]
    launchers = [{"name": name, "state": state, "exit_code": code} for name, state, code in states]
    service.answer("GET /api/usage/workspaces", {"items": [{"id": "ws-1", "launchers": launchers}]})
    done = svc("ws", "list", terminal=True)
    line = "the launcher lab of demo has exited with exit code 1: svc ws logs demo --launcher lab"
    assert (done.code, done.err) == (0, f"svc: {line}\n")
    assert svc("ws", "list").err == ""


def test_a_list_stands_though_nobody_knows_of_launchers(service: Service, svc: Svc) -> None:
    running = record(id="ws-1", launchers=[{"name": "lab"}])
    service.answer("GET /api/workspaces?limit=200", {"items": [running], "next_offset": None})
    service.refuse("GET /api/usage/workspaces", 503, "engine_unavailable", "no reply")
    done = svc("ws", "list", terminal=True)
    assert (done.code, done.err) == (0, "")
    assert "demo" in done.out
