"""Launchers through the installed program: states, what they print, and what outlives what."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.installation import Call, Service, process, processes, processes_of
from e2e.registries import REPOSITORY
from e2e.surroundings import must, new_template
from waiting import until

LOG_BYTES = 16 << 20  # of each launcher: the newest file and the one before
LAUNCHERS = [
    {"name": "talker", "autostart": True, "title": "Talks",
     "command": ["sh", "-c", "echo up $MODE; echo wrong >&2; exec sleep 4712"],
     "env": [{"name": "MODE", "value": "a $(b)"}]},
    {"name": "login", "port": "web", "token": {"pattern": "token={token}", "link": "/lab?token={token}"},
     "command": ["sh", "-c", "echo http://127.0.0.1:$SVC_PORT/lab?token=s3cr3t; exec sleep 4716"]},
    {"name": "job", "command": ["sh", "-c", "echo done; exit 3"]},
    {"name": "broken", "autostart": True, "command": ["sh", "-c", "echo no such module; exit 4"]},
    {"name": "endless", "command": ["sh", "-c", "yes 'a line that is long enough to fill something soon'"]},
    {"name": "absent", "command": ["no-such-program"]},
    {"name": "stubborn", "command": ["sh", "-c", "trap '' TERM; (sleep 4713 &); sleep 4714; sleep 4715"]},
]  # fmt: skip


@pytest.fixture(scope="module")
def template(service: Service, registry: str) -> str:
    """Alice's template with these launchers; its name."""
    source = {"type": "registry", "image_ref": f"{registry}/{REPOSITORY}:1"}
    new_template("tse-alice", service.env, "launching", source, launchers=LAUNCHERS, ports=[{"name": "web"}])
    return "launching"


def states(alice: Call, workspace: str) -> dict[str, dict[str, Any]]:
    """The launchers by name."""
    items = must(alice("ws", "launchers", workspace, "--json")).json()["items"]
    return {one["name"]: one for one in items}


def state(alice: Call, workspace: str, name: str) -> str:
    return str(states(alice, workspace)[name]["state"])


def said(alice: Call, workspace: str, launcher: str) -> str:
    """What it has printed."""
    return must(alice("ws", "logs", workspace, "--launcher", launcher)).out


def test_states_and_exit_codes(alice: Call, workspace: str) -> None:
    found = states(alice, workspace)
    assert [one["name"] for one in LAUNCHERS] == list(found)
    assert (found["talker"]["state"], found["job"]["state"]) == ("started", "stopped")
    assert found["talker"]["title"] == "Talks"
    refused = alice("ws", "launcher", "start", workspace, "job")
    assert (refused.code, refused.err) == (
        1,
        "svc: job has exited at once, with exit code 3\n  done\n"
        f"hint: svc ws logs {workspace} --launcher job\n",
    )
    job = states(alice, workspace)["job"]
    assert (job["state"], job["exit_code"]) == ("exited", 3)
    assert job["started_at"] <= job["finished_at"]
    must(alice("ws", "launcher", "stop", workspace, "talker"))
    assert state(alice, workspace, "talker") == "stopped"
    must(alice("ws", "launcher", "start", workspace, "talker"))
    assert state(alice, workspace, "talker") == "started"
    must(alice("ws", "launcher", "start", workspace, "talker"))
    unknown = alice("ws", "launcher", "start", workspace, "none")
    assert (unknown.code, f"hint: svc ws launchers {workspace}\n" in unknown.err) == (1, True)


def test_the_address_that_it_prints_is_right_outside(alice: Call, workspace: str) -> None:
    """The number inside is the host's; the token is shown to its owner, and nothing keeps it."""
    must(alice("ws", "launcher", "start", workspace, "login"))
    found: dict[str, Any] = {}

    def is_found() -> bool:
        found.update(states(alice, workspace)["login"])
        return found["token"] is not None

    until(is_found, 30)
    assert found["token"] == "s3cr3t"
    assert found["link"] == f"{found['url']}/lab?token=s3cr3t"
    assert found["link"] in said(alice, workspace, "login")
    assert found["ssh"].startswith(
        f"ssh -N -L {found['host_port']}:127.0.0.1:{found['host_port']} tse-alice@"
    )
    assert f"\ts3cr3t\t{found['link']}\n" in must(alice("ws", "launchers", workspace)).out
    for words in (["ws", "get", workspace], ["ws", "list"], ["events"], ["ws", "ports", workspace]):
        assert "s3cr3t" not in must(alice(*words, "--json")).out
    must(alice("ws", "launcher", "stop", workspace, "login"))
    assert states(alice, workspace)["login"]["token"] is None


