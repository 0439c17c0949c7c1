"""What root gave the service for itself (priority, OOM score, limits) is out of its users' reach."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.installation import Call, Service, below, process
from hostile.test_hostile_agent import agent_of
from waiting import until

USER = "tsz-mallory"
LIMITS_FILE = Path("/etc/security/limits.d/tsz.conf")
SHOWN = (
    "cut -d' ' -f19 /proc/self/stat; cat /proc/self/oom_score_adj; cut -d' ' -f19 /proc/1/stat;"
    " sed -n 's/^Max core file size *\\([0-9a-z]*\\) .*/\\1/p; s/^Max processes *\\([0-9a-z]*\\) .*/\\1/p'"
    " /proc/self/limits"
)


@pytest.fixture
def preferred(service: Service) -> Iterator[int]:
    """The helper's pid; the helper runs before others, and is killed after them where root can say so."""
    assert service.supervisor is not None
    helper = next(one for one in below(service.supervisor.pid) if "svc_helper.root" in one.args)
    os.setpriority(os.PRIO_PROCESS, helper.pid, -5)
    score = Path(f"/proc/{helper.pid}/oom_score_adj")
    with contextlib.suppress(PermissionError):  # a container's root; the rest is seen all the same
        score.write_text("-500")
    LIMITS_FILE.write_text(f"{USER} - nproc 3333\n{USER} - core 1000\n")
    yield helper.pid
    LIMITS_FILE.unlink()
    os.setpriority(os.PRIO_PROCESS, helper.pid, 0)
    if score.read_text() != "0\n":
        score.write_text("0")
    end_agent()


def end_agent() -> None:
    """The next call starts another agent."""
    pid = agent_of(USER)
    os.kill(pid, signal.SIGKILL)
    until(lambda: process(pid) is None, 30)


def test_a_user_inherits_nothing_of_the_services_own(preferred: int, mallory: Call, mallorys: str) -> None:
    mallory("ws", "stop", mallorys)
    end_agent()
    until(lambda: mallory("ws", "start", mallorys).code == 0, 20, 0.3)
    said = mallory("ws", "exec", mallorys, "--", "sh", "-c", SHOWN)
    assert said.out.split() == ["0", "0", "0", "1024000", "3333"]  # as the kernel orders limits
    lower = "echo -400 > /proc/self/oom_score_adj && cat /proc/self/oom_score_adj"
    assert mallory("ws", "exec", mallorys, "--", "sh", "-c", lower).code != 0
    agent = agent_of(USER)
    assert os.getpriority(os.PRIO_PROCESS, agent) == 0
    assert Path(f"/proc/{agent}/oom_score_adj").read_text() == "0\n"
    assert "Max processes             3333 " in Path(f"/proc/{agent}/limits").read_text()
    assert os.getpriority(os.PRIO_PROCESS, preferred) == -5
