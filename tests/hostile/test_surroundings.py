"""A taken-over app reaches neither root's terminal, keys and log nor the host's buses, homes and network."""

from __future__ import annotations

import json
import os
import pty
import select
import socket
import sys
import tty
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from e2e.installation import Service, app_uids, below

from svc.helper import start
from svc.host.accounts import find_accounts
from svc.server import children, surroundings
from svc.settings import Settings

ATTACK = str(Path(__file__).with_name("attackers") / "taken_over.py")
TIOCSTI_ALLOWED = Path("/proc/sys/dev/tty/legacy_tiocsti")


@pytest.fixture
def port() -> Iterator[int]:
    """A TCP listener on this host."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def started_at_a_terminal(spawn: Callable[[int, list[str]], int], port: int) -> tuple[dict[str, Any], bytes]:
    """What the attack got, and what it typed into the terminal from which root started it.

    `spawn` gets a pipe for output and the command, and starts it as the supervisor would.
    """
    reading, writing = os.pipe()
    typed_reading, typed_writing = os.pipe()
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            tty.setraw(0)
            child = spawn(writing, [sys.executable, "-I", ATTACK, str(port)])
            os.waitpid(child, 0)
            os.write(typed_writing, os.read(0, 100) if select.select([0], [], [], 0.2)[0] else b"-")
        finally:
            os._exit(0)
    os.close(writing)
    os.close(typed_writing)
    try:
        with os.fdopen(reading, "rb") as file, os.fdopen(typed_reading, "rb") as typed:
            result, keys = json.loads(file.read()), typed.read()
    finally:
        os.waitpid(pid, 0)
        os.close(terminal)
    return result, keys


@pytest.fixture
def settings(env: dict[str, str]) -> Settings:
    """Those of this installation."""
    return Settings(environ=env, file={})


@pytest.fixture
def confined(service: Service, settings: Settings, port: int) -> tuple[dict[str, Any], bytes]:
    """What the attack got as the app is started now."""

    def spawn(output: int, command: list[str]) -> int:
        whole = children.as_app(find_accounts(), command)
        prepare = partial(surroundings.enter, settings)
        return children.spawn_detached(whole, [], start.environment(), output, prepare)

    return started_at_a_terminal(spawn, port)


def test_the_attack_would_succeed_on_an_inherited_terminal(port: int) -> None:
    """Else the other tests would show nothing."""

    def spawn(output: int, command: list[str]) -> int:
        pid = os.fork()
        if pid == 0:
            os.dup2(output, 1)
            account = app_uids()["svc-unix"]
            os.setresuid(account, account, account)
            os.execv(command[0], command)
        return pid

    result, keys = started_at_a_terminal(spawn, port)
    assert result["terminal"] and result["connected"] and result["wrote"]
    assert result["buses"]["/home"] is not None
    if TIOCSTI_ALLOWED.exists() and TIOCSTI_ALLOWED.read_text().strip() == "1":
        assert result["typed"][0] and b"!" in keys


def test_roots_terminal_is_out_of_reach(confined: tuple[dict[str, Any], bytes]) -> None:
    result, keys = confined
    assert (result["typed"], result["terminal"], keys) == ([False] * 3, False, b"-")


def test_buses_homes_and_the_network_are_out_of_reach(confined: tuple[dict[str, Any], bytes]) -> None:
    result, _ = confined
    assert {
        path: found for path, found in result["buses"].items() if found not in ([], None, ["system"])
    } == {}
    assert (result["connected"], result["interfaces"]) == (False, ["lo"])
    assert (result["wrote"], result["sees_tmp"]) == (False, [])


def test_roots_keys_are_out_of_reach(service: Service, settings: Settings, port: int) -> None:
    keyrings = [
        started_at_a_terminal(
            lambda output, command: children.spawn_detached(
                children.as_app(find_accounts(), command), [], start.environment(), output, lambda: None
            ),
            port,
        )[0]["keyring"]
        for _ in range(2)
    ]
    if -1 in keyrings:
        pytest.skip("this kernel has no keyrings")
    assert keyrings[0] != keyrings[1]


def test_no_process_of_the_app_has_roots_terminal_or_log(service: Service) -> None:
    log = os.stat(service.log)
    found = [one for one in below(service.pid) if one.uid in app_uids().values()]
    assert len(found) == 5
    for one in found:
        fields = Path(f"/proc/{one.pid}/stat").read_text().rpartition(")")[2].split()
        assert fields[4] == "0", f"{one.args} has a terminal"
        assert os.getsid(one.pid) != os.getsid(service.pid)
        for name in os.listdir(f"/proc/{one.pid}/fd"):
            status = os.stat(f"/proc/{one.pid}/fd/{name}")
            assert (status.st_dev, status.st_ino) != (log.st_dev, log.st_ino), f"{one.args} has root's log"
            assert not os.readlink(f"/proc/{one.pid}/fd/{name}").startswith(("/dev/pts", "/dev/tty"))
