"""Writes the settings of pulls and builds (proxy, private authorities) where the users' agents read them.

A file below the state directory, as the registry policy is: the helper passes nothing on, and no
command line has it. Everybody may read it, which is why a proxy's password is refused.
"""

from __future__ import annotations

import contextlib
import json
import os

from svc.errors import HostRefused
from svc.settings import Settings
from svc_helper import atomic_file

FILE = "outbound.json"


def write(settings: Settings) -> None:
    """Replace the file; an agent that starts later uses it. Raises HostRefused."""
    content = {"proxy": settings.http_proxy, "no_proxy": settings.no_proxy, "ca_file": settings.ca_file}
    path = os.path.join(settings.state_dir, FILE)
    if not any(content.values()):
        # PermissionError: a server with --dev beside the installed one.
        with contextlib.suppress(FileNotFoundError, PermissionError):
            os.unlink(path)
        return
    try:
        atomic_file.replace(path, json.dumps(content).encode(), 0o644)
    except OSError as error:
        raise HostRefused(f"{path} cannot be written: {error.strerror}") from None
