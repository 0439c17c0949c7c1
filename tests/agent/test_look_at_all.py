"""The worker's look at all users leaves nothing of those behind for whom nothing runs, with real Podman."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from agent.priv_ns import User

pytestmark = pytest.mark.root


def podmans(user: User) -> set[str]:
    """The Podman services of a user."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if path.stat().st_uid == user.uid and command.startswith("podman system service"):
                found.add(path.name)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def end_pause_process(user: User) -> None:
    """As after a start of the host: the next Podman makes another, and is two processes."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            if path.stat().st_uid == user.uid and (path / "cmdline").read_bytes() == b"catatonit\0-P\0":
                os.kill(int(path.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            pass


@pytest.mark.parametrize("first", [True, False])
def test_agent_and_podman_end_with_it(user: User, image: str, first: bool) -> None:
    """The first Podman since the host's start is two processes, until its user's pause process is there."""
    user.start_agent().close()  # prepares the user's directories
    if first:
        end_pause_process(user)
    before = podmans(user)
    agent = user.start_agent()
    assert agent.call("ctr.list", ends_agent=True).data == {"containers": []}
    agent.process.wait(20)
    deadline = time.monotonic() + 20
    while (left := podmans(user) - before) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == set()
    agent.close()
