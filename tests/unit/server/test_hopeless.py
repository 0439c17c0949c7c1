"""A server whose listeners end at each start gives up, and says so; one that has answered goes on."""

from __future__ import annotations

import ctypes
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from unit.forking import PR_SET_NO_NEW_PRIVS, forked

from svc.app import Parent, Role
from svc.errors import HostRefused
from svc.host.accounts import Accounts, Identity
from svc.server import confinement, restart
from svc.server.heartbeat import Heartbeat
from svc.server.restart import EARLY_ENDS_MAX, NOT_SERVING
from svc.server.supervisor import Supervisor
from svc.settings import Settings


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restart, "BACKOFF_FIRST_S", 0.0)
    monkeypatch.setattr(restart, "BACKOFF_LAST_S", 0.0)


def end_of_parent(work: Callable[[Heartbeat], None]) -> int:
    """How an app parent ends, two of whose three children do this work at each of their starts."""

    def run() -> int:
        if os.getuid() == 0:
            os.setresgid(64001, 64001, 64001)
            os.setresuid(64001, 64001, 64001)
            confinement._drop_capabilities()  # a container's root may have inheritable ones
        assert ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        uid, starts = os.getuid(), 0
        beats = [Heartbeat(), Heartbeat()]
        roles = [
            Role("unix", uid, os.getgid(), (beats[0].descriptor,), lambda: work(beats[0]), beats[0]),
            Role("tls", uid, os.getgid(), (beats[1].descriptor,), lambda: work(beats[1]), beats[1]),
            Role("worker", uid, os.getgid(), (), lambda: time.sleep(60)),
        ]
        parent = Parent(roles, separate=False)

        def start_unix() -> int:
            nonlocal starts
            starts += 1
            parent.stopping = starts > 2 * EARLY_ENDS_MAX  # as by a signal
            return parent._fork(roles[0])

        parent.children[0].start = start_unix
        return parent.run()

    return int(forked(run))


def fail(_beats: Heartbeat) -> None:
    raise SystemExit(1)


def fail_after_an_answer(beats: Heartbeat) -> None:
    beats.beat()
    raise SystemExit(1)


def test_listeners_that_end_at_each_start_end_the_app() -> None:
    assert end_of_parent(fail) == NOT_SERVING


def test_listeners_that_have_answered_are_started_again() -> None:
    """Requests may end a listener again and again: the other one must not suffer from it."""
    assert end_of_parent(fail_after_an_answer) == 0


@pytest.mark.allow_commands("sh", "sleep")
@pytest.mark.parametrize(
    ("code", "starts"), [(NOT_SERVING, 1), (1, EARLY_ENDS_MAX)], ids=["of its listeners", "of the app itself"]
)
def test_the_server_ends_with_the_reason_and_without_its_socket(
    tmp_path: Path, code: int, starts: int
) -> None:
    path = tmp_path / "svc.sock"

    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    environ = {
        "SVC_SOCKET": str(path),
        "SVC_PORT": str(port),
        "SVC_APPS_LOCAL_PORT": "0",  # that of the default is another program's beside this one
        "SVC_DB": str(tmp_path / "svc.db"),
    }

    def run() -> list[object]:
        settings = Settings(environ=environ, file={})
        uid = os.getuid()
        accounts = Accounts(
            uid, os.getgid(), dict.fromkeys(("unix", "tls", "worker"), uid), Identity(uid, os.getgid())
        )
        server = Supervisor(settings, True, accounts, "", "")
        assert path.exists()
        count = [0]

        def start_app() -> int:
            count[0] += 1
            return os.posix_spawn("/bin/sh", ["sh", "-c", f"exit {code}"], {})

        server.helper.start = lambda: os.posix_spawn("/bin/sleep", ["sleep", "60"], {})
        server.children[-1].start = start_app
        try:
            server.run()
        except HostRefused as error:
            return [error.message, error.hint, path.exists(), count[0]]
        return []

    found = forked(run)
    assert isinstance(found, list), found
    message, hint, is_left, count = forked(run)
    assert message == "the app ends at each start, before it answers anything; the lines above say why"
    assert hint == f"sudo svc admin doctor --db {tmp_path / 'svc.db'}"
    assert not is_left
    assert count == starts
