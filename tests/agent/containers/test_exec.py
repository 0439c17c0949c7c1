"""Commands in a running workspace: as `podman exec` runs them, and nothing of them left behind."""

from __future__ import annotations

import base64
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent.priv_ns import Agent, Answer, User, proportional_set_kib, wait_for

pytestmark = pytest.mark.root
Make = Callable[..., str]

IDENTITY = """
cat /proc/self/status | grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp)'
pwd; umask; cat /proc/self/oom_score_adj; ulimit -a; env | grep -vE '^(SVC_EXEC_ID|SHLVL|_|PWD)=' | sort
"""


def run(agent: Agent, workspace_id: str, *command: str, timeout_s: int = 30) -> dict[str, Any]:
    """An exec's answer, its streams decoded."""
    done = agent.call("ctr.exec", id=workspace_id, command=list(command), timeout_s=timeout_s).data
    return done | {name: base64.b64decode(done[name]).decode() for name in ("stdout", "stderr")}


def normal(identity: str) -> list[str]:
    """Its lines, with the primary group among the groups: it gives nothing that it does not have."""
    lines = identity.splitlines()
    primary = lines[1].split()[1]
    groups = {*lines[2].split()[1:], primary}
    # Podman gives an exec its own limit of processes, svc the container's
    return [
        *lines[:2],
        f"Groups: {sorted(groups)}",
        *(line for line in lines[3:] if "max user proc" not in line),
    ]


def sleepers(user: User) -> list[str]:
    """The stubborn processes that are still there."""
    return [
        arguments for arguments in user.processes().values() if "sleep 42" in arguments or "trap" in arguments
    ]


