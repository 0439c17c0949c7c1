"""Terminals: as `podman exec -it` has them, held by the shim, outliving agents and viewers."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from agent.containers.test_exec import IDENTITY, normal, run
from agent.containers.test_shims import only_shim, shims, socket_path
from agent.priv_ns import IN_EACH_STORE, Agent, User, proportional_set_kib, wait_for
from agent.viewing import attach, attempt, listed, open_terminal

from svc_helper.wire.limits import TERMINALS_MAX

pytestmark = pytest.mark.root
Make = Callable[..., str]
SIZE = {"cols": 80, "rows": 24}
KEPT = 256 * 1024
IDLE_LINE = "TERMINAL_IDLE_S = 24 * 3600  # without a viewer, input and output: then it is closed"


@IN_EACH_STORE
def test_prompt_typing_title_and_exit_code(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    assert listed(agent, ws) == {} and shims(user, ws) == [], "asking starts nothing"
    terminal, viewer = open_terminal(agent, ws, cols=91, rows=33)
    with viewer:
        viewer.expect("# ")
        viewer.type("echo $((6*7)) $TERM $COLOUR; stty size; tty\n")
        shown = viewer.expect("/dev/pts/")
        assert "42 xterm-256color blue" in shown and "33 91" in shown
        assert viewer.states[0] == {"title": "", "cols": 91, "rows": 33}
        viewer.type("printf '\\033]2;h\\303\\251llo\\007'\n")
        viewer.until(lambda one: one.states[-1]["title"] == "héllo")
        row = listed(agent, ws)[terminal]
        assert (row["title"], row["viewers"], row["state"], row["command"]) == ("héllo", 1, "running", None)
        viewer.type("exit 7\n")
        viewer.until(lambda one: one.closed)
        assert viewer.ended == {"reason": "exited", "exit_code": 7}
    row = listed(agent, ws)[terminal]
    assert (row["state"], row["exit_code"], row["viewers"]) == ("exited", 7, 0)
    with attach(agent, ws, terminal) as late:
        late.until(lambda one: one.closed)
        assert b"33 91" in late.output and late.ended == {"reason": "exited", "exit_code": 7}


@IN_EACH_STORE
def test_a_command_and_one_that_cannot_be_run(agent: Agent, make: Make) -> None:
    ws = make()
    _, viewer = open_terminal(agent, ws, "sh", "-c", "echo $0 $COLUMNS; test -t 0 && exit 3")
    with viewer:
        viewer.until(lambda one: one.closed)
        assert viewer.ended == {"reason": "exited", "exit_code": 3}
    run(agent, ws, "sh", "-c", "echo true >/tmp/bad; chmod 755 /tmp/bad")
    for program, code, words in (
        ("nope", 127, b"nope: not found"),
        ("/etc", 126, b"/etc: cannot be executed"),
        ("/tmp/bad", 126, b"/tmp/bad: it has no #! line"),
    ):
        answer = attempt(agent, "terminal.open", id=ws, **SIZE, command=[program], attach=True)
        if answer.message["ok"] is False:
            assert answer.code == {127: "command_not_found", 126: "command_not_executable"}[code]
            continue
        with attach(agent, ws, answer.data["terminal"]["id"]) as viewer:
            viewer.until(lambda one: one.closed)
            assert viewer.ended == {"reason": "exited", "exit_code": code} and words in viewer.output


def test_the_same_as_podman_exec(agent: Agent, make: Make, user: User, workers_image: str) -> None:
    assert agent.call("image.pull", image=workers_image).data
    for changes in ({}, {"run_as": {"uid": 1234, "gid": 1234}}, {"image": workers_image}):
        ws = make(**changes)
        script = f"exec 2>&1; {IDENTITY}stat -c '%u %a %t' $(tty); echo the end"
        ours = by_terminal(agent, ws, script)
        theirs = by_podman(user, ws, script)
        assert normal(ours) == normal(theirs), changes
        assert "Seccomp:\t2" in ours, "the container's own filter is on"


def by_terminal(agent: Agent, ws: str, script: str) -> str:
    """What a script prints in a terminal; its TERM and its locale are ours, not Podman's."""
    _, viewer = open_terminal(agent, ws, "sh", "-c", script)
    with viewer:
        viewer.until(lambda one: one.closed)
        assert viewer.ended == {"reason": "exited", "exit_code": 0}, viewer.output
        output = viewer.output.decode().replace("\r\n", "\n")
        assert output.count("LC_CTYPE=C.UTF-8\n") == 1
        return output.replace("TERM=xterm-256color", "TERM=xterm").replace("LC_CTYPE=C.UTF-8\n", "")


