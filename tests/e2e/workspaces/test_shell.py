"""`svc ws shell` on a real terminal: what survives, what it leaves behind, and what it refuses."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import pytest
from e2e.installation import Call, Service, processes_of
from e2e.surroundings import must
from e2e.terminal import Window, window
from waiting import until

PROMPT = "# "
DETACH = b"\x10\x11"  # Ctrl-P Ctrl-Q
Open = Callable[..., AbstractContextManager[Window]]


@pytest.fixture
def open_shell(service: Service, workspace: str) -> Open:
    """open_shell(*options) -> a window with `svc ws shell` of Alice's workspace."""
    return partial(window, "tse-alice", "ws", "shell", workspace, env=service.env)


@pytest.fixture
def listed(alice: Call, workspace: str) -> Callable[[], list[dict[str, Any]]]:
    """listed() -> the workspace's terminals."""
    return lambda: list(must(alice("ws", "shell", workspace, "--list", "--json")).json()["items"])


def counter(opened: Window) -> None:
    """Run something that prints without end, by which a shell is known again."""
    opened.expect(PROMPT)
    opened.type("n=0; while :; do n=$((n+1)); echo at-$n-now; sleep 0.1; done\n")
    opened.expect("at-3-now")


def reached(opened: Window) -> int:
    """The newest number of the counter."""
    opened.expect("-now")
    return max(int(number) for number in re.findall(rb"at-(\d+)-now", opened.screen))


def terminal_of(opened: Window) -> str:
    """The id that a detached viewer names."""
    found = re.search(rb"--attach (t-[0-9a-z]+)", opened.screen)
    assert found, opened.screen
    return found[1].decode()


def test_a_shell(open_shell: Open, listed: Callable[[], list[dict[str, Any]]]) -> None:
    with open_shell(cols=97, rows=31) as opened:
        opened.expect(PROMPT)
        assert opened.is_raw()
        opened.type("stty size; echo $((6*7))-$TERM\n")
        opened.expect("31 97")
        opened.expect("42-")
        assert [row["viewers"] for row in listed()] == [1]
        opened.resize(120, 40)
        until(lambda: (listed()[0]["cols"], listed()[0]["rows"]) == (120, 40), 30)
        opened.type("stty size\n")
        opened.expect("40 120")
        opened.type("exit\n")
        assert opened.end() == 0
        assert not opened.is_raw()


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [((), 1, "the shell exited with code 7"), (("--exit-status",), 7, "")],
)
def test_the_exit_code(open_shell: Open, options: tuple[str, ...], code: int, said: str) -> None:
    """By the rule of `ws exec`."""
    with open_shell(*options) as opened:
        opened.expect(PROMPT)
        opened.type("exit 7\n")
        assert opened.end() == code
        assert said.encode() in opened.screen
        assert not opened.is_raw()


def test_a_command_and_a_key_that_ends_it(open_shell: Open) -> None:
    with open_shell("--command", "echo ready; cat; echo over") as opened:
        opened.expect("ready")
        opened.type("hello\n")
        opened.expect("hello\r\nhello")
        opened.type(b"\x04")
        opened.expect("over")
        assert opened.end() == 0


def test_detaching_and_returning(open_shell: Open, listed: Callable[[], list[dict[str, Any]]]) -> None:
    with open_shell() as first:
        counter(first)
        first.type(DETACH)
        assert first.end() == 0
        assert not first.is_raw()
        terminal, before = terminal_of(first), reached_by(first)
    until(lambda: [row["viewers"] for row in listed()] == [0], 30)
    with open_shell("--attach", terminal) as second:
        assert reached(second) >= before
        with open_shell("--attach", terminal) as third:  # two viewers see the same
            number = reached(third)
            second.expect(f"at-{number + 1}-now")
            third.type(b"\x03")
            for each in (second, third):
                each.expect("^C")
            second.type("exit 0\n")
            assert [each.end() for each in (second, third)] == [0, 0]


def reached_by(opened: Window) -> int:
    """The newest number on a window that has ended."""
    return max(int(number) for number in re.findall(rb"at-(\d+)-now", opened.screen))


