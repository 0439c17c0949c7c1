"""The first call after an idle time: no agent runs, and only what the call needs is started."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from e2e.installation import Call, Process, processes_of
from waiting import until


def podman_services() -> list[Process]:
    return [one for one in processes_of("tse-alice") if "system service" in one.args]


def is_running(pid: int) -> bool:
    """Whether the process still has its descriptors: its command line is gone before these are closed."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in ("Z", "X")


def end_agents_and_podman() -> None:
    mine = [one for one in processes_of("tse-alice") if "svc_helper.agent" in one.args] + podman_services()
    for one in mine:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGKILL)
    until(lambda: not any(is_running(one.pid) for one in mine))


def test_a_cold_exec_starts_no_podman(alice: Call, workspace: str) -> None:
    """Unless somebody else asks first: the worker may still be taking its watch of the workspace."""

    def quietly() -> bool:
        end_agents_and_podman()
        done = alice("ws", "exec", workspace, "--", "echo", "here")
        assert (done.code, done.out) == (0, "here\n")
        return podman_services() == []

    until(quietly)


def test_what_needs_podman_starts_it_then(alice: Call, workspace: str) -> None:
    end_agents_and_podman()
    assert alice("ws", "exec", workspace, "--", "true").code == 0
    assert alice("image", "list").code == 0
    assert podman_services()


def test_a_cold_start_and_stop(alice: Call, workspace: str) -> None:
    assert alice("ws", "stop", workspace).code == 0
    end_agents_and_podman()
    assert alice("ws", "start", workspace).code == 0
    assert alice("ws", "exec", workspace, "--", "true").code == 0