def test_a_start_names_those_that_have_failed(alice: Call, workspace: str) -> None:
    must(alice("ws", "stop", workspace))
    started = must(alice("ws", "start", workspace))
    assert started.err == (
        "svc: the launcher broken has exited with exit code 4\n  no such module\n"
        f"hint: svc ws logs {workspace} --launcher broken\n"
    )
    assert "\trunning\t" in started.out
    again = must(alice("ws", "restart", workspace, "--json")).json()
    failed = {"name": "broken", "exit_code": 4, "output": ["no such module"]}
    assert again["launchers_failed"] == [failed]
    assert state(alice, workspace, "talker") == "started"


def test_one_that_ends_by_itself_is_in_the_events(alice: Call, workspace: str) -> None:
    """And in the audit; who watches the events need not ask. An end that was asked for is none of these."""
    ident = must(alice("ws", "get", workspace, "--json")).json()["id"]
    (pid,) = [one.pid for one in processes() if one.args == "sleep 4712"]

    def told() -> list[tuple[str, int | None]]:
        rows = must(alice("events", "--type", "launcher.status_changed", "--json")).json()["items"]
        own = [row for row in rows if row["subject"]["id"] == f"{ident}/talker"]
        return [(row["data"]["state"], row["data"]["exit_code"]) for row in own]

    before = len(told())
    os.kill(pid, signal.SIGKILL)
    until(lambda: len(told()) > before, 30)
    assert told()[0] == ("exited", 128 + signal.SIGKILL)
    must(alice("ws", "launcher", "start", workspace, "talker"))
    must(alice("ws", "launcher", "stop", workspace, "talker"))
    assert [state for state, _ in told()[:3]] == ["stopped", "started", "exited"]
    assert len(told()) == before + 3
    rows = must(alice("api", "GET", f"/api/audit?q={ident}&limit=200")).json()["items"]
    ends = [row["detail"]["launcher"] for row in rows if row["action"] == "workspace.launcher_end"]
    assert ends.count("talker") == 1
    must(alice("ws", "launcher", "start", workspace, "talker"))


def test_one_that_cannot_be_run_says_so(alice: Call, workspace: str) -> None:
    """ "Starts or stops a launcher.": the start of one that exits at once fails, with its last lines."""
    refused = alice("ws", "launcher", "start", workspace, "absent", "--json")
    said_why = refused.json()["error"]
    assert (refused.code, said_why["code"]) == (1, "exited_at_once")
    assert said_why["details"] == {"exit_code": 127, "output": ["no-such-program: not found"]}
    assert states(alice, workspace)["absent"]["exit_code"] == 127
    assert "no-such-program" in said(alice, workspace, "absent")


def test_stopping_takes_what_it_has_started_along(alice: Call, workspace: str) -> None:
    must(alice("ws", "launcher", "start", workspace, "stubborn"))

    def sleeping() -> list[str]:
        names = ("sleep 4713", "sleep 4714", "sleep 4715")
        return [one.args for one in processes_of("tse-alice") if one.args in names]

    until(lambda: len(sleeping()) == 2, 20)
    must(alice("ws", "launcher", "stop", workspace, "stubborn"))
    until(lambda: not sleeping(), 20)


def test_a_rename_keeps_what_it_has(alice: Call, workspace: str) -> None:
    until(lambda: "wrong" in said(alice, workspace, "talker"), 20)
    text = said(alice, workspace, "talker")
    before = must(alice("ws", "get", workspace, "--json")).json()
    port = must(alice("ws", "port", "add", workspace, "extra", "--container-port", "9000", "--json")).json()
    must(alice("ws", "rename", workspace, "--name", f"{workspace}-new"))
    try:
        after = must(alice("ws", "get", f"{workspace}-new", "--json")).json()
        assert (after["id"], after["status"]) == (before["id"], "running")
        numbers = {one["name"]: one["host_port"] for one in after["ports"]}
        assert numbers["extra"] == port["host_port"]
        assert said(alice, f"{workspace}-new", "talker") == text
        assert state(alice, f"{workspace}-new", "talker") == "started"
    finally:
        must(alice("ws", "rename", f"{workspace}-new", "--name", workspace))


