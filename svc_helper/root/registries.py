"""The registry policy: the one file that says where images may come from, and what Podman makes of it.

`registries.json` is read by the app and the agents; `registries.conf` is what
an agent gives its Podman (CONTAINERS_REGISTRIES_CONF).
"""

from __future__ import annotations

import json
import os
from typing import Any

from svc_helper import atomic_file


def write(state_dir: str, registries: list[dict[str, Any]]) -> dict[str, Any]:
    """Replace the whole policy; the JSON last, since it is the truth and the other follows from it."""
    atomic_file.replace(os.path.join(state_dir, "registries.conf"), configuration(registries).encode(), 0o644)
    text = json.dumps({"registries": registries}, indent=1) + "\n"
    atomic_file.replace(os.path.join(state_dir, "registries.json"), text.encode(), 0o644)
    return {"registries": registries}


def configuration(registries: list[dict[str, Any]]) -> str:
    """The policy as containers-registries.conf(5); every name has passed the table's patterns."""
    lines = ["# Written by svc from registries.json.", "unqualified-search-registries = []"]
    for host in sorted({registry["host"] for registry in registries if registry["insecure"]}):
        lines += ["", "[[registry]]", f'location = "{host}"', "insecure = true"]
    return "\n".join(lines) + "\n"
