"""What dies and what goes on: kill -9 of every process of svc, a clean stop, a restart in between."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import threading
import time
from collections.abc import Callable

import pytest
from e2e.installation import SVC, Call, Outcome, Service, app_uids, process, processes, processes_of
from waiting import until

Record = Callable[[str], dict[str, object]]


def container_init(user: str = "tse-alice") -> int:
    """The pid of the one running container's own program."""
    found = [one.pid for one in processes_of(user) if one.args == "sleep infinity"]
    assert len(found) == 1, found
    return found[0]


def in_background(call: Callable[[], Outcome]) -> Callable[[], Outcome]:
    """Start a call now; the returned function waits for its outcome."""
    kept: list[Outcome] = []
    thread = threading.Thread(target=lambda: kept.append(call()))
    thread.start()

    def result() -> Outcome:
        thread.join(60)
        return kept[0]

    return result


def kill(pid: int) -> None:
    """kill -9, and wait until it is gone."""
    os.kill(pid, signal.SIGKILL)
    until(lambda: process(pid) is None, 30, 0.01)


def agent(user: str = "tse-alice") -> int:
    """The pid of the user's agent."""
    return next(one.pid for one in processes_of(user) if "svc_helper.agent" in one.args)


def test_a_hundred_execs_leave_no_process(alice: Call, workspace: str) -> None:
    assert alice("ws", "exec", workspace, "--", "true").code == 0
    before = {one.pid for one in processes_of("tse-alice")}
    for _ in range(100):
        assert alice("ws", "exec", workspace, "--", "true").code == 0
    until(lambda: {one.pid for one in processes_of("tse-alice")} <= before, 30)


def test_the_helper_dies_while_a_call_is_with_an_agent(service: Service, alice: Call, workspace: str) -> None:
    result = in_background(lambda: alice("ws", "exec", workspace, "--", "sh", "-c", "sleep 2; echo done"))
    time.sleep(0.7)
    kill(service.member("svc_helper").pid)
    outcome = result()
    assert (outcome.code, outcome.out) == (0, "done\n"), outcome.err
    assert alice("ws", "exec", workspace, "--", "true").code == 0


def test_the_agent_dies_during_a_call(alice: Call, workspace: str) -> None:
    result = in_background(lambda: alice("ws", "exec", workspace, "--", "sleep", "20"))
    time.sleep(0.7)
    kill(agent())
    outcome = result()
    assert outcome.code == 1
    assert alice("ws", "exec", workspace, "--", "true").code == 0
    body = alice("api", "GET", f"/api/workspaces/{workspace}").json()
    assert body["status"] == "running"


def test_a_dead_agent_is_a_503(alice: Call, workspace: str) -> None:
    command = '{"command": ["sleep", "20"]}'
    result = in_background(
        lambda: alice("api", "POST", f"/api/workspaces/{workspace}/exec", "--body", command)
    )
    time.sleep(0.7)
    kill(agent())
    assert result().json()["error"]["code"] == "engine_unavailable"


@pytest.mark.parametrize("which", ["unix", "tls", "worker", "svc.app", "svc_helper"])
def test_a_child_that_dies_is_started_again(
    service: Service, alice: Call, workspace: str, record: Record, which: str
) -> None:
    init = container_init()
    kill(service.member(which).pid if which.startswith("svc") else named(service, which))
    until(lambda: alice("ws", "exec", workspace, "--", "true").code == 0, 15)
    until(service.answers, 15)
    assert container_init() == init
    assert record(workspace)["status"] == "running"


def named(service: Service, name: str) -> int:
    """The app parent's child with that name (as `ps -o comm` or the command line shows it)."""
    parent = service.member("svc.app").pid
    for one in processes():
        if one.parent == parent and (
            name in one.status["Name"] or f" {name}" in one.args or f":{name}" in one.args
        ):
            return one.pid
    raise AssertionError([(one.status["Name"], one.args) for one in processes() if one.parent == parent])


def test_the_supervisor_dies(service: Service, alice: Call, workspace: str, record: Record) -> None:
    init = container_init()
    service.stop(signal.SIGKILL)
    service.start()
    assert container_init() == init
    assert record(workspace)["status"] == "running"
    assert alice("ws", "exec", workspace, "--", "echo", "here").out == "here\n"


