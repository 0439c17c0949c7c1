"""Locks of one workspace: across agents, and gone with whoever held one."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from svc_helper.agent import locks
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.home import Home

WS = "ws-0000000a"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """All that locks use of a home."""
    (tmp_path / "locks").mkdir()
    return cast(Home, SimpleNamespace(own=str(tmp_path)))


def call(timeout_s: float = 30) -> tuple[Call, socket.socket]:
    """A call and its caller's end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return Call("test", "ctr.start", timeout_s, theirs), ours


def test_of_two_one_waits(home: Home) -> None:
    first, second = call(), call()
    order: list[str] = []

    def wait() -> None:
        with locks.held(home, second[0], "start", WS):
            order.append("second")

    with locks.held(home, first[0], "start", WS):
        thread = threading.Thread(target=wait)
        thread.start()
        with locks.held(home, call()[0], "start", "ws-0000000b"), locks.held(home, call()[0], "ports", WS):
            pass  # others are not concerned
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_who_waits_gives_up_with_its_caller(home: Home) -> None:
    (waiting, caller), holding = call(), call()
    with locks.held(home, holding[0], "start", WS):
        caller.close()
        with pytest.raises(Failure) as failed, locks.held(home, waiting, "start", WS):
            pass
    assert failed.value.code == "cancelled"


def test_a_lock_ends_with_its_holder(home: Home) -> None:
    pid = os.fork()
    if pid == 0:
        with locks.held(home, call()[0], "start", WS):
            os._exit(0)
    os.waitpid(pid, 0)
    with locks.held(home, call(5)[0], "start", WS):
        pass


def test_nothing_of_a_removed_workspace_stays(home: Home) -> None:
    for kind in ("start", "shim", "ports"):
        for ws in (WS, "ws-0000000b"):
            with locks.held(home, call()[0], kind, ws):
                pass
    locks.forget(home, WS)
    locks.forget(home, WS)
    assert {name.rpartition("ws-")[2] for name in os.listdir(f"{home.own}/locks")} == {"0000000b"}
