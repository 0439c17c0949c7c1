"""The version: the full commit SHA of this build, its release, and the version of the HTTP API.

For `svc --version` and GET /api/version; imports nothing heavy.
"""

from __future__ import annotations

import os

API_VERSION = "1"  # of the HTTP API; a change that breaks a caller makes it "2"


def commit() -> str:
    """The SHA recorded at installation (svc/_build.py), else the checkout's HEAD, else "unknown"."""
    try:
        from svc._build import COMMIT  # written by setup.py when svc is built

        return str(COMMIT)
    except ImportError:
        return _head(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ".git"))


def release() -> str:
    """The release recorded at installation, such as "0.1.0"; "0" for a checkout, which is none."""
    try:
        from svc._build import VERSION  # the Debian package has no metadata of a distribution svc

        return str(VERSION)
    except ImportError:
        return "0"


def _head(git: str) -> str:
    """The commit of a checkout's HEAD, read from its files: git takes longer to start than `svc`."""
    try:
        with open(os.path.join(git, "HEAD"), encoding="ascii") as file:
            head = file.read().strip()
        name = head.removeprefix("ref: ")
        if name == head:
            return head
        loose = os.path.join(git, *name.split("/"))
        path = loose if os.path.exists(loose) else os.path.join(git, "packed-refs")
        with open(path, encoding="utf-8") as file:
            lines = [line.split() for line in file]
    except (OSError, UnicodeDecodeError):
        return "unknown"
    return next((line[0] for line in lines if line[1:] in ([], [name])), "unknown")
