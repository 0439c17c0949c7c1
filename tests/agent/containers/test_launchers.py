"""Launchers in real workspaces: states, exit codes, bounded output, nothing left behind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from agent.containers.test_exec import normal, run, sleepers
from agent.priv_ns import IN_EACH_STORE, Agent, User, wait_for

from svc_helper.agent.runtime.rotating_log import FILE_BYTES

pytestmark = pytest.mark.root
Make = Callable[..., str]
# Needs a while for its end; no single quotes, since some tests put it into a pair of them.
KIND = 'trap "sleep 0.4; echo saved; exit 0" TERM; echo ready; while :; do sleep 0.05; done'
IDENTITY = "cat /proc/self/status | grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp)'; pwd; umask; ulimit -n"


def start(agent: Agent, ws: str, name: str, *command: str, **env: str) -> dict[str, Any]:
    """Start a launcher."""
    return agent.call("launcher.start", id=ws, name=name, command=list(command), env=env, watch_ms=0).data


def stop(agent: Agent, ws: str, name: str, grace_s: int = 5) -> dict[str, Any]:
    """Stop one."""
    return agent.call("launcher.stop", id=ws, name=name, grace_s=grace_s, deadline_s=60).data


def state(agent: Agent, ws: str, name: str) -> dict[str, Any]:
    """How one is; empty when it never ran."""
    rows = agent.call("launcher.list", id=ws).data["launchers"]
    return next((row for row in rows if row["name"] == name), {})


def exited(agent: Agent, ws: str, name: str) -> dict[str, Any]:
    """How one is once it has ended by itself."""
    return wait_for(lambda: (row := state(agent, ws, name))["state"] == "exited" and row)


def text(agent: Agent, ws: str, name: str, tail: int = 1000) -> str:
    """The captured output."""
    return agent.logs(ws, name, tail).text


def directory(user: User, ws: str) -> Path:
    """Where the files are."""
    return Path(user.home) / ".local/state/svc/workspaces" / ws / "launchers"


@IN_EACH_STORE
def test_a_launcher_lives_and_ends(agent: Agent, make: Make, user: User) -> None:
    ws = make()
    assert agent.call("launcher.list", id=ws).data == {"launchers": []}
    assert agent.logs(ws, "web").content == b""
    row = start(
        agent, ws, "web", "sh", "-c", "echo out $COLOUR $TASTE; echo err >&2; exec sleep 4249", TASTE="sour"
    )
    assert row["state"] == "started" and row["exit_code"] is None and row["finished_at"] is None
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row["started_at"])
    assert start(agent, ws, "web", "true") == row, "it is left running"
    assert state(agent, ws, "web") == row
    wait_for(lambda: "sleep 4249" in user.processes().get(row["pid"], ""))
    wait_for(lambda: text(agent, ws, "web") == "out blue sour\nerr\n")
    ended = stop(agent, ws, "web")
    assert (ended["state"], ended["pid"], ended["exit_code"]) == ("stopped", None, 143)
    assert ended["finished_at"] >= row["started_at"]
    assert not sleepers(user)
    assert stop(agent, ws, "web") == ended == state(agent, ws, "web")
    assert stop(agent, ws, "nameless")["state"] == "stopped"


@IN_EACH_STORE
def test_it_runs_as_the_containers_own_process(agent: Agent, make: Make) -> None:
    for changes in ({}, {"run_as": {"uid": 1234, "gid": 1234}}):
        ws = make(**changes)
        start(agent, ws, "who", "sh", "-c", IDENTITY)
        exited(agent, ws, "who")
        assert normal(text(agent, ws, "who")) == normal(run(agent, ws, "sh", "-c", IDENTITY)["stdout"])


def test_a_container_whose_root_owns_its_group(agent: Agent, user: User, image: str) -> None:
    """As crun 1.21 has it where that root is not the user; crun 1.8.1 leaves the group with the user."""
    ws = "ws-57abb043"
    options = ["--userns=keep-id:uid=1234,gid=1234", f"--cgroup-parent=/test-{user.name}"]
    names = [f"--name=svc-{ws}", f"--label=svc.workspace={ws}"]
    container_id = user.podman("create", "--init", *options, *names, image, "sleep", "1000").stdout.strip()
    try:
        assert agent.call("ctr.start", id=ws).data
        record = user.run("cat", f"{user.runtime}/crun/{container_id}/status").stdout
        group = f"/sys/fs/cgroup/{json.loads(record)['cgroup-path'].strip('/')}"
        assert container_id in group
        user.podman("unshare", "chown", "1:1", group, f"{group}/cgroup.procs")
        start(agent, ws, "web", "true")
        assert exited(agent, ws, "web")["exit_code"] == 0
    finally:
        agent.call("ctr.remove", id=ws)


@IN_EACH_STORE
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        (["sh", "-c", "exit 3"], 3, ""),
        (["sh", "-c", "kill -9 $$"], 137, ""),
        (["nope"], 127, "nope: not found\n"),
        (["/nope/x"], 127, "/nope/x: not found\n"),
        (["/etc"], 126, "/etc: cannot be executed\n"),
        (["/tmp/bad"], 127, "/tmp/bad: its first line names /bin/no, which is not there\n"),
    ],
)
def test_exit_codes(agent: Agent, make: Make, command: list[str], code: int, said: str) -> None:
    ws = make()
    run(agent, ws, "sh", "-c", "echo '#!/bin/no' >/tmp/bad; chmod 755 /tmp/bad")
    start(agent, ws, "web", *command)
    row = exited(agent, ws, "web")
    assert (row["exit_code"], row["pid"]) == (code, None)
    assert text(agent, ws, "web") == said


@IN_EACH_STORE
def test_a_restart_goes_on_in_the_same_output(agent: Agent, make: Make) -> None:
    ws = make()
    for number in (1, 2):
        start(agent, ws, "web", "printf", f"{number}")
        exited(agent, ws, "web")
    found = agent.logs(ws, "web")
    assert found.content == b"12", "markers are no part of it"
    assert [(offset, text[:10]) for offset, text in found.markers] == [(0, "started 20"), (1, "started 20")]


def test_output_without_end_stays_within_its_bound(agent: Agent, make: Make, user: User) -> None:
    ws = make()
    start(agent, ws, "loud", "yes", "0123456789")
    for number in (1, 2, 3):
        wait_for((directory(user, ws) / f"loud.{number}.log").exists)
        sizes = 0
        for path in directory(user, ws).glob("loud.*.log"):
            with suppress(FileNotFoundError):  # just removed
                sizes += path.stat().st_size
        assert sizes <= 3 * FILE_BYTES, "the oldest goes when the next one has been created"
    answer = agent.logs(ws, "loud")
    assert answer.older_gone and set(answer.text.splitlines()[1:-1]) == {"0123456789"}
    assert len(answer.content) > 2 * 1024 * 1024 // 8
    assert len(agent.logs(ws, "loud", tail=10_000).text.splitlines()) == 10_000
    assert stop(agent, ws, "loud")["state"] == "stopped"
    assert not [arguments for arguments in user.processes().values() if "yes 0123" in arguments]


@IN_EACH_STORE
def test_control_characters_fit_an_answer_too(agent: Agent, make: Make) -> None:
    ws = make()
    start(agent, ws, "nul", "sh", "-c", "head -c 1500000 /dev/zero; echo; echo end")
    exited(agent, ws, "nul")
    answer = agent.logs(ws, "nul", tail=10, most=1024 * 1024)
    assert answer.truncated and answer.text.endswith("\0\nend\n")
    assert agent.logs(ws, "nul").content == bytes(1_500_000) + b"\nend\n"


def test_stop_ends_everything_it_started(stubborn: tuple[Agent, str, str], user: User) -> None:
    agent, ws, script = stubborn
    start(agent, ws, "wild", "sh", "-c", script)
    wait_for(lambda: len(sleepers(user)) >= 6)
    assert stop(agent, ws, "wild", 1)["state"] == "stopped"
    assert not sleepers(user)
    # What a launcher left behind that has exited goes with its next start, or a stop.
    start(agent, ws, "wild", "sh", "-c", "setsid sleep 4240 & sleep 0.1")
    assert exited(agent, ws, "wild")["exit_code"] == 0 and sleepers(user)
    start(agent, ws, "wild", "sh", "-c", "setsid sleep 4250 & sleep 0.1")
    assert exited(agent, ws, "wild") and len(sleepers(user)) == 1
    assert stop(agent, ws, "wild", 0)["state"] == "exited"
    assert not sleepers(user)
    assert agent.call("ctr.inspect", id=ws).data["status"] == "running", "the workspace runs on"


def test_a_graceful_end_has_its_grace(stubborn: tuple[Agent, str, str]) -> None:
    agent, ws, _ = stubborn
    script = "trap 'sleep 0.4; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done"
    start(agent, ws, "kind", "sh", "-c", script)
    wait_for(lambda: "ready" in text(agent, ws, "kind"))
    ended = stop(agent, ws, "kind", 30)
    assert (ended["state"], ended["exit_code"]) == ("stopped", 0)
    assert text(agent, ws, "kind").endswith("saved\n")


def test_a_start_waits_for_an_end_under_way(agent: Agent, make: Make) -> None:
    ws = make()
    start(
        agent,
        ws,
        "web",
        "sh",
        "-c",
        "trap 'echo told; sleep 1' TERM; echo ready; while :; do sleep 0.1; done",
    )
    wait_for(lambda: "ready" in text(agent, ws, "web"))
    ending = agent.begin("launcher.stop", id=ws, name="web", grace_s=2, deadline_s=60)
    wait_for(lambda: "told" in text(agent, ws, "web"))
    assert start(agent, ws, "web", "echo", "again")["state"] in ("started", "exited")
    assert ending.answer().data["name"] == "web"
    wait_for(lambda: text(agent, ws, "web").endswith("again\n"))
    assert exited(agent, ws, "web")["exit_code"] == 0


def test_a_stubborn_one_holds_up_no_stop(stubborn: tuple[Agent, str, str], user: User) -> None:
    agent, ws, script = stubborn
    for _ in range(2):
        start(agent, ws, "wild", "sh", "-c", script)
        wait_for(lambda: len(sleepers(user)) >= 6)
        assert agent.call("ctr.stop", id=ws, grace_s=1).data
        assert agent.call("ctr.inspect", id=ws).data["status"] == "stopped"
        assert not sleepers(user)
        assert state(agent, ws, "wild")["state"] == "stopped"
        assert agent.call("ctr.start", id=ws).data


@IN_EACH_STORE
def test_with_the_workspace_launchers_stop(agent: Agent, make: Make, user: User) -> None:
    ws = make()
    start(agent, ws, "web", "sh", "-c", "echo here; exec sleep 4251")
    start(agent, ws, "done", "false")
    exited(agent, ws, "done")
    agent.call("ctr.stop", id=ws, grace_s=2)
    row = wait_for(lambda: (row := state(agent, ws, "web"))["finished_at"] and row)
    assert (row["state"], row["exit_code"], row["pid"]) == ("stopped", 143, None), "it had TERM"
    assert state(agent, ws, "done")["state"] == "exited"
    assert text(agent, ws, "web") == "here\n", "readable while stopped"
    assert (
        agent.call("launcher.start", id=ws, name="web", command=["true"], env={}, watch_ms=0).code
        == "not_running"
    )
    assert stop(agent, ws, "web") == row
    agent.call("ctr.start", id=ws)
    assert start(agent, ws, "web", "sh", "-c", "echo again; exec sleep 4252")["state"] == "started"
    wait_for(lambda: text(agent, ws, "web") == "here\nagain\n")
    assert not [arguments for arguments in user.processes().values() if "sleep 4251" in arguments]


def test_without_a_container_there_is_no_launcher(agent: Agent) -> None:
    ws = "ws-99999998"
    assert (
        agent.call("launcher.start", id=ws, name="web", command=["true"], env={}, watch_ms=0).code
        == "not_found"
    )
    assert agent.call("launcher.list", id=ws).data == {"launchers": []}


def test_rubbish_in_its_directory_harms_nobody(agent: Agent, make: Make, user: User) -> None:
    ws = make()
    path = directory(user, ws)
    start(agent, ws, "web", "echo", "first")
    exited(agent, ws, "web")
    script = f"cd {path}; mkfifo pipe.json fifo.0.log; echo [ > list.json; echo {{}} > none.json"
    user.run(
        "sh",
        "-c",
        f"{script}; ln -s /etc/passwd link.0.log; head -c 3000000 /dev/zero > big.json; "
        "mkdir dir.json dir.0.log",
    )
    assert [row["name"] for row in agent.call("launcher.list", id=ws).data["launchers"]] == ["web"]
    for name in ("fifo", "link", "dir"):
        assert agent.logs(ws, name).content == b""
        start(agent, ws, name, "echo", "lost")
        assert exited(agent, ws, name)["exit_code"] == 0
    forged = json.loads((path / "web.json").read_text())
    forged |= {"state": "started", "mark": "x", "group": "/sys/fs/cgroup/../../etc", "pid": -1}
    (path / "web.json").write_text(json.dumps(forged))
    agent.call("ctr.stop", id=ws, grace_s=1)
    wait_for(
        lambda: not (Path(f"/proc/{user.namespace.holder.pid}/root{user.runtime}/svc/shims") / ws).exists()
    )
    assert agent.call("launcher.list", id=ws).data["launchers"]
