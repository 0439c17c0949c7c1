"""Which container a workspace has, remembered so that a call need not start Podman to ask.

A record is a hint that whoever uses it checks: against crun's own status of a
running container, or by the file that it leads to. It goes with the runtime
directory at a reboot.
"""

from __future__ import annotations

import os
import stat
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
        text = read(f"{home.own}/containers/{workspace_id}", _RECORD_MAX).decode()
    except (OSError, ValueError):
        return None
    container_id, _, rest = text.partition("\n")
    bundle = rest.rstrip("\n")
    if len(container_id) != 64 or container_id.strip("0123456789abcdef") or not bundle.startswith("/"):
        return None
    return Record(container_id, bundle)


def read(path: str, limit: int) -> bytes:
    """The beginning of a file that the user can write too; raises OSError for what is no regular file.

    A FIFO must not block: nobody would end the call that waits in it.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:  # not by open(), which leaves the descriptor of a directory open
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError("not a regular file")
        content = b""
        while len(content) < limit and (part := os.read(fd, limit - len(content))):
            content += part
        return content
    finally:
        os.close(fd)
