"""All processes of a uid are killed at once, and nobody else's."""

from __future__ import annotations

import os
import signal
import time

import pytest

from svc.server import ending

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


@needs_root
def test_all_of_a_uid_are_killed_and_nobody_else() -> None:
    pids = []
    for uid in (64001, 64001, 64002):
        pid = os.fork()
        if pid == 0:
            os.setresuid(uid, uid, uid)
            os.setsid()
            time.sleep(30)
            os._exit(0)
        pids.append(pid)
    time.sleep(0.1)
    assert ending.kill_all_of(64001)
    ended = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids[:2]]
    assert ended == [-signal.SIGKILL] * 2
    assert os.waitpid(pids[2], os.WNOHANG) == (0, 0)
    ending.signal_as(64002, pids[2], signal.SIGTERM)
    assert os.waitstatus_to_exitcode(os.waitpid(pids[2], 0)[1]) == -signal.SIGTERM
    os.wait()  # the process that sent it
    assert ending.kill_all_of(64002)  # there is nobody


@needs_root
def test_it_wins_against_a_process_that_kills_it() -> None:
    attackers = []
    for _ in range(2):
        pid = os.fork()
        if pid == 0:
            os.setresuid(64003, 64003, 64003)
            while True:
                try:
                    os.kill(-1, signal.SIGKILL)
                except OSError:
                    continue
        attackers.append(pid)
        time.sleep(0.05)  # the second may be killed by the first: one is enough
    assert ending.kill_all_of(64003)
    for pid in attackers:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def test_roots_are_never_killed() -> None:
    pid = ending._fork_as(0, lambda: os._exit(0))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1
