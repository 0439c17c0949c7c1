"""PAM's account and session stacks, and the expiry in the shadow file. No passwords.

Called only in a forked child: PAM modules may block, crash and leave threads behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import time
from typing import Any

SHADOW = "/etc/shadow"
DAY_S = 86400
PAM_CONV_ERR = 19
Converse = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
# Kept for as long as the process: python-pam's own is freed when authenticate() returns, and crashes later.
REFUSE = Converse(lambda _count, _messages, _replies, _data: PAM_CONV_ERR)


class Conversation(ctypes.Structure):
    """struct pam_conv."""

    _fields_ = (("converse", Converse), ("data", ctypes.c_void_p))


def load() -> Any:
    """The class of python-pam, its libraries loaded; None where it is not installed."""
    try:
        from pam import PamAuthenticator
    except ImportError:  # run from a source tree: -S hid the environment's own packages
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        environment = os.path.dirname(os.path.dirname(sys.executable))
        sys.path.append(os.path.join(environment, "lib", version, "site-packages"))
        try:
            from pam import PamAuthenticator
        except ImportError:
            return None
    PamAuthenticator()  # loads libpam: 30 ms, once for all children
    return PamAuthenticator


def allows(authenticator: Any, name: str, service: str) -> bool:
    """Whether PAM accepts the account: the service's stack, pam_rootok and then account."""
    # resetcreds would run pam_setcred, but there are no credentials to establish.
    return bool(authenticator().authenticate(name, "", service=service, resetcreds=False))


def open_session(name: str, service: str) -> None:
    """Open a session, so that limits.conf applies to this process; as root, raises PermissionError.

    Nothing closes it: that would take a process of root's for as long as the agent runs.
    """
    libpam, handle = ctypes.CDLL("libpam.so.0"), ctypes.c_void_p()
    conversation = Conversation(REFUSE, None)
    code = libpam.pam_start(service.encode(), name.encode(), ctypes.byref(conversation), ctypes.byref(handle))
    if code := code or libpam.pam_open_session(handle, 0):
        message = f"PAM opened no session for {name} (code {code}); see the session lines of {service}"
        raise PermissionError(message)


def expired(name: str) -> bool:
    """Whether the shadow file has the account expired; not every PAM stack checks that."""
    with contextlib.suppress(FileNotFoundError), open(SHADOW, encoding="utf-8", errors="replace") as file:
        for line in file:
            fields = line.rstrip("\n").split(":")
            if fields[0] == name and len(fields) > 7 and fields[7].isdigit():
                return int(fields[7]) <= time.time() // DAY_S
    return False
