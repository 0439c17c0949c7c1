"""Workspaces under trouble: commands that end at once, images and records that go, disks that are full.

Each time the row says what happened, nothing is tried again in a loop, and there is a way on.
"""

from __future__ import annotations

import json
import pwd
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e import terminal
from e2e.installation import IMAGE, Call, Service, processes_of, remove_user
from e2e.processes.test_full_disk import fill
from e2e.surroundings import in_database, make_accounts, must, new_template, podman
from waiting import until

Record = Callable[[str], dict[str, Any]]
Make = Callable[..., str]


@pytest.fixture
def make(service: Service, alice: Call, registry: str) -> Iterator[Make]:
    """make(name, command=..., resources=...) -> a workspace of Alice's, not started; gone afterwards."""
    created: list[str] = []

    def workspace(name: str, resources: dict[str, Any] | None = None, **spec: Any) -> str:
        source = {"type": "registry", "image_ref": f"{registry}/{IMAGE}"}
        new_template("tse-alice", service.env, f"of-{name}", source, **spec)
        created.append(name)
        body = {"name": name, "template": f"of-{name}"} | ({"resources": resources} if resources else {})
        must(alice("image", "pull", f"of-{name}", "--wait"))
        must(alice("api", "POST", "/api/workspaces", "--body", json.dumps(body)))
        return name

    yield workspace
    for name in created:
        alice("ws", "stop", name)
        alice("ws", "delete", name, "--yes")
        alice("template", "delete", f"of-{name}", "--yes")


def error(outcome: Any) -> str:
    """The code of a refusal."""
    assert outcome.code == 1, outcome
    return str(outcome.json()["error"]["code"])


def audited(service: Service, action: str, record: dict[str, Any]) -> int:
    """How many rows of the audit an action on a workspace has."""
    sql = "SELECT count(*) FROM audit WHERE action = ? AND target = ?"
    return int(str(in_database(service.env, sql, action, record["id"])[0][0]))


# --- commands that end -----------------------------------------------------------------------


def test_a_command_that_ends_at_once(service: Service, alice: Call, make: Make, record: Record) -> None:
    """`ws start`: "Starts."; of one whose command has exited it says so, with its last lines."""
    name = make("brief", command=["sh", "-c", "echo went wrong; exit 3"])
    refused = alice("ws", "start", name)
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.splitlines() == [
        "svc: brief has exited at once, with exit code 3",
        "  went wrong",
        "hint: svc ws logs brief",
    ]
    answered = alice("ws", "start", name, "--json")
    assert error(answered) == "exited_at_once"
    assert answered.json()["error"]["details"] == {"exit_code": 3, "output": ["went wrong"]}
    seen = record(name)
    assert seen["status"] == "stopped"
    assert (seen["status_reason"], seen["exit_code"]) == ("container_exited", 3)
    assert "went wrong" in must(alice("ws", "logs", name)).out
    starts = audited(service, "workspace.start", seen)
    time.sleep(4)  # longer than the worker's look
    assert record(name)["status_since"] == seen["status_since"], "it is not tried again by itself"
    assert audited(service, "workspace.start", seen) == starts


def test_a_batch_job_that_ends_at_once(service: Service, alice: Call, make: Make, record: Record) -> None:
    """A main command that ends with 0 has done its work: no error, and not "is running"."""
    name = make("job", command=["sh", "-c", "echo all done"])
    started = must(alice("ws", "start", name, "--json")).json()
    assert (started["status"], started["status_reason"], started["exit_code"]) == (
        "stopped", "container_exited", 0,
    )  # fmt: skip
    code, screen = terminal.typed("tse-alice", ["ws", "start", name], service.env, "(no question)", b"")
    assert (code, screen.strip()) == (0, "job has ended with exit code 0; its output: svc ws logs job")
    assert "all done" in must(alice("ws", "logs", name)).out


