"""A compromised app cannot say who asks: every connection that it could show instead is refused.

The app's own end of the pair is taken out of the running listener, and calls are made on
it with the app's uid, as a taken-over listener could make them.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from e2e.installation import PREFIX, Call, Service, processes_of
from waiting import until

from svc.app import HELPER_UNIX, UNIX

SYS_PIDFD_GETFD = 438
WAITS = "sleep 3117"  # in the workspace, for as long as a test needs its connection
CALL = """
import socket, sys
from svc.errors import SvcError
from svc.helper.helper import Helper
pair, peer, user = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
shown = socket.socket(fileno=peer) if peer >= 0 else None
try:
    Helper(socket.socket(fileno=pair), "unix").call("image.list", user, {}, rid="forged", peer=shown)
    print("done")
except SvcError as error:
    print(error.code)
"""


def take(pid: int, number: int) -> int:
    """A copy of another process's descriptor."""
    pidfd = os.pidfd_open(pid)
    try:
        taken = ctypes.CDLL(None, use_errno=True).syscall(SYS_PIDFD_GETFD, pidfd, number, 0)
        if taken < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return int(taken)
    finally:
        os.close(pidfd)


@pytest.fixture
def listener_pid(service: Service) -> int:
    """The pid of the unix listener, which holds connections."""
    return next(one.pid for one in service.members() if one.status["Name"] == "svc-unix")


@pytest.fixture
def pair(listener_pid: int) -> Iterator[int]:
    """The app's end of the unix pair."""
    taken = take(listener_pid, HELPER_UNIX)
    yield taken
    os.close(taken)


def ask(pair: int, peer: int, user: str) -> str:
    """One call as the app's uid with that proof; the error's code, or "done"."""
    app = pwd.getpwnam("svc-unix")
    kept = [number for number in (pair, peer) if number >= 0]
    done = subprocess.run(
        [PREFIX / "bin/python3", "-I", "-c", CALL, str(pair), str(peer), user],
        pass_fds=kept, user=app.pw_uid, group=app.pw_gid, extra_groups=[], env={}, cwd="/",
        capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def accepted(listener_pid: int, service: Service, alice: Call, workspace: str) -> Iterator[int]:
    """Alice's own connection as the listener accepted it, alive while the test runs."""
    thread = threading.Thread(target=lambda: alice("ws", "exec", workspace, "--", *WAITS.split()))
    thread.start()
    # By then the connections of her commands before it are closed.
    (waits,) = until(lambda: [one.pid for one in processes_of("tse-alice") if one.args == WAITS], 30)
    taken = until(lambda: find_accepted(listener_pid, service.env["SVC_SOCKET"]), 30)
    yield taken
    os.close(taken)
    os.kill(waits, signal.SIGKILL)
    thread.join()


def find_accepted(pid: int, path: str) -> int | None:
    """A copy of an accepted connection of Alice's among a process's descriptors."""
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            taken = take(pid, int(name))
        except OSError:
            continue
        if is_hers(taken, path):
            return taken
        os.close(taken)
    return None


def is_hers(number: int, path: str) -> bool:
    """Is it a connection of Alice's on our socket?"""
    if not stat.S_ISSOCK(os.fstat(number).st_mode):
        return False
    with socket.socket(fileno=os.dup(number)) as sock:
        try:
            credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        except OSError:
            return False
        pid, uid, _ = struct.unpack("3i", credentials)
        is_there = os.path.exists(f"/proc/{pid}")
        return sock.getsockname() == path and uid == pwd.getpwnam("tse-alice").pw_uid and is_there


def test_the_callers_own_connection_is_a_proof_for_the_caller_alone(pair: int, accepted: int) -> None:
    assert ask(pair, accepted, "tse-alice") == "done"
    assert ask(pair, accepted, "tse-bob") != "done"
    assert ask(pair, accepted, "root") != "done"


def test_no_proof_is_no_proof(pair: int, workspace: str) -> None:
    assert ask(pair, -1, "tse-alice") != "done"


def test_the_apps_own_client_end_is_refused(pair: int, service: Service, workspace: str) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(service.env["SVC_SOCKET"])
        assert ask(pair, client.fileno(), "tse-alice") != "done"
        assert ask(pair, client.fileno(), "root") != "done"


def test_the_listener_is_refused(pair: int, service: Service, workspace: str) -> None:
    listener = take(service.member("svc.app").pid, UNIX)
    try:
        assert ask(pair, listener, "tse-alice") != "done"
    finally:
        os.close(listener)


def test_a_connection_that_hung_up_is_refused(
    pair: int, listener_pid: int, service: Service, workspace: str
) -> None:
    alice = pwd.getpwnam("tse-alice")
    client = subprocess.Popen(
        [sys.executable, "-I", "-c",
         "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
         "s.send(b'GET '); time.sleep(60)",
         service.env["SVC_SOCKET"]], user=alice.pw_uid, group=alice.pw_gid, cwd="/",
    )  # fmt: skip
    try:
        taken = until(lambda: find_accepted(listener_pid, service.env["SVC_SOCKET"]), 30)
    finally:
        client.kill()
        client.wait()
    time.sleep(0.1)
    try:
        assert ask(pair, taken, "tse-alice") != "done"
    finally:
        os.close(taken)


def test_another_pair_is_refused(pair: int, workspace: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert ask(pair, ours.fileno(), "tse-alice") != "done"


def test_another_process_cannot_use_the_pair(pair: int, accepted: int) -> None:
    """The kernel says who sends: root itself is not the app."""
    done = subprocess.run(
        [PREFIX / "bin/python3", "-I", "-c", CALL, str(pair), str(accepted), "tse-alice"],
        pass_fds=[pair, accepted], env={}, cwd="/", capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert done.stdout.strip() != "done"
