"""A restart of the app gives nothing to what is left of it: no descriptor, and no process."""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import time
from pathlib import Path

from e2e.installation import APP_ACCOUNTS, PREFIX, Service, process, processes
from waiting import until

THIEF = Path(__file__).with_name("attackers") / "thief.py"
KILLS = 4
TRIES = 1001  # of each thief at least


def named(service: Service, name: str) -> int:
    """The pid of the topmost process of that name."""
    found = [one for one in service.members() if one.status["Name"] == name]
    return next(one.pid for one in found if one.parent not in {other.pid for other in found})


def kill(service: Service, name: str) -> None:
    """Kill the process of that name, and wait until it has gone: those below it answer until then."""
    pid = named(service, name)
    os.kill(pid, signal.SIGKILL)
    until(lambda: process(pid) is None, 15, 0.01)


def thief(name: str) -> subprocess.Popen[str]:
    """One who steals until it is over, with that account of the app's."""
    account = pwd.getpwnam(name)
    return subprocess.Popen(
        [PREFIX / "bin/python3", "-I", THIEF, str(TRIES)],
        stdout=subprocess.PIPE, text=True, cwd="/", env={},
        user=account.pw_uid, group=account.pw_gid, extra_groups=[],
    )  # fmt: skip


def test_no_descriptor_is_taken_from_an_app_that_starts(service: Service) -> None:
    """Between exec and PR_SET_DUMPABLE all could be taken by a process of the same uid."""
    thieves = [thief(name) for name in APP_ACCOUNTS]
    try:
        for one in thieves:
            assert one.stdout is not None
            assert one.stdout.readline() == "begun\n"
        for _ in range(KILLS):
            kill(service, "svc-app")
            until(service.answers, 15)
    finally:
        for one in thieves:
            one.terminate()
        said = [one.communicate(timeout=60)[0].split("\n") for one in thieves]
    assert not [line for lines in said for line in lines if line.startswith("taken")]
    assert all(int(line.split()[1]) > 1000 for lines in said for line in lines if line.startswith("tries"))


def left_behind(service: Service, name: str) -> int:
    """A process of the role's account in the app's process namespace, in a session of its own."""
    pid = named(service, name)
    before = {one.pid for one in processes()}
    enter = ["nsenter", "--target", str(pid), "--pid", "--"]
    become = ["setpriv", "--reuid", name, "--regid", "svc", "--clear-groups", "--"]
    subprocess.Popen(
        [*enter, *become, "setsid", "sleep", "977"], stdin=subprocess.DEVNULL, start_new_session=True
    )
    uid = pwd.getpwnam(name).pw_uid

    def found() -> int:
        return next(
            (
                one.pid
                for one in processes()
                if one.pid not in before and one.uid == uid and one.args == "sleep 977"
            ),
            0,
        )

    return int(until(found, 30))


def test_what_is_left_of_a_role_ends_before_the_next_one_starts(service: Service) -> None:
    left = left_behind(service, "svc-unix")
    kill(service, "svc-unix")
    until(lambda: process(left) is None, 10, 0.01)
    until(service.answers, 15)


def test_the_whole_app_ends_with_its_parent(service: Service) -> None:
    left = [left_behind(service, name) for name in ("svc-unix", "svc-tls", "svc-worker")]
    os.kill(named(service, "svc-app"), signal.SIGKILL)
    began = time.monotonic()
    until(lambda: not [pid for pid in left if process(pid)], 5, 0.01)
    assert time.monotonic() - began < 2
    until(service.answers, 15)
