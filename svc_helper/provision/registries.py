"""The registry policy: the file that lists where images may come from, and Podman's configuration for it.

The app and the agents read `registries.json`; an agent's Podman reads `registries.conf`
(CONTAINERS_REGISTRIES_CONF).
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from svc_helper import atomic_file


def write(state_dir: str, registries: list[dict[str, Any]]) -> dict[str, Any]:
    """Replace the whole policy; the JSON last, since the other file follows from it.

    Where it cannot be written, the other file is put back: no host stays insecure that is not on the list.
    """
    path = os.path.join(state_dir, "registries.conf")
    before = _content(path)
    atomic_file.replace(path, configuration(registries).encode(), 0o644)
    text = json.dumps({"registries": registries}, indent=1) + "\n"
    try:
        atomic_file.replace(os.path.join(state_dir, "registries.json"), text.encode(), 0o644)
    except OSError:
        with contextlib.suppress(OSError):
            atomic_file.replace(path, before, 0o644)
        raise
    return {"registries": registries}


def _content(path: str) -> bytes:
    """The file's bytes, which nothing takes apart; without one what is written for an empty list."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return configuration([]).encode()


def configuration(registries: list[dict[str, Any]]) -> str:
    """The policy as containers-registries.conf(5); every name matches the patterns of the verb table."""
    lines = ["# Written by svc from registries.json.", "unqualified-search-registries = []"]
    for host in sorted({registry["host"] for registry in registries if registry["insecure"]}):
        lines += ["", "[[registry]]", f'location = "{host}"', "insecure = true"]
    return "\n".join(lines) + "\n"
