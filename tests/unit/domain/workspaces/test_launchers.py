"""Launchers: listed from the document, started and stopped by the owner alone."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from unit.serving import FarEnd, make_template, make_workspace

from svc import errors
from svc.db.connect import database, write
from svc.domain.principal import Caller
from svc.domain.workspaces import launchers, logs, ports, states, workspaces

HTTP = {"name": "http", "container_port": 8888}
WEB = {
    "name": "web", "title": "The web", "command": ["serve", "$HOME", "a b"],
    "env": [{"name": "MODE", "value": "$(id)"}], "port": "http", "autostart": True,
}  # fmt: skip
JOB = {"name": "job", "title": "", "command": ["job"], "env": [], "port": None, "autostart": False}
DAEMON = JOB | {"name": "daemon", "autostart": True}
STARTED = {
    "state": "started", "exit_code": None, "started_at": "2025-01-02T03:04:05.000Z", "finished_at": None,
}  # fmt: skip


@pytest.fixture
def stopped(ada: Caller) -> str:
    template = make_template(ada.user_id, launchers=[WEB, JOB, DAEMON], ports=[HTTP])
    workspace = make_workspace(ada.user_id, template, container_id="c" * 64)
    with write():
        ports.adopt(workspace, [HTTP | {"access": "owner"}])
    return workspace


@pytest.fixture
def lab(stopped: str, far: FarEnd) -> str:
    """A running one."""
    database.execute_sql("UPDATE workspaces SET status = 'running'")
    return stopped


def outcomes() -> list[Any]:
    return database.execute_sql("SELECT action, target, outcome FROM audit ORDER BY id").fetchall()


def test_listing(ada: Caller, far: FarEnd, lab: str) -> None:
    far.answers["launcher.list"] = {"launchers": [{"name": "web", "pid": 5, **STARTED}]}
    web, job, _ = launchers.listing(ada, "lab")["items"]
    host_port = ports.rows_of(lab)[0].host_port
    assert web == {
        "name": "web", "title": "The web", "port": "http", "autostart": True, **STARTED,
        "host_port": host_port, "url": f"http://127.0.0.1:{host_port}", "kind": "http",
        "connect": f"http://127.0.0.1:{host_port}",
        "ssh": f"ssh -N -L {host_port}:127.0.0.1:{host_port} ada@localhost", "token": None, "link": None,
    }  # fmt: skip
    assert job == {
        "name": "job", "title": "", "port": None, "autostart": False, "state": "stopped", "exit_code": None,
        "started_at": None, "finished_at": None, "host_port": None, "url": None,
        "kind": None, "connect": None, "ssh": None, "token": None, "link": None,
    }  # fmt: skip


TOKEN = {"pattern": "token={token}", "link": "/lab?token={token}"}


@pytest.fixture
def secret(ada: Caller, far: FarEnd) -> str:
    """A running one whose launcher has a login token, but not yet."""
    template = make_template(ada.user_id, launchers=[WEB | {"token": TOKEN}, JOB], ports=[HTTP])
    workspace = make_workspace(ada.user_id, template, container_id="c" * 64, status="running")
    with write():
        ports.adopt(workspace, [HTTP])
    far.answers["launcher.list"] = {"launchers": [{"name": "web", "pid": 5, **STARTED}]}
    far.answers["launcher.token"] = {"token": None}
    return workspace


def test_the_token_of_one_that_runs(ada: Caller, far: FarEnd, secret: str) -> None:
    web, job = launchers.listing(ada, "lab")["items"]
    assert (web["token"], web["link"], job["token"]) == (None, None, None)
    far.answers["launcher.token"] = {"token": "a+b/c="}
    web, _ = launchers.listing(ada, "lab")["items"]
    assert (web["token"], web["link"]) == ("a+b/c=", f"{web['url']}/lab?token=a%2Bb%2Fc%3D")
    expected = {"id": secret, "name": "web", "file": None, "pattern": "token={token}"}
    assert far.calls[-1].args == expected
    assert launchers.start(ada, "lab", "web")["token"] == "a+b/c="
    assert "a+b/c=" not in "".join(database.connection().iterdump())  # the audit, the events
    far.answers["launcher.list"] = {
        "launchers": [{"name": "web", **STARTED, "state": "exited", "exit_code": 1}]
    }
    assert launchers.listing(ada, "lab")["items"][0]["token"] is None


def ended_row(name: str, exit_code: int) -> dict[str, Any]:
    """Of a reply to launcher.watch."""
    state = STARTED | {"state": "exited", "exit_code": exit_code, "finished_at": STARTED["started_at"]}
    return {"name": name, "pid": None, "output": "no module\nbye \x1b[2J\n", **state}


def test_a_start_names_the_launchers_that_fail_at_once(ada: Caller, far: FarEnd, stopped: str) -> None:
    rows = [ended_row("web", 1), ended_row("daemon", 0), ended_row("job", 2), ended_row("web", 3)]
    far.answers["launcher.watch"] = {"launchers": rows}
    record = workspaces.start(ada, "lab")
    lines = ["no module", "bye \\x1b[2J"]
    assert record["launchers_failed"] == [{"name": "web", "exit_code": 1, "output": lines}]
    assert record["status"] == "running"
    (call,) = [call for call in far.calls if call.verb.name == "launcher.watch"]
    watched = [{"name": "web", "port": 8888}, {"name": "daemon", "port": None}]
    assert call.args == {"id": stopped, "launchers": watched, "watch_ms": launchers.START_WATCH_MS}
    assert "no module" not in "".join(database.connection().iterdump())
    assert workspaces.start(ada, "lab")["launchers_failed"] == []  # it runs already


def test_a_start_names_the_launchers_that_do_not_listen(ada: Caller, far: FarEnd, stopped: str) -> None:
    rows = [{"name": name, "pid": 5, "listens": False, **STARTED} for name in ("web", "web", "other")]
    rows.append({"name": "daemon", "pid": 6, "listens": None, **STARTED})
    far.answers["launcher.watch"] = {"launchers": rows}
    record = workspaces.start(ada, "lab")
    assert record["launchers_not_listening"] == [{"name": "web", "container_port": 8888}]
    assert record["launchers_failed"] == []


@pytest.mark.parametrize("code", ["failed", "unavailable", "not_running"])
def test_a_start_stands_though_its_launchers_cannot_be_watched(
    ada: Caller, far: FarEnd, stopped: str, code: str
) -> None:
    far.answers["launcher.watch"] = code
    record = workspaces.start(ada, "lab")
    assert (record["status"], record["launchers_failed"]) == ("running", [])


@pytest.mark.parametrize("token", ["", "a b", "\x1b[31m", "é", "x" * 257, 5, ["x"]])
def test_what_is_no_token(ada: Caller, far: FarEnd, secret: str, token: Any) -> None:
    """It is the word of an agent, which belongs to its user."""
    far.answers["launcher.token"] = {"token": token}
    assert launchers.listing(ada, "lab")["items"][0]["token"] is None


@pytest.mark.parametrize("code", ["failed", "unavailable", "not_running"])
def test_a_token_that_cannot_be_found_hides_no_launcher(
    ada: Caller, far: FarEnd, secret: str, code: str
) -> None:
    far.answers["launcher.token"] = code
    assert [one["state"] for one in launchers.listing(ada, "lab")["items"]] == ["started", "stopped"]
    assert launchers.start(ada, "lab", "web")["state"] == "started"


def test_listing_of_one_that_was_never_made_asks_nobody(ada: Caller, far: FarEnd) -> None:
    make_workspace(ada.user_id, make_template(ada.user_id, launchers=[JOB]))
    assert launchers.listing(ada, "lab")["items"][0]["state"] == "stopped"
    assert far.verbs() == []


def test_listing_of_a_stopped_one_shows_how_they_ended(ada: Caller, far: FarEnd, stopped: str) -> None:
    ended = STARTED | {"state": "exited", "exit_code": 3, "finished_at": "2025-01-02T04:04:06.5+01:00"}
    far.answers["launcher.list"] = {"launchers": [{"name": "job", **ended}, {"name": "other", **STARTED}]}
    items = {one["name"]: one for one in launchers.listing(ada, "lab")["items"]}
    assert set(items) == {"web", "job", "daemon"}
    assert (items["job"]["state"], items["job"]["exit_code"]) == ("exited", 3)
    assert items["job"]["finished_at"] == "2025-01-02T03:04:06.500Z"
    far.answers["launcher.list"] = "not_found"
    assert launchers.listing(ada, "lab")["items"][1]["state"] == "stopped"


def test_start(ada: Caller, far: FarEnd, lab: str) -> None:
    record = launchers.start(ada, "lab", "web")
    assert (record["name"], record["state"]) == ("web", "started")
    assert far.calls[-1].args == {
        "id": lab, "name": "web", "command": ["serve", "$HOME", "a b"],
        "env": {"MODE": "$(id)", "SVC_PORT": "8888"}, "watch_ms": launchers.LAUNCHER_WATCH_MS,
    }  # fmt: skip
    assert outcomes() == [("workspace.launcher_start", lab, "begun"), ("workspace.launcher_start", lab, "ok")]


def test_a_launcher_learns_where_its_port_is(ada: Caller, far: FarEnd, lab: str) -> None:
    database.execute_sql("UPDATE ports SET container_port = 9999")
    launchers.start(ada, "lab", "web")
    assert far.calls[-1].args["env"]["SVC_PORT"] == "9999"
    database.execute_sql("DELETE FROM ports")
    launchers.start(ada, "lab", "web")
    assert far.calls[-1].args["env"]["SVC_PORT"] == "8888"
    launchers.start(ada, "lab", "job")
    assert far.calls[-1].args["env"] == {}


def test_its_own_variable_comes_first_and_as_many_as_a_template_may_have_fit(
    ada: Caller, far: FarEnd
) -> None:
    own = WEB | {"env": [{"name": "SVC_PORT", "value": "x"}]}
    many = WEB | {"name": "many", "env": [{"name": f"V{n}", "value": ""} for n in range(64)]}
    template = make_template(ada.user_id, launchers=[own, many], ports=[HTTP])
    make_workspace(ada.user_id, template, status="running", container_id="c" * 64)
    launchers.start(ada, "lab", "web")
    assert far.calls[-1].args["env"] == {"SVC_PORT": "x"}
    launchers.start(ada, "lab", "many")
    assert len(far.calls[-1].args["env"]) == 65


def test_stop(ada: Caller, far: FarEnd, lab: str) -> None:
    record = launchers.stop(ada, "lab", "job")
    assert (record["state"], record["exit_code"]) == ("stopped", 143)
    assert far.calls[-1].args == {"id": lab, "name": "job", "grace_s": 10}
    assert outcomes()[-1] == ("workspace.launcher_stop", lab, "ok")


def test_a_stop_in_a_stopped_workspace_changes_nothing(ada: Caller, far: FarEnd, stopped: str) -> None:
    far.answers["ctr.inspect"] = {"exists": True, "status": "exited"}
    ended = STARTED | {"state": "exited", "exit_code": 3, "finished_at": "2025-01-02T04:04:06.5+01:00"}
    far.answers["launcher.list"] = {"launchers": [{"name": "job", **ended}]}
    assert launchers.stop(ada, "lab", "web")["state"] == "stopped"
    assert launchers.stop(ada, "lab", "job")["state"] == "exited"
    assert "launcher.stop" not in far.verbs()
    with pytest.raises(errors.NotFound):
        launchers.stop(ada, "lab", "bogus")


def test_no_stop_in_one_that_is_about_to_run(ada: Caller, far: FarEnd, stopped: str) -> None:
    far.answers["ctr.inspect"] = {"exists": True, "status": "exited"}
    database.execute_sql("UPDATE workspaces SET status = 'starting'")
    with pytest.raises(errors.WorkspaceNotRunning):
        launchers.stop(ada, "lab", "web")


def test_a_start_only_in_a_running_one(ada: Caller, far: FarEnd, stopped: str) -> None:
    far.answers["ctr.inspect"] = {"exists": True, "status": "exited"}
    with pytest.raises(errors.WorkspaceNotRunning) as caught:
        launchers.start(ada, "lab", "web")
    assert caught.value.hint == "svc ws start lab"
    assert far.verbs() == ["ctr.inspect"]


@pytest.mark.parametrize("act", [launchers.start, launchers.stop])
def test_one_that_ended_unseen_is_noted(ada: Caller, far: FarEnd, lab: str, act: Any) -> None:
    far.answers |= {"launcher.start": "not_running", "launcher.stop": "not_found"}
    far.answers["ctr.inspect"] = {"exists": True, "status": "exited"}
    with pytest.raises(errors.WorkspaceNotRunning) if act is launchers.start else contextlib.nullcontext():
        act(ada, "lab", "web")
    assert states.find(ada, "lab").status == "stopped"


def test_an_unknown_one(ada: Caller, far: FarEnd, lab: str) -> None:
    for act in (launchers.start, launchers.stop):
        with pytest.raises(errors.NotFound) as caught:
            act(ada, "lab", "none")
        assert caught.value.hint == "svc ws launchers lab"
    with pytest.raises(errors.NotFound):
        logs.tail(ada, "lab", 10, "none")
    assert far.verbs() == []


def test_the_owners_alone(boss: Caller, bob: Caller, far: FarEnd, lab: str) -> None:
    """ "owner-only, including for administrators", as exec."""
    acts: list[Any] = [
        lambda who: launchers.listing(who, lab),
        lambda who: launchers.start(who, lab, "web"),
        lambda who: launchers.stop(who, lab, "web"),
        lambda who: logs.tail(who, lab, 5, "web"),
    ]
    for act in acts:
        with pytest.raises(errors.OwnerOnly):
            act(boss)
        with pytest.raises(errors.NotFound):
            act(bob)
    assert far.verbs() == []
    assert [row[2] for row in outcomes()] == ["owner_only", "owner_only"]


def test_logs(ada: Caller, far: FarEnd, stopped: str) -> None:
    """ "stays readable while the workspace is stopped"."""
    far.files.kept["markers"] = [[0, "started"]]
    found = logs.tail(ada, "lab", 5, "web")
    assert (found["text"], found["markers"]) == ("hello\n", [{"offset": 0, "text": "started"}])
    assert (far.calls[-1].args["id"], far.calls[-1].args["launcher"]) == (stopped, "web")


def test_autostart(ada: Caller, far: FarEnd, lab: str, capsys: pytest.CaptureFixture[str]) -> None:
    far.answers["launcher.start"] = lambda call: "failed" if call.args["name"] == "web" else STARTED
    launchers.autostart(ada, states.find(ada, "lab"))
    assert [call.args["name"] for call in far.calls[:2]] == ["web", "daemon"]
    assert far.calls[2].args["launchers"] == [{"name": "daemon", "port": None}]  # what has been started
    assert [row[2] for row in outcomes()] == ["engine_failed", "ok"]
    assert "a launcher was not started" in capsys.readouterr().err


def test_autostart_waits_once_for_an_agent_that_does_not_answer(ada: Caller, far: FarEnd, lab: str) -> None:
    far.answers["launcher.start"] = None
    launchers.autostart(ada, states.find(ada, "lab"))
    assert [call.args["name"] for call in far.calls] == ["web"]
    assert [row[2] for row in outcomes()] == ["engine_unavailable"]


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"state": "flying"},
        {"state": 5},
        {"exit_code": "0"},
        {"exit_code": True},
        {"started_at": "yesterday"},
        {"started_at": "2025-01-02T03:04:05"},
        {"finished_at": 5},
        {"finished_at": "9999-12-31T23:59:59-12:00"},
    ],
)
def test_a_hostile_agents_answer_is_refused(
    ada: Caller, far: FarEnd, lab: str, answer: dict[str, Any]
) -> None:
    row = STARTED | {"name": "web"} | answer if answer else {}
    far.answers["launcher.start"] = row
    with pytest.raises(errors.EngineFailed):
        launchers.start(ada, "lab", "web")
    far.answers["launcher.list"] = {"launchers": [row]}
    with pytest.raises(errors.EngineFailed):
        launchers.listing(ada, "lab")


@pytest.mark.parametrize("rows", [None, {}, [5], [{"name": "x" * 64, **STARTED}], [{}] * 1000])
def test_a_list_that_is_none_is_refused(ada: Caller, far: FarEnd, lab: str, rows: Any) -> None:
    far.answers["launcher.list"] = {"launchers": rows}
    with pytest.raises(errors.EngineFailed):
        launchers.listing(ada, "lab")


def test_one_that_exits_at_once(ada: Caller, far: FarEnd, lab: str) -> None:
    state = {"name": "web", "state": "exited", "exit_code": 1, "started_at": None, "finished_at": None}
    far.answers["launcher.start"] = state | {"output": "Traceback\nImportError\n"}
    with pytest.raises(errors.ExitedAtOnce) as caught:
        launchers.start(ada, "lab", "web")
    assert caught.value.details == {"exit_code": 1, "output": ["Traceback", "ImportError"]}
    assert caught.value.hint == "svc ws logs lab --launcher web"
    assert outcomes()[-1] == ("workspace.launcher_start", lab, "exited_at_once")
    far.answers["launcher.start"] = state | {"exit_code": 0}
    assert launchers.start(ada, "lab", "web")["state"] == "exited"