def test_other_detach_keys(open_shell: Open) -> None:
    with open_shell("--detach-keys", "ctrl-],q") as opened:
        opened.expect(PROMPT)
        opened.type(DETACH)  # the shell's own now
        opened.type(b"echo st''ill\n")
        opened.expect("still")
        opened.type(b"\x1dx")
        opened.type(b"\x1dq")
        assert opened.end() == 0


def test_a_full_screen_program_survives(
    service: Service, open_shell: Open, listed: Callable[[], list[dict[str, Any]]]
) -> None:
    """ "a shell with a running `top` survives, attached again each time": the client killed, the listener,
    the agent, a restart of the service."""
    with open_shell() as opened:
        opened.expect(PROMPT)
        opened.type("top -d 1\n")
        opened.expect("Load average")
        opened.kill(signal.SIGKILL)
        assert opened.end() == -signal.SIGKILL
    (row,) = until(lambda: [row for row in listed() if row["viewers"] == 0], 30)
    with open_shell("--attach", row["id"]) as opened:
        opened.expect("Load average")
        os.kill(listener(service), signal.SIGKILL)
        opened.expect("Attaching again")
        opened.expect("Load average")
        for one in agents():
            os.kill(one.pid, signal.SIGKILL)
        opened.seen = len(opened.screen)
        opened.expect("Load average")  # the agent is not in the way of the bytes
        service.stop()
        service.start()
        opened.expect("Attaching again")
        opened.expect("Load average")
        opened.type("q")
        opened.expect(PROMPT)
        opened.type("exit\n")
        assert opened.end() == 0
        assert not opened.is_raw()


def listener(service: Service) -> int:
    """The process that serves the host socket."""
    return next(one.pid for one in service.members() if one.status["Name"] == "svc-unix")


def agents() -> list[Any]:
    return [one for one in processes_of("tse-alice") if one.status["Name"] == "svc-agent"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_the_terminal_is_put_back_after_a_signal(open_shell: Open, number: int) -> None:
    with open_shell() as opened:
        opened.expect(PROMPT)
        opened.type(r"printf '\033[?1049h\033[?25l\033[?2004h'; echo st''ill" + "\n")
        opened.expect("still")
        opened.kill(number)
        assert opened.end() == -number
        assert not opened.is_raw()
        for put_back in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?2004l"):
            assert put_back in opened.screen[opened.seen :]


def test_what_ends_it_from_elsewhere(
    alice: Call, open_shell: Open, workspace: str, listed: Callable[[], list[dict[str, Any]]]
) -> None:
    with open_shell() as opened:
        opened.expect(PROMPT)
        must(alice("ws", "shell", workspace, "--close", listed()[0]["id"]))
        assert opened.end() == 1
        assert b"the terminal was closed" in opened.screen
        assert not opened.is_raw()
    with open_shell() as opened:
        opened.expect(PROMPT)
        must(alice("ws", "stop", workspace))
        assert opened.end() == 1
        assert b"the workspace has stopped" in opened.screen
        assert not opened.is_raw()


def test_what_it_refuses(alice: Call, bob: Call, workspace: str, open_shell: Open) -> None:
    refused = alice("ws", "shell", workspace, stdin="id\n")
    assert (refused.code, refused.out) == (2, "")
    assert "is not a terminal" in refused.err
    assert f"svc ws exec -i {workspace}" in refused.err
    for options in (("--json",), ("--attach", "t-000000", "--command", "id"), ("--detach-keys", "hyper-x")):
        assert alice("ws", "shell", workspace, *options).code == 2
    with open_shell("--attach", "t-000000") as opened:
        assert opened.end() == 1
        assert b"has no terminal t-000000" in opened.screen
        assert not opened.is_raw()
    assert bob("ws", "shell", workspace, "--list").code == 1
    must(alice("ws", "stop", workspace))
    with open_shell() as opened:
        assert opened.end() == 1
        assert b"is not running" in opened.screen
    assert must(alice("ws", "shell", workspace, "--list")).out == ""


@pytest.fixture(autouse=True)
def server_runs(service: Service) -> Iterator[None]:
    """A test that stopped the service, and failed, leaves it running."""
    yield
    if service.supervisor is None:
        service.start()
