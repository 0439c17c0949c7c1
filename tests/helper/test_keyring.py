"""A process that leaves the session keyring finds none of its keys."""

from __future__ import annotations

import ctypes
import os
import platform

import pytest

from svc_helper.keyring import leave_keyring

KEYCTL, SESSION = 250, -3


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the number is that of x86-64")
def test_the_session_keyring_is_another_afterwards() -> None:
    def keyring() -> int:
        return int(ctypes.CDLL(None).syscall(KEYCTL, 0, SESSION, 0))

    before = keyring()
    pid = os.fork()
    if pid == 0:
        leave_keyring()
        os._exit(0 if before == -1 or keyring() != before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
