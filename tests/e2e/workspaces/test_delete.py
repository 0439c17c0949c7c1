"""`ws delete`: what runs, what is being started or stopped, and what the question says."""

from __future__ import annotations

import pwd
import subprocess
from pathlib import Path

from e2e import terminal
from e2e.installation import SVC, Call, Service
from e2e.surroundings import in_database, must, podman, template_of
from waiting import until

# Says that it was told to end, and ends when it may.
STUBBORN = ["sh", "-c", "trap 'touch /work/told; until [ -e /work/go ]; do sleep .1; done; exit 0' TERM;"
            " touch /work/ready; while :; do sleep .1; done"]  # fmt: skip

REFUSALS = "SELECT 1 FROM audit WHERE action = 'workspace.delete' AND outcome = 'operation_in_progress'"


def work(name: str) -> Path:
    """A path in Alice's files."""
    return Path(pwd.getpwnam("tse-alice").pw_dir, "work", name)


def begun(service: Service, *argv: str) -> subprocess.Popen[bytes]:
    """`svc ARGV` as Alice, under way."""
    return subprocess.Popen([SVC, *argv], user="tse-alice", env=service.env, stdout=subprocess.DEVNULL)


def test_running_workspaces_are_deleted(alice: Call, template: str, service: Service) -> None:
    """ "Deletes.": stopped first, with one command or one request; the files of /work stay."""
    names = [f"doomed-{number}" for number in range(3)]
    ids = []
    for name in names:
        must(alice("ws", "setup", "--template", template, "--name", name))
        started = must(alice("ws", "start", name, "--json")).json()
        assert "delete" in started["allowed_actions"]
        ids.append(started["id"])
    must(alice("ws", "exec", names[0], "--", "touch", "/work/kept"))
    must(alice("ws", "stop", names[1]))
    said = alice("ws", "delete", *names[:2])
    assert (said.code, said.out) == (1, "")
    assert "Without a terminal this needs --yes" in said.err
    said = must(alice("ws", "delete", *names[:2], "--yes"))
    assert (said.out, said.err) == ("", "")
    must(alice("api", "DELETE", f"/api/workspaces/{ids[2]}"))
    left = must(podman("tse-alice", "ps", "--all", "--format", "{{.Names}}")).out
    assert not [name for name in ids if name in left]
    assert not [name for name in names if name in must(alice("ws", "list")).out]
    work("kept").unlink()
    rows = must(alice("api", "GET", "/api/audit?action=workspace.delete&limit=6")).json()["items"]
    ends = {row["target"]: row["outcome"] for row in rows if row["outcome"] != "begun"}
    assert [ends[name] for name in ids] == ["ok"] * 3
    assert {row["detail"]["running"] for row in rows if row["outcome"] == "begun"} == {True, False}


def test_the_question_says_what_runs(alice: Call, workspace: str, service: Service) -> None:
    """What is lost with a running workspace is known before the answer."""
    with begun(service, "ws", "exec", workspace, "--", "sleep", "4321") as run:
        until(lambda: "sleep 4321" in alice("ws", "monitor", workspace).out, 20)
        argv = ["ws", "delete", workspace]
        code, screen = terminal.typed("tse-alice", argv, service.env, "[y/N]", b"n\n")
        assert code == 1
        described, asked = screen.splitlines()[:2]
        assert described.startswith(f"{workspace} is running: ")
        assert "sleep 4321" in described
        assert asked.startswith(f"Delete workspace {workspace}? [y/N]")
        code, screen = terminal.typed("tse-alice", argv, service.env, "[y/N]", b"y\n")
        assert (code, screen.splitlines()[-1]) == (0, f"{workspace} is deleted.")
        assert run.wait(20) == 1  # it ended with the workspace


def test_a_deletion_waits_for_a_stop_under_way(alice: Call, registry: str, service: Service) -> None:
    """One request works on a workspace at a time: the API refuses the second, the command waits."""
    template_of("tse-alice", registry, service.env, "stubborn", command=STUBBORN)
    must(alice("ws", "create", "--template", "stubborn", "--name", "stubborn"))
    must(alice("ws", "start", "stubborn"))
    until(work("ready").exists, 20)
    with begun(service, "ws", "stop", "stubborn") as stop:
        until(work("told").exists, 20)
        refused = alice("api", "DELETE", "/api/workspaces/stubborn")
        assert (refused.code, refused.json()["error"]["code"]) == (1, "operation_in_progress")
        with begun(service, "ws", "delete", "stubborn", "--yes") as delete:
            until(lambda: len(in_database(service.env, REFUSALS)) > 1, 20)
            work("go").touch()
            assert (stop.wait(30), delete.wait(30)) == (0, 0)
    assert alice("ws", "get", "stubborn").code == 1
    for name in ("ready", "told", "go"):
        work(name).unlink()
    must(alice("template", "delete", "stubborn", "--yes"))


def test_a_deletion_beside_a_start(alice: Call, template: str, service: Service) -> None:
    """Whichever is first, the workspace is gone and nothing of it runs."""
    for number in range(4):
        name = f"beside-{number}"
        must(alice("ws", "create", "--template", template, "--name", name))
        commands = [("ws", "start", name), ("ws", "delete", name, "--yes")]
        with begun(service, *commands[number % 2]) as one, begun(service, *commands[1 - number % 2]) as two:
            codes = {one.wait(60), two.wait(60)}
        assert codes <= {0, 1}
        assert alice("ws", "get", name).code == 1
    labels = must(podman("tse-alice", "ps", "--all", "--format", "{{.Names}} {{.Labels}}")).out
    assert "beside-" not in labels
