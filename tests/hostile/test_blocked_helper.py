"""A helper that cannot answer, whatever holds it, is replaced within ten seconds."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.installation import PREFIX, Call, Service, process, processes
from e2e.processes.test_forged_peers import take
from e2e.surroundings import must
from hostile.attackers.usurper import KEPT, lingering
from waiting import until

from svc.app import HELPER_WORKER

RESTART_S = 10.0
SEND = """
import socket, sys
from svc_helper.wire.protocol import send
with socket.socket(fileno=int(sys.argv[1])) as pair:
    for _ in range(int(sys.argv[3])):
        message = {"verb": "helper.ping", "user": None, "rid": "x", "timeout_s": 5, "args": {}}
        send(pair, message, [int(sys.argv[2])], wait=False)
"""


@pytest.fixture
def helper(service: Service, alice: Call) -> int:
    """The pid of the helper, which answers."""
    must(alice("ws", "list"))
    return service.member("svc_helper").pid


@pytest.fixture
def frozen(helper: int, tmp_path: Path) -> Iterator[int]:
    """The helper, held by the kernel so that not even SIGKILL ends it."""
    if subprocess.run(["mount", "-t", "cgroup", "-o", "freezer", "none", tmp_path], check=False).returncode:
        pytest.skip("no freezer of cgroup v1 here: nothing else holds a process so on purpose")
    group = tmp_path / "tsz-frozen"
    group.mkdir()
    (group / "cgroup.procs").write_text(str(helper))
    (group / "freezer.state").write_text("FROZEN")
    yield helper
    (group / "freezer.state").write_text("THAWED")
    until(lambda: process(helper) is None, 10)
    for one in (group / "cgroup.procs").read_text().split():  # its children, which it started meanwhile
        (tmp_path / "cgroup.procs").write_text(one)
    group.rmdir()
    subprocess.run(["umount", tmp_path], check=True)


def replaced(service: Service, alice: Call, helper: int) -> float:
    """How long it took until another helper served alice."""
    began = time.monotonic()
    until(lambda: any("svc_helper.root" in one.args and one.pid != helper for one in processes()), 15)
    until(lambda: alice("ws", "list", timeout=30).code == 0, 10)
    return time.monotonic() - began


def test_a_stopped_helper(service: Service, alice: Call, helper: int) -> None:
    os.kill(helper, signal.SIGSTOP)
    assert replaced(service, alice, helper) < RESTART_S
    assert process(helper) is None


def test_a_helper_that_not_even_sigkill_ends(service: Service, alice: Call, frozen: int) -> None:
    assert replaced(service, alice, frozen) < RESTART_S + 1


def send_as_the_app(reply: int, count: int) -> None:
    """Calls on the worker's pair with that reply path, by a process of the worker's uid."""
    worker = next(one for one in processes() if one.status["Name"] == "svc-worker")
    pair = take(worker.pid, HELPER_WORKER)
    gid = int(worker.status["Gid"].split()[0])
    subprocess.run(
        [PREFIX / "bin/python3", "-I", "-c", SEND, str(pair), str(reply), str(count)],
        pass_fds=[pair, reply], user=worker.uid, group=gid, extra_groups=[], env={}, cwd="/", check=False,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(pair)


def test_a_descriptor_whose_close_waits(service: Service, alice: Call, helper: int) -> None:
    os.kill(helper, signal.SIGSTOP)  # until the helper's is the last copy
    fd = lingering()
    send_as_the_app(fd, 1)
    os.close(fd)
    os.kill(helper, signal.SIGCONT)
    assert replaced(service, alice, helper) < RESTART_S
    while KEPT:
        KEPT.pop().close()


def test_replies_that_nobody_reads(service: Service, helper: int, unmoved: Callable[[], float]) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        send_as_the_app(theirs.fileno(), 5000)
        assert unmoved() < 2
    assert service.member("svc_helper").pid == helper