def by_podman(user: User, ws: str, script: str) -> str:
    """What it prints under `podman exec -it`."""
    environment = ["env", f"CONTAINERS_CONF={user.runtime}/svc/containers.conf"]
    argv = user.namespace.enter(
        user, [*environment, "podman", "exec", "-it", f"svc-{ws}", "sh", "-c", script]
    )
    master, slave = pty.openpty()
    process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    shown, end = b"", time.monotonic() + 60
    while b"the end" not in shown and time.monotonic() < end:
        if select.select([master], [], [], 0.5)[0]:
            shown += os.read(master, 65536)
    process.wait(30)
    os.close(master)
    return shown.decode().replace("\r\n", "\n")


def test_size_follows_the_viewer_that_typed_last(agent: Agent, make: Make) -> None:
    ws = make()
    script = "trap 'stty size' WINCH; echo ready; while true; do sleep 0.05; done"
    terminal, first = open_terminal(agent, ws, "sh", "-c", script, cols=80, rows=24)
    with first, attach(agent, ws, terminal, 100, 30) as second:
        first.expect("ready")
        second.type("x")
        first.expect("30 100")
        first.type("x")
        first.expect("24 80")
        second.resize(120, 40)
        first.resize(81, 25)
        assert "40 120" not in first.expect("25 81"), "only the one that typed last"
        first.until(lambda one: one.states[-1] == {"title": "", "cols": 81, "rows": 25})
        first.close()
        second.expect("40 120")