@pytest.mark.parametrize(
    ("command", "code", "reason"),
    [
        ("/no/such/program", "command_not_found", "No such file or directory"),
        ("/bin", "command_not_executable", "Permission denied"),
        ("/bin/sh/program", "not_a_directory", "Not a directory"),
    ],
)
def test_a_command_that_cannot_be_run(
    service: Service, alice: Call, bob: Call, make: Make, record: Record, command: str, code: str, reason: str
) -> None:
    """ "Starts.": a start whose command cannot run fails, and its owner gets the engine's words."""
    name = make("absent", command=[command])
    refused = alice("ws", "start", name, "--json")
    said, seen = refused.json()["error"], record(name)
    assert (refused.code, said["code"]) == (1, code)
    assert said["details"]["engine"] == f"ERROR (catatonit:2): failed to exec pid1: {reason}"
    assert said["hint"] == f"svc template get {seen['template']['name']}"
    again = alice("ws", "start", name)
    assert again.code == 1
    assert again.err.splitlines()[1:] == [f"engine: {said['details']['engine']}", f"hint: {said['hint']}"]
    assert (seen["status"], seen["status_reason"], seen["exit_code"]) == ("stopped", "container_exited", 1)
    kept = in_database(service.env, "SELECT detail_json FROM audit WHERE target = ?", seen["id"])
    assert "catatonit" not in json.dumps(kept)
    assert "catatonit" not in service.log.read_text(errors="replace")
    must(alice("ws", "delete", name, "--yes"))


def test_a_stop_of_one_that_ignores_it(alice: Call, make: Make, record: Record) -> None:
    """SIGKILL after the grace; what does not ignore it ends by SIGTERM, for --init hands that on."""
    deaf = make("deaf", command=["sh", "-c", "trap '' TERM; while :; do sleep 1; done"])
    must(alice("ws", "start", deaf))
    must(alice("api", "POST", f"/api/workspaces/{deaf}/stop", "--body", '{"grace_s": 1}'))
    assert (record(deaf)["status"], record(deaf)["exit_code"]) == ("stopped", 137)
    assert record(deaf)["status_reason"] == "user_requested"
    plain = make("plain", command=["sleep", "7531"])
    must(alice("ws", "start", plain))
    must(alice("ws", "stop", plain))
    assert record(plain)["exit_code"] == 143
    assert not [one for one in processes_of("tse-alice") if "sleep 7531" in one.args]


def test_too_much_memory_is_told(alice: Call, make: Make, record: Record) -> None:
    name = make(
        "hungry", command=["sh", "-c", "x=a; while :; do x=$x$x; done"], resources={"memory_bytes": 32 << 20}
    )
    started = alice("ws", "start", name)
    if "memory_bytes" in record(name)["limits_missing"]:  # nothing kills it here, and that is said
        assert "this host cannot apply" in started.err
        return
    until(lambda: record(name)["status"] == "stopped", 60)
    assert (record(name)["status_reason"], record(name)["exit_code"]) == ("oom_killed", 137)


# --- what goes behind svc's back ---------------------------------------------------------------


def test_an_image_that_goes_before_the_first_start(kim: Call, registry: str, service: Service) -> None:
    source = {"type": "registry", "image_ref": f"{registry}/{IMAGE}"}
    new_template("tse-kim", service.env, "goes", source)
    must(kim("image", "pull", "goes", "--wait"))
    must(podman("tse-kim", "rmi", "--force", f"{registry}/{IMAGE}"))
    must(kim("ws", "create", "--template", "goes", "--name", "goes"))
    try:
        for _ in range(2):
            refused = kim("ws", "start", "goes", "--json")
            assert error(refused) == "image_missing"
            assert "svc image pull" in refused.json()["error"]["hint"]
        assert kim("api", "GET", "/api/workspaces/goes").json()["status"] == "stopped"
        must(kim("image", "pull", "goes", "--wait"))
        must(kim("ws", "start", "goes"))
        # and with its container, which Podman takes along
        must(podman("tse-kim", "rmi", "--force", f"{registry}/{IMAGE}"))
        until(lambda: kim("api", "GET", "/api/workspaces/goes").json()["status"] == "stopped", 20)
        assert error(kim("ws", "start", "goes", "--json")) == "image_missing"
        must(kim("image", "pull", "goes", "--wait"))
        must(kim("ws", "start", "goes"))
    finally:
        kim("ws", "stop", "goes")
        must(kim("ws", "delete", "goes", "--yes"))
        kim("template", "delete", "goes", "--yes")


