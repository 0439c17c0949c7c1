"""A role is left with nothing, and ends with its parent."""

from __future__ import annotations

import ctypes
import os
import signal
import time

import pytest
from unit.forking import GROUP, PR_SET_NO_NEW_PRIVS, ROLES, forked, restricted

from svc.server import confinement

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@needs_root
def test_a_role_keeps_no_capability_and_cannot_be_looked_into() -> None:
    def work() -> list[str]:
        os.setgroups([])
        os.setresgid(64000, 64000, 64000)
        restricted()
        confinement.become_role(64001, 64000)
        with open("/proc/self/status", encoding="ascii") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        owner = os.stat("/proc/self/environ").st_uid
        return [status["CapPrm"], status["CapEff"], status["Uid"].split()[0], str(owner)]

    assert forked(work) == ["0" * 16, "0" * 16, "64001", "0"]


@needs_root
def test_the_role_between_browsers_and_programs_leaves_the_groups_of_the_app() -> None:
    def work() -> list[object]:
        os.setgroups([])
        os.setresgid(64000, 64000, 64000)
        restricted()
        confinement.become_role(64004, GROUP)
        return [os.getresuid(), os.getresgid(), os.getgroups()]

    assert forked(work) == [[64004] * 3, [GROUP] * 3, []]


@needs_root
def test_the_parent_refuses_more_than_its_one_capability() -> None:
    def work() -> None:
        assert ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
        os.setresgid(64000, 64000, 64000)
        os.setresuid(64001, 0, 64001)
        confinement.confine_parent(ROLES, [GROUP])

    assert "identity of root" in forked(work)


def test_a_role_ends_when_its_parent_has() -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(writing)
        confinement.end_with(reading)
        time.sleep(30)
        os._exit(0)
    os.close(reading)
    time.sleep(0.2)
    os.close(writing)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM
