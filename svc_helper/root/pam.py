"""PAM's account stack, and the expiry in the shadow file. No passwords.

Called only in a forked child: PAM modules may block, crash and leave threads behind.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

SHADOW = "/etc/shadow"
DAY_S = 86400


def load() -> Any:
    """The class of python-pam, its libraries loaded; None where it is not installed."""
    try:
        from pam import PamAuthenticator
    except ImportError:  # run from a source tree: -S hid the environment's own packages
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        sys.path.append(
            os.path.join(os.path.dirname(os.path.dirname(sys.executable)), "lib", version, "site-packages")
        )
        try:
            from pam import PamAuthenticator
        except ImportError:
            return None
    PamAuthenticator()  # loads libpam: 30 ms, once for all children
    return PamAuthenticator


def allows(authenticator: Any, name: str, service: str) -> bool:
    """Whether PAM accepts the account: the service's stack, pam_rootok and then account."""
    # resetcreds would run pam_setcred, but there are no credentials to establish; open_session never runs.
    return bool(authenticator().authenticate(name, "", service=service, resetcreds=False))


def expired(name: str) -> bool:
    """Whether the shadow file has the account expired; not every PAM stack checks that."""
    try:
        with open(SHADOW, encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                fields = line.rstrip("\n").split(":")
                if fields[0] == name and len(fields) > 7 and fields[7].isdigit():
                    return int(fields[7]) <= time.time() // DAY_S
    except FileNotFoundError:
        pass
    return False
