"""Leaving the session keyring of whoever started the program; for every process that gives up root.

Imports only errno, os and, when called, ctypes.
"""

from __future__ import annotations

import errno
import os

KEYCTL = {"x86_64": 250}  # the number of keyctl(2)
KEYCTL_ELSEWHERE = 219
JOIN_SESSION_KEYRING = 1
NO_KEYRINGS = (errno.ENOSYS, errno.EPERM)  # the kernel has no keyrings, for the account either


def leave_keyring() -> None:
    """Join a new session keyring: the inherited one is shared with whoever started this program."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    number = KEYCTL.get(os.uname().machine, KEYCTL_ELSEWHERE)
    if libc.syscall(number, JOIN_SESSION_KEYRING, None) == -1 and ctypes.get_errno() not in NO_KEYRINGS:
        raise PermissionError("no new session keyring could be joined")
