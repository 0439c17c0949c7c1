"""What the app's processes give up by themselves.

The supervisor starts the parent with two capabilities, CAP_SETUID and CAP_SETGID. The parent first
becomes undumpable and installs the seccomp filter, which leaves them few uses: the uids of the roles,
and the one group of `apps`. Each fork that becomes a role gives them up. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterable

from svc.host.accounts import PARENT_CAPABILITIES
from svc.server import seccomp

PR_SET_DUMPABLE, PR_SET_NAME, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 4, 15, 36, 38
PR_CAP_AMBIENT, CLEAR_ALL = 47, 4
CAPABILITY_VERSION = 0x20080522

libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int | bytes) -> None:
    """One prctl(2) call; raises OSError."""
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def confine_parent(uids: Iterable[int], gids: Iterable[int]) -> None:
    """The parent's first act: nobody looks into it, and it can become none but these uids and gids."""
    prctl(PR_SET_DUMPABLE, 0)  # else processes of one uid could take each other's descriptors
    _assert_status(PARENT_CAPABILITIES)
    try:
        seccomp.restrict(uids, gids)
    except OSError as error:
        raise SystemExit(f"svc: the app cannot restrict its system calls: {error}") from None
    _assert_not_root()


def try_filter(uids: Iterable[int], gids: Iterable[int]) -> None:
    """Install the filter in this process, a child that only tries it; raises OSError."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    seccomp.restrict(uids, gids)


def become_role(uid: int, gid: int) -> None:
    """Take a role's uid and group for good, without any capability; one that has them already only checks."""
    if os.getgid() != gid:
        os.setresgid(gid, gid, gid)
    if os.getuid() != uid:
        os.setresuid(uid, uid, uid)
        _drop_capabilities()
    prctl(PR_SET_DUMPABLE, 0)
    assert_unprivileged()


def _drop_capabilities() -> None:
    """Needed after a change between two ordinary uids, which leaves the capabilities as they were."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION, 0)
    none = (ctypes.c_uint32 * 6)()
    if libc.capset(header, none) != 0:
        raise OSError(ctypes.get_errno(), "capset")
    if libc.prctl(PR_CAP_AMBIENT, CLEAR_ALL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl PR_CAP_AMBIENT")


def assert_unprivileged() -> None:
    """Exit if the process has a capability or could become root; an ordinary user's --dev passes."""
    _assert_status(0)
    _assert_not_root()


def _assert_status(capabilities: int) -> None:
    with open("/proc/self/status", encoding="ascii") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    if status["NoNewPrivs"] != "1":
        raise SystemExit("svc: the app was started without no_new_privs")
    if 0 in os.getresuid() or 0 in os.getresgid():
        raise SystemExit("svc: the app was started with an identity of root")
    if len(set(os.getresuid())) != 1:
        raise SystemExit("svc: the app was started with several identities")
    if any(int(status[name], 16) & ~capabilities for name in ("CapPrm", "CapEff", "CapInh", "CapAmb")):
        raise SystemExit("svc: the app was started with capabilities")


def _assert_not_root() -> None:
    attempts: tuple[tuple[Callable[..., None], tuple[int, ...]], ...] = (
        (os.setuid, (0,)),
        (os.setresuid, (0, 0, 0)),
        (os.setgid, (0,)),
        (os.setresgid, (0, 0, 0)),
    )
    for attempt, ids in attempts:
        try:
            attempt(*ids)
        except PermissionError:
            continue
        raise SystemExit("svc: the app could become root")


def end_with(parent_alive: int) -> None:
    """Get SIGTERM when the pipe's other end is closed, which only the parent holds.

    The kernel sends no parent-death signal to a process of another uid.
    """
    import fcntl

    fcntl.fcntl(parent_alive, fcntl.F_SETSIG, signal.SIGTERM)
    fcntl.fcntl(parent_alive, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(parent_alive, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