def test_a_stop_with_requests_in_flight_takes_less_than_five_seconds(
    service: Service, alice: Call, workspace: str
) -> None:
    init = container_init()
    results = [in_background(lambda: alice("ws", "exec", workspace, "--", "sleep", "33")) for _ in range(3)]
    time.sleep(0.7)
    took = service.stop()
    for result in results:
        assert result().code == 1
    assert took < 5
    assert not [one for one in processes() if one.uid in app_uids().values()]
    assert container_init() == init
    until(lambda: not [one for one in processes_of("tse-alice") if one.args == "sleep 33"], 15)
    service.start()
    assert alice("ws", "exec", workspace, "--", "true").code == 0


def test_a_second_server_on_the_same_database_is_refused(service: Service) -> None:
    second = subprocess.run(
        [SVC, "server", "--port", "1"],
        env=service.env,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert second.returncode == 1
    assert service.answers()


def test_a_container_killed_behind_its_back_is_noticed(alice: Call, workspace: str, record: Record) -> None:
    kill(container_init())
    until(lambda: record(workspace)["status"] == "stopped", 10)
    assert record(workspace)["status_reason"] == "container_exited"
    assert alice("ws", "start", workspace).code == 0


def test_it_is_noticed_too_when_svc_was_away(service: Service, workspace: str, record: Record) -> None:
    with service.stopped():
        kill(container_init())
    until(lambda: record(workspace)["status"] == "stopped", 10)
    assert record(workspace)["status_reason"] == "container_exited"


@pytest.mark.parametrize("status", ["starting", "stopping", "deleting", "creating"])
def test_a_restart_in_a_transitional_state_ends_in_a_true_one(
    service: Service, workspace: str, alice: Call, status: str
) -> None:
    with service.stopped():
        write = f"UPDATE workspaces SET status = '{status}' WHERE name = '{workspace}'"
        subprocess.run(
            ["runuser", "-u", "svc", "--", "python3", "-c",
             "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()",
             service.env["SVC_DB"], write], check=True,
        )  # fmt: skip

    def resolved() -> bool:
        found = alice("api", "GET", f"/api/workspaces/{workspace}")
        if status == "deleting":
            return found.code == 1 and found.json()["error"]["code"] == "not_found"
        return found.code == 0 and found.json()["status"] in ("running", "stopped", "failed")

    until(resolved, 20, 0.2)


def test_a_stopped_podman_is_a_clear_answer_and_comes_back(alice: Call, workspace: str) -> None:
    for one in processes_of("tse-alice"):
        if "system service" in one.args:
            os.kill(one.pid, signal.SIGKILL)
    assert alice("ws", "logs", workspace).code in (0, 1)
    until(lambda: alice("ws", "logs", workspace).code == 0, 30)


def test_what_alice_does_with_podman_herself_is_seen(alice: Call, workspace: str, record: Record) -> None:
    stop = 'podman stop --time 1 "$(podman ps --quiet | head -n 1)"'
    account = pwd.getpwnam("tse-alice")
    done = subprocess.run(
        ["runuser", "-u", "tse-alice", "--", "env", "-i", f"HOME={account.pw_dir}", "PATH=/usr/bin:/bin",
         f"XDG_RUNTIME_DIR=/run/user/{account.pw_uid}", "sh", "-c", stop],
        capture_output=True, text=True, cwd="/",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    until(lambda: record(workspace)["status"] == "stopped", 10)


@pytest.mark.depth("merge", "it waits for the supervisor's patience")
def test_a_listener_that_stands_still_is_replaced(service: Service, alice: Call) -> None:
    """Nobody gets an answer from it: the app parent looks for its heartbeat, and kills it."""
    stands, other = service.named("svc-unix").pid, service.named("svc-tls").pid
    os.kill(stands, signal.SIGSTOP)
    until(lambda: process(stands) is None, 90, 0.2)
    until(service.answers, 30)
    assert alice("ws", "list").code == 0
    assert service.named("svc-tls").pid == other