def test_what_it_prints_is_kept_over_everything(alice: Call, workspace: str, service: Service) -> None:
    """ "captured output ... stays readable while the workspace is stopped"."""
    until(lambda: "wrong" in said(alice, workspace, "talker"), 20)
    text = said(alice, workspace, "talker")
    assert sorted(text.splitlines()) == ["up a $(b)", "wrong"]
    began = f"started {states(alice, workspace)['talker']['started_at'][:19]}Z"
    assert alice("ws", "logs", workspace, "--launcher", "talker").err == f"svc: talker: {began}\n"
    found = must(alice("ws", "logs", workspace, "--launcher", "talker", "--json")).json()
    marker = {"offset": 0, "text": began}
    assert found == {"text": text, "truncated": False, "older_gone": False, "markers": [marker]}
    service.stop()
    service.start()
    assert state(alice, workspace, "talker") == "started"
    assert said(alice, workspace, "talker") == text
    must(alice("ws", "stop", workspace))
    assert state(alice, workspace, "talker") == "stopped"
    assert said(alice, workspace, "talker") == text
    must(alice("ws", "start", workspace))  # which starts it again
    until(lambda: len(said(alice, workspace, "talker").splitlines()) == 4, 20)


def test_after_the_end_of_everything_as_when_the_host_goes_down(
    alice: Call, workspace: str, service: Service
) -> None:
    until(lambda: "up" in said(alice, workspace, "talker"), 20)
    service.stop()
    while left := processes_of("tse-alice"):
        for one in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)
        until(lambda left=left: not [one for one in left if process(one.pid)], 20)
    service.start()
    assert "up a $(b)" in said(alice, workspace, "talker")
    until(lambda: state(alice, workspace, "talker") == "stopped", 30)
    must(alice("ws", "start", workspace))
    assert state(alice, workspace, "talker") == "started"


@pytest.fixture
def ended(alice: Call, workspace: str) -> Iterator[str]:
    """A workspace whose endless launcher is stopped in any case."""
    yield workspace
    alice("ws", "launcher", "stop", workspace, "endless")


def test_one_that_prints_without_end_stays_within_its_bound(alice: Call, ended: str) -> None:
    identity = str(must(alice("api", "GET", f"/api/workspaces/{ended}")).json()["id"])
    home = Path(pwd.getpwnam("tse-alice").pw_dir)
    kept = home / ".local/state/svc/workspaces" / identity / "launchers"
    must(alice("ws", "launcher", "start", ended, "endless"))
    until((kept / "endless.2.log").exists, 30)
    must(alice("ws", "launcher", "stop", ended, "endless"))
    assert state(alice, ended, "endless") == "stopped"
    sizes = [file.stat().st_size for file in kept.glob("endless.*.log")]
    assert (len(sizes), sum(sizes) <= LOG_BYTES) == (2, True)
    all_of_it = must(alice("ws", "logs", ended, "--launcher", "endless"))
    assert all_of_it.out.count("a line that is long enough") > LOG_BYTES // 4 // 60
    assert all_of_it.err == "svc: older output is gone: the newest 8 MiB or more are kept\n"
    assert must(alice("ws", "logs", ended, "--launcher", "endless", "--tail", "9")).err == ""


def test_a_stopped_workspace_starts_none(alice: Call, workspace: str) -> None:
    must(alice("ws", "stop", workspace))
    refused = alice("ws", "launcher", "start", workspace, "job")
    assert refused.code == 1
    assert f"hint: svc ws start {workspace}\n" in refused.err


def test_another_users_launchers_do_not_exist_and_are_its_owners_alone(
    alice: Call, bob: Call, svc: Call, workspace: str
) -> None:
    identity = must(alice("api", "GET", f"/api/workspaces/{workspace}")).json()["id"]
    assert "no workspace" in bob("ws", "launchers", identity).err
    refused = svc("root", "ws", "launcher", "stop", identity, "talker")
    assert refused.code == 1
    assert state(alice, workspace, "talker") == "started"
