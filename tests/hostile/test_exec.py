"""Commands in a workspace that do not want to end, be read or be understood: nothing of them stays."""

from __future__ import annotations

import base64
import json
import os
import pwd
import signal
import subprocess
import threading
from collections.abc import Callable

import pytest
from e2e.installation import SVC, Call, Outcome, Service, processes_of
from hostile.attackers.raw import ask, connect, request
from hostile.test_hostile_agent import agent_of, figures, named
from waiting import until

Unmoved = Callable[[], float]
USER = "tsz-mallory"


@pytest.fixture
def lab(mallory: Call, mallorys: str) -> str:
    """Mallory's workspace, running."""
    until(lambda: mallory("ws", "start", mallorys).code == 0, 20, 0.3)
    return mallorys


def left(mark: str) -> list[str]:
    """Mallory's processes that carry the mark in their command line, the asking ones left out."""
    return [one.args for one in processes_of(USER) if mark in one.args and "svc ws exec" not in one.args]


ESCAPES = {
    "a double fork": "(setsid sh -c '(exec sleep {0} &)' &); sleep {0}",
    "an empty environment": "(setsid env -i sleep {0} &); env -i sleep {0}",
    "deaf to TERM": "trap '' TERM INT;"
    " (setsid env -i sh -c \"trap '' TERM; sleep {0}; :\" &); sleep {0}; sleep {0}",
    "a small fork storm": "g() {{ sleep {0}; }};"
    " f() {{ for i in 1 2 3; do (sleep {0} & g &); done; }}; f; f; f; sleep {0}",
    "respawning": "(while :; do setsid sleep {0} & sleep 0.01; done) & sleep {0}",
}


@pytest.mark.parametrize("how", ESCAPES)
def test_nothing_stays_after_a_timeout(mallory: Call, lab: str, how: str) -> None:
    mark = str(10_000 + abs(hash(how)) % 80_000)
    said = mallory("ws", "exec", lab, "--timeout", "1", "--", "sh", "-c", ESCAPES[how].format(mark))
    assert said.code == 1
    until(lambda: not left(f"sleep {mark}"), 30)
    assert mallory("ws", "exec", lab, "--", "true").code == 0


