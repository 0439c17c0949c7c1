"""The host's own word on an account: PAM's account stack and the expiry in the shadow file.

Called only in a forked child: PAM modules may wait, crash and leave threads
behind. No password is ever asked or known here.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

SHADOW = "/etc/shadow"
DAY_S = 86400


def load() -> Any:
    """The python-pam class, its libraries loaded; None where it is not installed."""
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
    PamAuthenticator()  # loads libpam; 30 ms that no child has to spend again
    return PamAuthenticator


def allows(authenticator: Any, name: str, service: str) -> bool:
    """Whether the account may be used now, by the service's PAM stack (pam_rootok, then account)."""
    # resetcreds would run pam_setcred: nothing to establish here, and never open_session.
    return bool(authenticator().authenticate(name, "", service=service, resetcreds=False))


def expired(name: str) -> bool:
    """Whether the shadow file says that the account is over; not every PAM stack looks."""
    try:
        with open(SHADOW, encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                fields = line.rstrip("\n").split(":")
                if fields[0] == name and len(fields) > 7 and fields[7].isdigit():
                    return int(fields[7]) <= time.time() // DAY_S
    except FileNotFoundError:
        pass
    return False
