"""How a helper process is started: its command line, its configuration and its environment.

For the two programs that start one: the supervisor, and `svc admin` for provisioning.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from svc.settings import Settings
from svc_helper import interpreter


def command(settings: Settings, program: str, fds: Mapping[str, int], uids: Mapping[str, int]) -> list[str]:
    """The command line of a helper program (a module with main()), its configuration as one argument.

    By the pair's name, `fds` has its inherited descriptor and `uids` the uid that may send on it.
    """
    config = {
        "socket": settings.socket,
        "state_dir": settings.state_dir,
        "file_roots": settings.file_roots,
        "store_dir": settings.store_dir,
        "fds": dict(fds),
        "uids": dict(uids),
        "single_user": os.geteuid() != 0,
    }
    return interpreter.command(program, "--config", json.dumps(config))


def environment() -> dict[str, str]:
    """A fresh environment: path and language, and in single-user mode that user's runtime directory."""
    clean = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    return clean | {"XDG_RUNTIME_DIR": runtime} if runtime and os.geteuid() != 0 else clean
