"""Exec with a standard input: binary-safe both ways, and nothing left behind."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest
from agent.containers.test_exec import run, sleepers
from agent.priv_ns import Agent, Pending, User, proportional_set_kib, wait_for

from svc_helper.wire import terminal_frames as frames

pytestmark = pytest.mark.root
Make = Callable[..., str]
PATIENCE_S = 60


class Run:
    """A command under way, seen from the app's side."""

    def __init__(self, agent: Agent, ws: str, *command: str, timeout_s: int = 60) -> None:
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.call: Pending = agent.begin(
                "ctr.pipe",
                id=ws,
                command=list(command),
                timeout_s=timeout_s,
                sends={"output": theirs.fileno()},
            )
        self.sock.setblocking(False)
        self.outputs = {frames.OUTPUT: b"", frames.ERRORS: b""}

    def pump(self, data: bytes = b"", *, finish: bool = True) -> dict[str, Any]:
        """Send this input and receive everything; the data of the answer."""
        end = time.monotonic() + PATIENCE_S
        pending = [
            frames.INPUT + data[at : at + frames.DATA_MAX] for at in range(0, len(data), frames.DATA_MAX)
        ]
        pending += [frames.INPUT_END] if finish else []
        poller = select.poll()
        while True:
            assert time.monotonic() < end, "it never ended"
            poller.register(self.sock, select.POLLIN | (select.POLLOUT if pending else 0))
            poller.poll(100)
            try:
                while pending:
                    self.sock.send(pending[0])
                    del pending[0]
            except BlockingIOError:
                pass
            except (BrokenPipeError, ConnectionResetError):
                pending = []
            if not self.receive():
                break
        return self.call.answer().data

    def receive(self) -> bool:
        """Receive what there is; False at the end."""
        while True:
            try:
                frame = self.sock.recv(frames.FRAME_MAX + 1)
            except BlockingIOError:
                return True
            except ConnectionResetError:
                continue  # what was sent before comes after it
            if not frame:
                return False
            self.outputs[frame[:1]] += frame[1:]

    def close(self) -> None:
        """Hang up."""
        self.sock.close()
        self.call.hang_up()


def test_binary_both_ways_and_both_outputs_apart(agent: Agent, make: Make) -> None:
    ws = make()
    blob = os.urandom(3_000_000)
    run = Run(agent, ws, "cat")
    assert run.pump(blob)["exit_code"] == 0
    assert run.outputs == {frames.OUTPUT: blob, frames.ERRORS: b""}
    run.sock.close()
    run = Run(agent, ws, "sh", "-c", "cat >&2; echo out; exit 9")
    answer = run.pump(blob[:100_000])
    assert (answer["exit_code"], answer["timed_out"]) == (9, False)
    assert run.outputs == {frames.OUTPUT: b"out\n", frames.ERRORS: blob[:100_000]}
    run.sock.close()


def test_input_that_the_command_does_not_want(agent: Agent, make: Make) -> None:
    ws = make()
    for command, code in (
        (("true",), 0),
        (("sh", "-c", "exec <&-; sleep 0.3; exit 4"), 4),
        (("head", "-c1"), 0),
    ):
        run = Run(agent, ws, *command)
        assert run.pump(b"x" * 5_000_000)["exit_code"] == code
        run.sock.close()
    run = Run(agent, ws, "sh", "-c", "echo waits for nothing")
    assert run.pump(finish=False)["exit_code"] == 0
    run.sock.close()


@pytest.mark.parametrize(("command", "code"), [("nope", 127), ("/etc", 126)])
def test_commands_that_cannot_be_run(agent: Agent, make: Make, command: str, code: int) -> None:
    run = Run(agent, make(), command)
    assert run.pump(b"input")["exit_code"] == code
    assert run.outputs[frames.ERRORS].startswith(command.encode())
    run.sock.close()


def test_an_endless_command_ends_with_its_caller(agent: Agent, make: Make, user: User) -> None:
    ws = make()
    run = Run(agent, ws, "sh", "-c", "(setsid sleep 4246 &); yes")
    wait_for(lambda: len(run.outputs[frames.OUTPUT]) > 1_000_000 or not run.receive())
    before = time.monotonic()
    while time.monotonic() < before + 1:  # nobody reads: it waits, and costs nothing
        assert proportional_set_kib(agent.pid()) <= 12 * 1024
        time.sleep(0.1)
    assert sleepers(user)
    run.close()
    wait_for(lambda: not sleepers(user))
    wait_for(lambda: not any(arguments == "yes " for arguments in user.processes().values()))


def test_a_timeout_and_a_wrong_frame(agent: Agent, make: Make, user: User) -> None:
    ws = make()
    run = Run(agent, ws, "sleep", "4247", timeout_s=1)
    answer = run.pump(b"x", finish=False)
    assert (answer["exit_code"], answer["timed_out"]) == (124, True)
    run.sock.close()
    for rubbish in (b"?", b"o" + b"x", b"i" + b"x" * 50_000):
        run = Run(agent, ws, "sleep", "4248")
        run.sock.send(rubbish)
        assert run.call.answer().code == "protocol"
        run.sock.close()
    assert not sleepers(user)
    assert agent.call("ctr.pipe", id=ws, command=["cat"], timeout_s=5).code == "protocol"


def test_a_program_that_the_kernel_refuses_is_told_in_one_line(agent: Agent, make: Make) -> None:
    """What crun prints of it is not sent; the same words of a program are."""
    ws = make()
    assert run(agent, ws, "sh", "-c", "echo true >/tmp/bad; chmod 755 /tmp/bad")["exit_code"] == 0
    for _ in range(3):  # crun's line may come before or after it has told the command's pid
        refused = Run(agent, ws, "/tmp/bad")
        assert refused.pump()["exit_code"] == 126
        assert refused.outputs[frames.ERRORS] == b"/tmp/bad: it has no #! line\n"
    script = "echo exec: Permission denied >&2; sleep 0.2; echo more >&2; exit 3"
    own = Run(agent, ws, "sh", "-c", script)
    assert own.pump()["exit_code"] == 3
    assert own.outputs[frames.ERRORS] == b"exec: Permission denied\nmore\n"
    alone = Run(agent, ws, "sh", "-c", "echo exec: Permission denied >&2; exit 3")
    assert alone.pump()["exit_code"] == 3
    assert alone.outputs[frames.ERRORS] == b"exec: Permission denied\n"
