"""The registry policy: the file that lists where images may come from, and Podman's configuration for it.

The app and the agents read `registries.json`; an agent's Podman reads `registries.conf`
(CONTAINERS_REGISTRIES_CONF).
"""

from __future__ import annotations

import json
import os
from typing import Any

from svc_helper import atomic_file


def write(state_dir: str, registries: list[dict[str, Any]]) -> dict[str, Any]:
    """Replace the whole policy; the JSON last, since the other file follows from it."""
    atomic_file.replace(os.path.join(state_dir, "registries.conf"), configuration(registries).encode(), 0o644)
    text = json.dumps({"registries": registries}, indent=1) + "\n"
    atomic_file.replace(os.path.join(state_dir, "registries.json"), text.encode(), 0o644)
    return {"registries": registries}


def configuration(registries: list[dict[str, Any]]) -> str:
    """The policy as containers-registries.conf(5); every name matches the patterns of the verb table."""
    lines = ["# Written by svc from registries.json.", "unqualified-search-registries = []"]
    for host in sorted({registry["host"] for registry in registries if registry["insecure"]}):
        lines += ["", "[[registry]]", f'location = "{host}"', "insecure = true"]
    return "\n".join(lines) + "\n"
