"""One user's agent answers as it likes: its own calls fail in time, and nobody else notices."""

from __future__ import annotations

import contextlib
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from e2e.installation import SVC, Call, Service, process, processes, processes_of
from waiting import until

USURPER = Path(__file__).with_name("attackers") / "usurper.py"
Unmoved = Callable[[], float]


def agent_of(user: str) -> int:
    """The pid of the user's agent."""
    found = [one for one in processes_of(user) if "svc_helper.agent.__main__" in one.args]
    assert found, [one.args for one in processes_of(user)]
    return found[-1].pid


@contextlib.contextmanager
def usurped(user: str, mode: str, liar_file: Path = USURPER) -> Iterator[None]:
    """While it lasts the user's own process answers the calls in place of the agent."""
    account = pwd.getpwnam(user)
    agent = agent_of(user)
    liar = subprocess.Popen(
        [sys.executable, "-I", liar_file, str(agent), mode],
        user=account.pw_uid, group=account.pw_gid, extra_groups=[], cwd="/", env={},
        stdout=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        assert liar.stdout is not None
        assert liar.stdout.readline() == b"ready\n"
        yield
    finally:
        os.killpg(liar.pid, signal.SIGKILL)
        liar.communicate()
        with contextlib.suppress(ProcessLookupError):
            os.kill(agent, signal.SIGKILL)  # the next call starts another
        until(lambda: process(agent) is None, 30)


@pytest.fixture
def lab(mallory: Call, mallorys: str) -> str:
    """Mallory's workspace, running, with an agent that is still the real one."""
    deadline = time.monotonic() + 60
    while (said := mallory("ws", "start", mallorys)).code != 0:
        assert time.monotonic() < deadline, said
        time.sleep(0.3)
    return mallorys


def named(service: Service, name: str) -> int:
    """The pid of one of the app's three: the process that holds connections or threads."""
    parent = service.member("svc.app").pid
    return next(
        one.pid for one in processes() if one.parent == parent and one.status["Name"] == f"svc-{name}"
    )


def figures(pid: int) -> tuple[int, int, int]:
    """Descriptors, threads and resident KiB of a process."""
    found = process(pid)
    assert found is not None
    return (
        len(os.listdir(f"/proc/{pid}/fd")),
        int(found.status["Threads"]),
        int(found.status["VmRSS"].split()[0]),
    )


@pytest.mark.parametrize("mode", ["nonsense", "garbage", "memfds"])
def test_every_answer_is_an_error_of_ours(mallory: Call, lab: str, unmoved: Unmoved, mode: str) -> None:
    with usurped("tsz-mallory", mode):
        for _ in range(8):
            for arguments in (("logs", lab), ("exec", lab, "--", "true")):
                said = (
                    mallory("ws", *arguments, "--json")
                    if arguments[0] == "logs"
                    else mallory("ws", *arguments)
                )
                assert "internal_error" not in said.out + said.err
                assert "went wrong" not in said.err, said.err
                assert "\x1b" not in said.out + said.err
        assert unmoved() < 2


def test_a_silent_agent_takes_no_thread_from_others(
    service: Service, mallory: Call, lab: str, unmoved: Unmoved
) -> None:
    account = pwd.getpwnam("tsz-mallory")
    with usurped("tsz-mallory", "silent"):
        asking = [
            subprocess.Popen(
                [SVC, "ws", "logs", lab],
                user=account.pw_uid, group=account.pw_gid, cwd="/", env=service.env,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
            for _ in range(70)
        ]  # fmt: skip
        try:
            time.sleep(1.5)
            assert max(unmoved() for _ in range(3)) < 2
        finally:
            for one in asking:
                one.kill()
            for one in asking:
                one.wait()


def test_a_silent_agent_does_not_hold_up_the_worker(
    service: Service, alice: Call, alices: str, mallory: Call, lab: str
) -> None:
    worker = named(service, "worker")
    with usurped("tsz-mallory", "silent"):
        os.kill(worker, signal.SIGKILL)  # a new one wants to watch what runs
        time.sleep(1.5)
        began = time.monotonic()
        pulled = alice("image", "pull", "base", "--wait", timeout=60)
        assert pulled.code == 0, pulled.err
        assert time.monotonic() - began < 8


def test_nonsense_does_not_end_the_workers_first_look(
    service: Service, alice: Call, alices: str, mallory: Call, lab: str
) -> None:
    """What happened while the service was away is found out for everybody, whoever lies."""
    with usurped("tsz-mallory", "nonsense"):
        os.kill(named(service, "worker"), signal.SIGKILL)
        time.sleep(1)
        init = [one.pid for one in processes_of("tsz-alice") if one.args == "sleep infinity"]
        os.kill(init[0], signal.SIGKILL)
        until(lambda: alice("api", "GET", f"/api/workspaces/{alices}").json()["status"] == "stopped", 15)
    assert alice("ws", "start", alices).code == 0
    assert "Traceback" not in service.log.read_text()


def test_descriptors_that_do_not_close_hold_nobody(
    service: Service, mallory: Call, lab: str, unmoved: Unmoved
) -> None:
    listener = named(service, "unix")
    before = figures(listener)
    with usurped("tsz-mallory", "linger"):
        with ThreadPoolExecutor(8) as pool:
            began = time.monotonic()
            outcomes = list(pool.map(lambda _: mallory("ws", "logs", lab, timeout=30).code, range(16)))
            assert time.monotonic() - began < 15
        assert set(outcomes) <= {0, 1}
        assert unmoved() < 2
        descriptors, threads, _ = figures(listener)
        assert descriptors - before[0] < 40
        assert threads - before[1] < 40


def test_a_flood_of_progress_fills_nothing(
    service: Service, mallory: Call, lab: str, unmoved: Unmoved, registry: str
) -> None:
    worker = named(service, "worker")
    size = Path(service.env["SVC_DB"]).stat().st_size
    with usurped("tsz-mallory", "flood"):
        started = mallory("image", "pull", "base")
        assert started.code == 0, started.err
        time.sleep(3)
        assert unmoved() < 2
        _, _, resident = figures(worker)
        assert resident < 120_000
        operations = mallory("api", "GET", "/api/images/builds")
        assert "\x1b" not in operations.out
        until(lambda: "pulling" not in mallory("image", "list", "--json", timeout=40).out, 40, 1)
    grown = Path(service.env["SVC_DB"]).stat().st_size - size
    assert grown < 16 * 1024 * 1024


def test_an_agent_that_is_killed_in_a_loop(
    service: Service, mallory: Call, lab: str, unmoved: Unmoved
) -> None:
    helper = service.member("svc_helper").pid
    before = figures(helper)[0]
    for _ in range(15):
        with contextlib.suppress(ProcessLookupError, AssertionError):
            os.kill(agent_of("tsz-mallory"), signal.SIGKILL)
        assert mallory("ws", "logs", lab).code in (0, 1)
    assert unmoved() < 2
    assert figures(helper)[0] - before < 10
    assert len([one for one in processes_of("tsz-mallory") if "svc_helper.agent.__main__" in one.args]) <= 1


def test_a_watch_of_something_else_is_not_kept(service: Service, mallory: Call, lab: str) -> None:
    """The worker keeps one pidfd for each running workspace, whatever agents hand it."""
    worker = named(service, "worker")
    before = figures(worker)[0]
    with usurped("tsz-mallory", "nonsense"):
        for _ in range(10):
            mallory("ws", "stop", lab)
            mallory("ws", "start", lab)
        time.sleep(1)
        assert figures(worker)[0] - before < 10
    until(lambda: mallory("ws", "start", lab).code == 0, 30, 0.5)
