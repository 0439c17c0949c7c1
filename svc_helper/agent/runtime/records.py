"""Cache of each workspace's container id and bundle, so that a call need not start Podman.

A record is a hint. Its users verify it, against crun's status of a running
container or by the file at that path. It is lost with the runtime directory at
a reboot.
"""

from __future__ import annotations

import os

from svc_helper.agent import user_files
from svc_helper.agent.home import Home
from svc_helper.wire.quick_typing import NamedTuple

_RECORD_MAX = 8192


class Record(NamedTuple):
    """A container and the directory with its configuration and log."""

    container_id: str
    bundle: str


def remember(home: Home, workspace_id: str, container_id: str, bundle: str) -> None:
    """Record a workspace's container."""
    home.write(f"containers/{workspace_id}", f"{container_id}\n{bundle}\n")


def forget(home: Home, workspace_id: str) -> None:
    """Remove the record: the workspace has no container, or another one."""
    try:
        os.unlink(f"{home.own}/containers/{workspace_id}")
    except FileNotFoundError:
        pass


def recall(home: Home, workspace_id: str) -> Record | None:
    """The last record of a workspace's container."""
    try:
        text = user_files.read(f"{home.own}/containers/{workspace_id}", _RECORD_MAX).decode()
    except (OSError, ValueError):
        return None
    container_id, _, rest = text.partition("\n")
    bundle = rest.rstrip("\n")
    if len(container_id) != 64 or container_id.strip("0123456789abcdef") or not bundle.startswith("/"):
        return None
    return Record(container_id, bundle)