def test_streams_and_exit_codes(agent: Agent, make: Make) -> None:
    ws = make()
    done = run(agent, ws, "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done["exit_code"], done["stdout"], done["stderr"]) == (3, "out\n", "err\n")
    assert not done["truncated"] and not done["timed_out"] and done["duration_ms"] < 30_000
    assert run(agent, ws, "sh", "-c", "kill -9 $$")["exit_code"] == 137
    assert run(agent, ws, "sh", "-c", "exit 255")["exit_code"] == 255
    assert run(agent, ws, "cat")["exit_code"] == 0, "nothing is on the standard input"
    assert run(agent, ws, "echo", "-it", "--user=root", "a b")["stdout"] == "-it --user=root a b\n"


@pytest.mark.parametrize(
    ("command", "code"), [("nope", 127), ("/nope/x", 127), ("/etc", 126), ("/etc/passwd", 126)]
)
def test_commands_that_cannot_be_run(agent: Agent, make: Make, user: User, command: str, code: int) -> None:
    ws = make()
    done = run(agent, ws, command)
    assert done["exit_code"] == code
    assert done["stderr"] == f"{command}: " + ("not found\n" if code == 127 else "cannot be executed\n")
    assert user.podman("exec", f"svc-{ws}", command, check=False).returncode == code, "as Podman says it"


ARM = r"\177ELF\002\001\001\000\000\000\000\000\000\000\000\000\002\000\267\000\001\000\000\000"
UNUSABLE = [  # what printf writes into the file, the code of a shell, the line
    ("echo hi\n", 126, "it has no #! line"),
    ("", 126, "it is empty"),
    (ARM + "%064d", 126, "a program for another processor architecture"),
    (
        "#!/bin/sh\r\n",
        127,
        "its first line names /bin/sh\\r, which is not there (the lines end as in Windows)",
    ),
    ("#! /usr/bin/python3 -u\n", 127, "its first line names /usr/bin/python3, which is not there"),
    ("#!/etc\n", 126, "its first line names /etc, which cannot be executed"),
    ("#!/etc/passwd\n", 126, "its first line names /etc/passwd, which cannot be executed"),
]


@pytest.mark.parametrize(("content", "code", "line"), UNUSABLE, ids=lambda value: str(value)[:12])
def test_a_program_that_the_kernel_refuses(
    agent: Agent, make: Make, content: str, code: int, line: str
) -> None:
    """As a shell: 126 or 127 and one line that says what is wrong with the file."""
    ws = make()
    written = run(
        agent,
        ws,
        "sh",
        "-c",
        'printf "$1" >/tmp/bad; chmod 755 /tmp/bad; ln -s /tmp/bad /home',
        "sh",
        content,
    )
    assert written["exit_code"] == 0
    for program in ("/tmp/bad", "../tmp/bad", "/home/bad"):
        done = run(agent, ws, program)
        assert (done["exit_code"], done["stderr"]) == (code, f"{program}: {line}\n")


def test_not_running_and_not_there(agent: Agent, make: Make) -> None:
    ws = make(start=False)
    command = {"command": ["true"], "timeout_s": 5}
    assert agent.call("ctr.exec", id=ws, **command).code == "not_running"
    agent.call("ctr.start", id=ws)
    agent.call("ctr.stop", id=ws, grace_s=5)
    assert agent.call("ctr.exec", id=ws, **command).code == "not_running"
    assert agent.call("ctr.exec", id="ws-99999999", **command).code == "not_found"


@pytest.mark.parametrize("case", ["default", "run_as", "image_user"])
def test_the_same_identity_as_podman_exec(
    agent: Agent, make: Make, user: User, workers_image: str, case: str
) -> None:
    changes: dict[str, Any] = {}
    if case == "run_as":
        changes = {"run_as": {"uid": 1234, "gid": 1234}}
    if case == "image_user":
        changes = {"image": workers_image}
        assert agent.call("image.pull", image=workers_image).data
    ws = make(**changes)
    ours = run(agent, ws, "sh", "-c", IDENTITY)
    theirs = user.podman("exec", f"svc-{ws}", "sh", "-c", IDENTITY)
    assert normal(ours["stdout"]) == normal(theirs.stdout)
    assert ours["exit_code"] == 0
    assert "Seccomp:\t2" in ours["stdout"], "the container's own filter is on"


def test_long_output_is_drained_and_cut(agent: Agent, make: Make) -> None:
    ws = make()
    done = run(agent, ws, "sh", "-c", "head -c 50000000 /dev/zero | tr '\\0' x; echo end >&2")
    assert done["truncated"] and done["exit_code"] == 0
    assert len(done["stdout"]) + len(done["stderr"]) == 256 * 1024
    whole = run(agent, ws, "sh", "-c", "head -c 262144 /dev/zero | tr '\\0' x")
    assert not whole["truncated"] and len(whole["stdout"]) == 256 * 1024


def test_what_it_leaves_in_the_background_is_not_waited_for(agent: Agent, make: Make) -> None:
    ws = make()
    began = time.monotonic()
    assert run(agent, ws, "sh", "-c", "sleep 4240 & echo started")["stdout"] == "started\n"
    assert time.monotonic() - began < 30
    assert "sleep 4240" in run(agent, ws, "ps")["stdout"]


def test_nothing_is_left_after_a_timeout(stubborn: tuple[Agent, str, str], user: User) -> None:
    agent, ws, script = stubborn
    before = set(user.processes())
    done = run(agent, ws, "sh", "-c", script, timeout_s=1)
    assert (done["timed_out"], done["exit_code"]) == (True, 124)
    assert not sleepers(user)
    assert set(user.processes()) <= before
    assert done["duration_ms"] < 15_000, "its processes would run for an hour"


def test_nothing_is_left_after_a_cancel_or_a_hang_up(stubborn: tuple[Agent, str, str], user: User) -> None:
    agent, ws, script = stubborn
    for leave in ("cancel", "hang_up"):
        call = agent.begin("ctr.exec", id=ws, command=["sh", "-c", script], timeout_s=60, deadline_s=70)
        wait_for(lambda: len(sleepers(user)) >= 5)
        getattr(call, leave)()
        if leave == "cancel":
            assert call.answer(30).code == "cancelled"
        wait_for(lambda: not sleepers(user))
    assert agent.call("ctr.inspect", id=ws).data["status"] == "running", "the workspace runs on"


def test_the_calls_own_deadline_ends_it_too(agent: Agent, make: Make, user: User) -> None:
    ws = make()
    call = agent.begin("ctr.exec", id=ws, command=["sleep", "4247"], timeout_s=60, deadline_s=1)
    assert call.answer(30).code == "timeout"
    assert not sleepers(user)


def test_a_hundred_leave_nothing_behind(agent: Agent, make: Make, user: User) -> None:
    ws = make()
    run(agent, ws, "true")
    before, files = set(user.processes()), os.listdir(f"/proc/{agent.pid()}/fd")
    for number in range(100):
        assert run(agent, ws, "echo", str(number))["stdout"] == f"{number}\n"
    for _ in range(10):
        run(agent, ws, "head", "-c", "1000000", "/dev/zero")
    assert set(user.processes()) == before
    # An answer is out a moment before what it needed is closed.
    wait_for(lambda: len(os.listdir(f"/proc/{agent.pid()}/fd")) <= len(files))
    assert proportional_set_kib(agent.pid()) <= 10 * 1024
    leaf = Path(f"/proc/{user.namespace.holder.pid}/root/sys/fs/cgroup/test-{user.name}/leaf")
    assert [path.name for path in leaf.iterdir() if path.name.startswith("svc-exec")] == []


def test_sixteen_at_once(agent: Agent, make: Make) -> None:
    ws = make()
    command = ["sh", "-c", "sleep 0.3; echo done"]
    calls = [agent.begin("ctr.exec", id=ws, command=command, timeout_s=20) for _ in range(20)]
    answers = [call.answer(20) for call in calls]
    assert all(base64.b64decode(answer.data["stdout"]) == b"done\n" for answer in answers)


def test_an_agent_without_podman_can_do_it(user: User, agent: Agent, make: Make, image: str) -> None:
    ws = make()
    other = user.start_agent()
    podmans = [pid for pid, arguments in user.processes().items() if "system service" in arguments]
    for pid in podmans:
        os.kill(pid, 19)  # none of them answers
    try:
        assert run(other, ws, "echo", "cold")["stdout"] == "cold\n"
        assert other.logs(ws).text == ""
    finally:
        for pid in podmans:
            os.kill(pid, 18)
    other.close()


def test_a_stale_record_is_not_believed(user: User, agent: Agent, make: Make, image: str) -> None:
    ws = make()
    user.podman("rm", "-f", "-t", "0", f"svc-{ws}")
    user.podman("run", "-d", "-i", f"--name=svc-{ws}", f"--label=svc.workspace={ws}", "-e", "NEW=1", image)
    assert "NEW=1" in run(agent, ws, "env")["stdout"]
    for rubbish in ("", "x" * 9000, "0" * 64 + "\n/nowhere\n", "\0\n\0"):
        path = f"{user.runtime}/svc/containers/{ws}"
        user.run(
            "sh",
            "-c",
            f"cat > {path} <<'X'\n{rubbish}\nX" if "\0" not in rubbish else f"printf '\\0' > {path}",
        )
        assert run(agent, ws, "echo", "x")["stdout"] == "x\n"


def test_where_crun_cannot_be_used_podman_exec_is(user: User, agent: Agent, make: Make, image: str) -> None:
    ws = make()
    path = f"{user.runtime}/libpod/tmp/pause.pid"
    try:
        user.run("mv", path, f"{path}.kept")
        done = run(agent, ws, "sh", "-c", "echo by podman; exit 4")
        assert (done["stdout"], done["exit_code"]) == ("by podman\n", 4)
        assert run(agent, ws, "nope")["exit_code"] == 127
        run(agent, ws, "sh", "-c", "echo true >/tmp/bad; chmod 755 /tmp/bad")
        user.run("rm", "-f", path)  # Podman has written it again
        refused = run(agent, ws, "/tmp/bad")
        line = "/tmp/bad: it has no #! line, or is a program for another processor architecture\n"
        assert (refused["exit_code"], refused["stderr"]) == (126, line)
    finally:
        user.run("sh", "-c", f"[ -e {path} ] || mv {path}.kept {path}")


# --- commands that are too long for a message ----------------------------------------------------


def given(agent: Agent, ws: str, words: bytes) -> Answer:
    """The answer to a command whose words come in a file."""
    return agent.call("ctr.exec", id=ws, command=None, timeout_s=20, give=words)


@pytest.mark.root
def test_a_command_as_long_as_the_kernel_takes_it(agent: Agent, make: Make) -> None:
    ws = make()
    script = ["sh", "-c", "echo $# $1 ${4000}", "sh"]
    words = [*script, 'é\n"', *(f"file-{number}" for number in range(4000))]
    answer = given(agent, ws, b"".join(word.encode() + b"\0" for word in words)).data
    assert base64.b64decode(answer["stdout"]).decode() == '4001 é " file-3998\n'
    widest = given(agent, ws, b"echo\0" + b"x" * (128 * 1024 - 1) + b"\0").data
    assert len(base64.b64decode(widest["stdout"])) == 128 * 1024
    over = given(agent, ws, b"true\0" + (b"y" * 1000 + b"\0") * 2090).data  # and the variables
    assert (over["exit_code"], base64.b64decode(over["stderr"])) == (126, b"true: Argument list too long\n")


@pytest.mark.root
def test_what_are_no_words_of_a_command(agent: Agent, make: Make) -> None:
    ws = make()
    for words in (b"", b"true", b"\0", b"\0x\0", b"caf\xe9\0", b"true\0" + b"x" * (128 * 1024) + b"\0",
                  b"true\0" + b"x\0" * (1 << 20)):  # fmt: skip
        assert given(agent, ws, words).code == "protocol", words[:9]
    assert agent.call("ctr.exec", id=ws, command=None, timeout_s=20).code == "protocol", "without a file"