def storage(user: str) -> Path:
    """The user's own store."""
    return Path(pwd.getpwnam(user).pw_dir, ".local/share/containers/storage")


def test_a_damaged_container_is_a_clear_answer_and_can_be_deleted(
    alice: Call, make: Make, record: Record
) -> None:
    name = make("damaged")
    must(alice("ws", "start", name))
    must(alice("ws", "stop", name))
    ids = must(
        podman("tse-alice", "ps", "--all", "--no-trunc", "--format", "{{.ID}} {{.Names}}")
    ).out.splitlines()
    (container,) = [line.split()[0] for line in ids if line.endswith(record(name)["id"])]
    layer = must(podman("tse-alice", "inspect", "--format", "{{.GraphDriver.Data.UpperDir}}", container)).out
    damaged = [storage("tse-alice") / "overlay-containers" / container, Path(layer).parent]
    for path in damaged:
        assert path.is_dir()
        must(podman("tse-alice", "unshare", "rm", "-rf", str(path)))
    refused = alice("ws", "start", name, "--json")
    assert refused.code == 1
    said = refused.json()["error"]
    assert (said["code"], said["hint"]) == ("storage_damaged", f"svc ws delete {name}")
    assert "no such file or directory" in said["details"]["engine"]
    assert "Traceback" not in refused.err
    until(lambda: record(name)["status"] in ("failed", "stopped"), 20)
    assert record(name)["status_reason"] == "engine_error"
    must(alice("ws", "delete", name, "--yes"))
    assert alice("api", "GET", f"/api/workspaces/{name}").code == 1
    must(alice("ws", "list"))


# --- full disks --------------------------------------------------------------------------------


@pytest.fixture
def small_home(service: Service) -> Iterator[str]:
    """A user with an account whose home is on a small file system."""
    name = "tse-nora"
    account = pwd.getpwnam(name)
    options = f"size=64m,mode=0700,uid={account.pw_uid},gid={account.pw_gid}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", account.pw_dir], check=True)
    try:
        make_accounts(service.env, {name: "a small drawer of long spoons"})
        yield name
    finally:
        remove_user(name)
        subprocess.run(["umount", "-l", account.pw_dir], check=False)
        shutil.rmtree(account.pw_dir, ignore_errors=True)


def test_a_full_home_refuses_a_start_and_leaves_nothing_stuck(
    service: Service, svc: Call, small_home: str, registry: str
) -> None:
    def call(*arguments: str) -> Any:
        return svc(small_home, *arguments)

    source = {"type": "registry", "image_ref": f"{registry}/{IMAGE}"}
    new_template(small_home, service.env, "base", source)
    must(call("ws", "setup", "--template", "base", "--name", "lab"))
    filler = fill(Path(pwd.getpwnam(small_home).pw_dir))
    refused = call("ws", "start", "lab", "--json")
    assert error(refused) == "storage_full", refused
    row = call("api", "GET", "/api/workspaces/lab").json()
    assert row["status"] in ("stopped", "failed"), row
    filler.unlink()
    until(lambda: call("ws", "start", "lab").code == 0, 30, 0.5)
    assert must(call("ws", "exec", "lab", "--", "echo", "here")).out == "here\n"
    must(call("ws", "stop", "lab"))
    must(call("ws", "delete", "lab", "--yes"))
