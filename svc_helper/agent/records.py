"""Which container a workspace has, remembered so that a call need not start Podman to ask.

A record is a hint that whoever uses it checks: against crun's own status of a
running container, or by the file that it leads to. It goes with the runtime
directory at a reboot.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from svc_helper.agent.home import Home

_RECORD_MAX = 8192


class Record(NamedTuple):
    """A container and the directory with its configuration and log."""

    container_id: str
    bundle: str


def remember(home: Home, workspace_id: str, container_id: str, bundle: str) -> None:
    """Note a workspace's container."""
    home.write(f"containers/{workspace_id}", f"{container_id}\n{bundle}\n")


def forget(home: Home, workspace_id: str) -> None:
    """Note that a workspace has no container, or another one."""
    try:
        os.unlink(f"{home.own}/containers/{workspace_id}")
    except FileNotFoundError:
        pass


def recall(home: Home, workspace_id: str) -> Record | None:
    """What was last noted of a workspace's container."""
    try:
        with open(f"{home.own}/containers/{workspace_id}", encoding="utf-8") as file:
            container_id, _, rest = file.read(_RECORD_MAX).partition("\n")
    except (OSError, ValueError):
        return None
    bundle = rest.rstrip("\n")
    if len(container_id) != 64 or container_id.strip("0123456789abcdef") or not bundle.startswith("/"):
        return None
    return Record(container_id, bundle)
