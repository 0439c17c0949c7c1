"""The filter leaves the app parent few uids and one group, and refuses what the app does not need."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import signal
from collections.abc import Callable
from typing import Any

import pytest
from unit.forking import GROUP, forked, restricted

from svc.server import seccomp

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


def error_of(call: Callable[..., Any], *arguments: Any) -> int:
    """The errno of a call, 0 when it succeeds."""
    try:
        call(*arguments)
    except OSError as error:
        return error.errno or -1
    return 0


@needs_root
def test_only_the_roles_uids_can_be_taken() -> None:
    def work() -> list[int]:
        restricted()
        tried = [
            error_of(os.setresuid, *ids)
            for ids in ((0, 0, 0), (64001, 64001, 0), (-1, 64001, -1), (64001, 64002, 64001), (1000,) * 3)
        ]
        tried += [error_of(os.setuid, 64001), error_of(os.setgid, 64001), error_of(os.setgroups, [])]
        tried += [error_of(os.seteuid, 64001), error_of(os.setreuid, 64001, 64001)]
        return [*tried, error_of(os.setresuid, 64002, 64002, 64002), *os.getresuid()]

    assert forked(work) == [errno.EPERM] * 10 + [0, 64002, 64002, 64002]


@needs_root
def test_only_the_one_group_can_be_taken() -> None:
    def work() -> list[int]:
        restricted()
        tried = [
            error_of(os.setresgid, *ids)
            for ids in ((0, 0, 0), (GROUP, GROUP, 0), (-1, GROUP, -1), (64001,) * 3, (1000,) * 3)
        ]
        tried += [error_of(os.setegid, GROUP), error_of(os.setregid, GROUP, GROUP)]
        return [*tried, error_of(os.setresgid, GROUP, GROUP, GROUP), *os.getresgid()]

    assert forked(work) == [errno.EPERM] * 7 + [0, GROUP, GROUP, GROUP]


CALLS = {  # name: arguments that would succeed, or fail otherwise
    "unshare": (0x10000000,), "ptrace": (0,), "keyctl": (0, -3, 0), "execve": (0, 0, 0), "setns": (-1, 0),
    "mount": (0, 0, 0, 0, 0), "bpf": (0, 0, 0), "io_uring_setup": (1, 0), "pidfd_getfd": (-1, 0, 0),
    "process_vm_readv": (os.getpid(), 0, 0, 0, 0, 0), "userfaultfd": (0,), "open_by_handle_at": (-1, 0, 0),
    "perf_event_open": (0, 0, -1, -1, 0), "clone": (0x10000000 | signal.SIGCHLD, 0, 0, 0, 0),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_system_call_that_the_app_does_not_need_is_refused(name: str) -> None:
    number = ctypes.CDLL(seccomp.LIBRARY).seccomp_syscall_resolve_name(name.encode())

    def work() -> int:
        restricted()
        libc = ctypes.CDLL(None, use_errno=True)
        return ctypes.get_errno() if libc.syscall(number, *CALLS[name]) == -1 else 0

    assert number > 0
    assert forked(work) == errno.EPERM


def test_threads_forks_and_clone3_work_as_before() -> None:
    def work() -> list[int]:
        import threading

        restricted()
        seen: list[int] = []
        thread = threading.Thread(target=lambda: seen.append(1))
        thread.start()
        thread.join()
        libc = ctypes.CDLL(None, use_errno=True)
        number = ctypes.CDLL(seccomp.LIBRARY).seccomp_syscall_resolve_name(b"clone3")
        assert libc.syscall(number, 0, 0) == -1
        pid = os.fork()
        if pid == 0:
            os._exit(7)
        return [*seen, ctypes.get_errno(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])]

    assert forked(work) == [1, errno.ENOSYS, 7]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the other ABI is that of x86-64")
def test_the_other_abi_does_not_exist() -> None:
    def work() -> int:
        restricted()
        libc = ctypes.CDLL(None, use_errno=True)
        return ctypes.get_errno() if libc.syscall(seccomp.X32 | 39) == -1 else 0

    assert forked(work) == errno.ENOSYS