@pytest.mark.parametrize("how", ["an empty environment", "deaf to TERM"])
def test_nothing_stays_after_its_client_is_killed(service: Service, lab: str, how: str) -> None:
    mark = str(90_000 + abs(hash(how)) % 9_000)
    account = pwd.getpwnam(USER)
    client = subprocess.Popen(
        [SVC, "ws", "exec", lab, "--", "sh", "-c", ESCAPES[how].format(mark)],
        user=account.pw_uid, group=account.pw_gid, cwd="/", env=service.env,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until(lambda: left(f"sleep {mark}"), 30)
    client.kill()
    client.wait()
    until(lambda: not left(f"sleep {mark}"), 30)


def test_an_output_flood_costs_no_memory(service: Service, mallory: Call, lab: str, unmoved: Unmoved) -> None:
    assert mallory("ws", "exec", lab, "--", "true").code == 0
    pids = agent_of(USER), named(service, "unix"), service.member("svc_helper").pid
    before = [figures(pid)[2] for pid in pids]
    peak = list(before)
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            peak[:] = [max(figures(pid)[2], high) for pid, high in zip(pids, peak, strict=True)]

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        script = "head -c 900000000 /dev/zero; head -c 100000000 /dev/zero >&2"
        said = mallory("ws", "exec", lab, "--json", "--timeout", "60", "--", "sh", "-c", script, timeout=80)
    finally:
        done.set()
        watcher.join()
    answer = json.loads(said.out)
    assert answer["truncated"] is True
    assert answer["exit_code"] == 0
    assert len(answer["stdout"]) + len(answer["stderr"]) < 400_000
    assert all(high - low < 20_000 for low, high in zip(before, peak, strict=True)), (before, peak)


@pytest.mark.parametrize(
    "command", [["-it"], ["--user=root", "id"], ["--", "id"], ["--privileged"], ["-e", "A=B"]]
)
def test_a_command_is_never_an_option(mallory: Call, lab: str, command: list[str]) -> None:
    body = json.dumps({"command": command})
    answer = mallory("api", "POST", f"/api/workspaces/{lab}/exec", "--body", body).json()
    assert answer["exit_code"] in (126, 127), answer


def test_what_no_command_can_be(service: Service, lab: str) -> None:
    def status(command: object, **more: object) -> int:
        body = json.dumps({"command": command} | more).encode()
        path = f"/api/workspaces/{lab}/exec"
        return ask(connect(service.env["SVC_SOCKET"], USER), request("POST", path, body)).status

    for command in ([], "id", [1], ["a\0b"], ["x", "y" * 131_072], ["x"] * 220_000, [None], [["id"]]):
        assert status(command) == 422, command
    assert status([""]) in (200, 422)
    for timeout in (0, -1, 601, 1.5, "5", True, 10**30):
        assert status(["true"], timeout_s=timeout) == 422, timeout
    for key in ("user", "env", "privileged", "workdir", "tty"):
        assert status(["true"], **{key: True}) == 422


def test_arguments_come_as_they_were(mallory: Call, lab: str) -> None:
    arguments = ["a\nb", "$(id)", "`id`", "; id", "", " ", "é\u202e", "-n", "%s", "*", "\x1b[2J", "'\""]
    said = mallory("ws", "exec", lab, "--json", "--", "printf", "<%s>", *arguments)
    assert base64.b64decode(said.json()["stdout"]).decode() == "".join(
        f"<{argument}>" for argument in arguments
    )


def test_standard_input_is_empty_and_nothing_of_ours_is_inherited(mallory: Call, lab: str) -> None:
    said = mallory("ws", "exec", lab, "--", "sh", "-c", "cat; ls -l /proc/self/fd | grep -v ' [0-3] ->'")
    assert [line for line in said.out.splitlines() if "->" in line] == []
    inside = mallory(
        "ws", "exec", lab, "--", "sh", "-c", "cat /proc/self/status; ls /run/svc* /run/user 2>&1; env"
    )
    facts = dict(line.split(":\t", 1) for line in inside.out.splitlines() if ":\t" in line)
    assert facts["Seccomp"] == "2"
    assert facts["NoNewPrivs"] in ("0", "1")
    assert "svc.sock" not in inside.out
    assert "SVC_SOCKET" not in inside.out


def test_the_working_directory_may_be_gone(mallory: Call, lab: str) -> None:
    assert mallory(
        "ws", "exec", lab, "--", "sh", "-c", "mkdir /gone && cd /gone && rmdir /gone && ls"
    ).code in (0, 1)
    assert mallory("ws", "exec", lab, "--", "true").code == 0


def test_a_container_that_ends_midway_ends_its_commands(mallory: Call, lab: str) -> None:
    outcomes: list[Outcome] = []
    thread = threading.Thread(
        target=lambda: outcomes.append(mallory("ws", "exec", lab, "--", "sleep", "7654"))
    )
    thread.start()
    until(lambda: left("sleep 7654"), 30)
    assert mallory("ws", "stop", lab).code == 0
    thread.join(20)
    assert outcomes
    assert outcomes[0].code == 1
    until(lambda: not left("sleep 7654"), 30)


def test_an_agent_that_dies_leaves_no_command(mallory: Call, lab: str) -> None:
    """Its user may kill it at any time; the command it ran ends with the container at the latest."""
    thread = threading.Thread(target=lambda: mallory("ws", "exec", lab, "--", "sleep", "6543"))
    thread.start()
    until(lambda: left("sleep 6543"), 30)
    os.kill(agent_of(USER), signal.SIGKILL)
    thread.join(20)
    assert mallory("ws", "stop", lab).code == 0
    until(lambda: not left("sleep 6543"), 30)


def test_fifty_starts_and_stops_at_once(service: Service, mallory: Call, lab: str, unmoved: Unmoved) -> None:
    codes: list[str] = []

    def post(verb: str) -> None:
        data = request("POST", f"/api/workspaces/{lab}/{verb}", b"{}")
        answer = ask(connect(service.env["SVC_SOCKET"], USER), data)
        codes.append(f"{answer.status} {answer.code}")

    threads = [threading.Thread(target=post, args=(("start", "stop")[n % 2],)) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(codes) == 50
    assert not [code for code in codes if code.startswith("500")], codes
    until(lambda: mallory("ws", "start", lab).code == 0, 20, 0.5)
    inits = [one for one in processes_of(USER) if one.args == "sleep infinity"]
    assert len(inits) == 1