def test_it_outlives_the_agent_and_is_found_again(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    mine = user.start_agent()
    terminal, viewer = open_terminal(mine, ws, "top", "-d", "1")
    with viewer:
        viewer.expect("PID")
        mine.kill()
        viewer.expect("PID")
    other = user.start_agent()
    [row] = listed(other, ws).values()
    assert (row["id"], row["state"]) == (terminal, "running")
    with attach(other, ws, terminal) as again:
        again.expect("PID")
        again.expect("PID")
        again.type("q")
        again.until(lambda one: one.closed)
        assert again.ended == {"reason": "exited", "exit_code": 0}
    other.close()


def test_two_viewers_see_and_type_in_one(agent: Agent, make: Make) -> None:
    ws = make()
    terminal, first = open_terminal(agent, ws, "cat")
    with first, attach(agent, ws, terminal) as second:
        first.type("one\n")
        second.expect("one\r\none\r\n")
        second.type("two\n")
        first.expect("two\r\ntwo\r\n")
        assert listed(agent, ws)[terminal]["viewers"] == 2
        second.close()
        first.type("three\n")
        first.expect("three\r\nthree\r\n")
        first.type("\x04")
        first.until(lambda one: one.ended is not None)


def test_eight_of_them_and_eight_viewers(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    opened = [open_terminal(agent, ws) for _ in range(TERMINALS_MAX)]
    try:
        for _, viewer in opened:
            viewer.expect("# ")
        answer = attempt(agent, "terminal.open", id=ws, **SIZE, command=None, attach=True)
        assert (answer.code, "8 terminals" in answer.message["message"]) == ("too_many", True)
        assert len(listed(agent, ws)) == TERMINALS_MAX
        assert proportional_set_kib(only_shim(user, ws)) <= 10 * 1024
        terminal = opened[0][0]
        more = [attach(agent, ws, terminal) for _ in range(7)]
        assert attempt(agent, "terminal.attach", id=ws, terminal=terminal, **SIZE).code == "too_many"
        for viewer in more:
            viewer.close()
        opened[1][1].type("exit 5\n")
        opened[1][1].until(lambda one: one.ended is not None)
        last, viewer = open_terminal(agent, ws)
        opened.append((last, viewer))
        viewer.expect("# ")
        assert opened[1][0] not in listed(agent, ws), "the one that had ended made room"
    finally:
        for _, viewer in opened:
            viewer.close()


def test_closing_hangs_up_and_kills_what_stays(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    script = "trap '' HUP TERM; sleep 4271 & echo ready; while true; do sleep 1; done"
    terminal, viewer = open_terminal(agent, ws, "sh", "-c", script)
    with viewer:
        viewer.expect("ready")
        wait_for(lambda: any("sleep 4271" in arguments for arguments in user.processes().values()))
        assert agent.call("terminal.close", id=ws, terminal=terminal).data == {}
        viewer.until(lambda one: one.closed)
        assert viewer.ended == {"reason": "closed", "exit_code": 137}
    assert listed(agent, ws) == {}
    assert agent.call("terminal.close", id=ws, terminal=terminal).code == "not_found"
    assert attempt(agent, "terminal.attach", id=ws, terminal=terminal, **SIZE).code == "not_found"
    sleeping = [arguments for arguments in user.processes().values() if "sleep 42" in arguments]
    assert any("sleep 4271" in arguments for arguments in sleeping), "it stays, as after a closed window"


@IN_EACH_STORE
def test_it_ends_with_the_workspace(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    terminal, viewer = open_terminal(agent, ws, "sh", "-c", "trap '' HUP; echo ready; sleep 4272")
    with viewer:
        viewer.expect("ready")
        agent.call("ctr.stop", id=ws, grace_s=1)
        viewer.until(lambda one: one.closed)
        assert viewer.ended is not None and viewer.ended["reason"] == "stopped"
    assert listed(agent, ws) == {}
    assert attempt(agent, "terminal.attach", id=ws, terminal=terminal, **SIZE).code == "not_running"
    assert attempt(agent, "terminal.open", id=ws, **SIZE, command=None, attach=True).code == "not_running"
    wait_for(lambda: not shims(user, ws))
    agent.call("ctr.start", id=ws)
    assert attempt(agent, "terminal.attach", id=ws, terminal=terminal, **SIZE).code == "not_found"
    directory = socket_path(user, ws).parent
    assert [path.name for path in directory.iterdir() if path.name.startswith(f"{ws}.")] == []


def test_without_a_viewer_it_runs_on_and_shows_what_is_kept(agent: Agent, make: Make) -> None:
    ws = make()
    script = "i=0; while [ $i -lt 30000 ]; do echo line $i é; i=$((i+1)); done; echo all; sleep 4273"
    row = agent.call("terminal.open", id=ws, **SIZE, command=["sh", "-c", script], attach=False).data[
        "terminal"
    ]
    terminal = row["id"]
    assert row["viewers"] == 0
    with attach(agent, ws, terminal) as viewer:
        viewer.until(lambda one: b"all\r\n" in one.output)
    with attach(agent, ws, terminal) as viewer:
        viewer.until(lambda one: b"all\r\n" in one.output)
        assert KEPT // 2 < len(viewer.output) <= KEPT
        text = viewer.output.decode()  # begins with a whole character
        numbers = [int(number) for number in re.findall(r"line (\d+) é\r\n", text)]
        assert numbers == list(range(numbers[0], 30000))


def test_a_viewer_that_does_not_read_stops_nobody(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    script = "echo ready; read x; i=0; while [ $i -lt 60000 ]; do echo number $i; i=$((i+1)); done"
    script += "; echo all; read y"
    terminal, slow = open_terminal(agent, ws, "sh", "-c", script)
    with slow, attach(agent, ws, terminal) as quick:
        quick.expect("ready")
        quick.type("\n")
        quick.until(lambda one: b"all\r\n" in one.output)
        assert not quick.skipped, "the one that reads gets everything"
        assert quick.output.count(b"number") == 60000
        slow.until(lambda one: b"all\r\n" in one.output)
        assert slow.skipped and slow.output.endswith(b"all\r\n")
        quick.type("\n")
        slow.until(lambda one: one.closed)


def test_endless_output_without_a_reader_is_bounded(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    opened = [open_terminal(agent, ws, "yes", "x" * 200) for _ in range(3)]
    shim = only_shim(user, ws)
    end = time.monotonic() + 5
    while time.monotonic() < end:
        assert proportional_set_kib(shim) <= 12 * 1024
        time.sleep(0.2)
    for terminal, viewer in opened:
        assert agent.call("terminal.close", id=ws, terminal=terminal).data == {}
        viewer.close()
    assert listed(agent, ws) == {}


@pytest.fixture
def impatient(user: User, agent: Agent) -> Iterator[Agent]:
    """An agent whose shims close a terminal after a second without use."""
    created = user.start_agent(sooner=("wire.limits", IDLE_LINE, "TERMINAL_IDLE_S = 1"))
    yield created
    created.close()


def test_an_idle_one_is_closed_and_an_attached_one_is_not(user: User, impatient: Agent, make: Make) -> None:
    ws = make()
    row = impatient.call("terminal.open", id=ws, **SIZE, command=None, attach=False).data["terminal"]
    kept, viewer = open_terminal(impatient, ws)
    with viewer:
        wait_for(lambda: listed(impatient, ws)[row["id"]]["state"] == "exited")
        with attach(impatient, ws, row["id"]) as late:
            late.until(lambda one: one.closed)
            assert late.ended is not None and late.ended["reason"] == "idle"
        assert listed(impatient, ws)[kept]["state"] == "running"
        viewer.type("exit\n")
        viewer.until(lambda one: one.closed)


@IN_EACH_STORE
def test_a_killed_shim_ends_its_viewers_and_another_is_started(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    terminal, viewer = open_terminal(agent, ws)
    with viewer:
        viewer.expect("# ")
        os.kill(only_shim(user, ws), signal.SIGKILL)
        viewer.until(lambda one: one.closed)
        assert viewer.ended is None
    wait_for(lambda: not shims(user, ws))
    _, viewer = open_terminal(agent, ws)
    with viewer:
        viewer.expect("# ")
    assert terminal not in listed(agent, ws)


def test_a_shim_of_an_older_release_is_named(user: User, agent: Agent, make: Make) -> None:
    line = "        table: dict[str, Do] = self._terminals.table | {"
    old = user.start_agent(sooner=("shim.run", line, "        table: dict[str, Do] = {"))
    ws = make()
    assert old.call("launcher.start", id=ws, name="web", command=["sleep", "4274"], env={}, watch_ms=0).data
    for asked in (agent, old):
        answer = attempt(asked, "terminal.open", id=ws, **SIZE, command=None, attach=True)
        assert (answer.code, "older release" in answer.message["message"]) == ("outdated", True)
        assert listed(asked, ws) == {}
    old.close()


def test_what_is_no_viewer(agent: Agent, make: Make, tmp_path: Path) -> None:
    ws = make()
    terminal, viewer = open_terminal(agent, ws)
    with viewer:
        with (tmp_path / "file").open("wb") as file:
            call = agent.begin(
                "terminal.attach", id=ws, terminal=terminal, **SIZE, sends={"output": file.fileno()}
            )
            assert call.answer().code == "protocol"
        assert agent.call("terminal.attach", id=ws, terminal=terminal, **SIZE).code == "protocol"
        call = agent.begin("terminal.attach", id=ws, terminal=terminal, stream=True, **SIZE)
        with call.stream:
            assert call.answer().code == "protocol"
        viewer.expect("# ")
        for rubbish in (b"?", b"r{", b'r{"cols":0,"rows":1}', b"r" + b"[" * 3000, b"i" + b"x" * 40000):
            with attach(agent, ws, terminal) as other:
                other.sock.send(rubbish)
                other.until(lambda one: one.closed)
        viewer.type("echo still\n")
        viewer.expect("still\r\n")
