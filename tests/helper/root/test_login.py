"""What the service has for itself, and what was set where it was started, is not a user's."""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helper.stage import Stage

LIMITS_FILE = Path("/etc/security/limits.d/tsh.conf")
SELF = {"id": "ws-self0000"}
SYS_RESOURCE = 1 << 24
STARTED_FROM = (
    *("chrt", "--batch", "0"),
    *("nice", "-n", "-5"),
    *("ionice", "-c", "2", "-n", "1"),
    *("taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))),
    *("prlimit", "--stack=1048576:", "--nofile=700:", "--sigpending=99:"),
)


def agent_of(stage: Stage, name: str = "tsh-ada") -> dict[str, Any]:
    """What that account's agent says of itself."""
    return stage.client("worker").call("ctr.inspect", name, SELF, rid="r")


@pytest.fixture
def limits() -> Iterator[Path]:
    """A file of limits.conf's own, for this test."""
    yield LIMITS_FILE
    LIMITS_FILE.unlink(missing_ok=True)


def may_raise() -> bool:
    """Whether this machine's root has CAP_SYS_RESOURCE; a container's often has not."""
    status = dict(
        line.split(":\t") for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line
    )
    return bool(int(status["CapEff"], 16) & SYS_RESOURCE)


def test_scheduling_and_limits_are_those_of_a_login(uid: dict[str, int]) -> None:
    stage = Stage(inside=STARTED_FROM, pair_names=("worker",))
    stage.enrol(f"tsh-ada {uid['tsh-ada']} user")
    try:
        said = agent_of(stage)
        own = os.getpriority(os.PRIO_PROCESS, 0)
        assert os.getpriority(os.PRIO_PROCESS, stage.process.pid) == max(
            own - 5, -20
        )  # the helper's own stays
        assert (said["nice"], said["scheduler"], said["affinity"]) == (
            0,
            os.SCHED_OTHER,
            sorted(os.sched_getaffinity(1)),
        )
        io = subprocess.run(["ionice", "-p", str(said["pid"])], capture_output=True, text=True, check=True)
        assert io.stdout == "none: prio 0\n"
        for name in ("RLIMIT_STACK", "RLIMIT_SIGPENDING"):
            number = getattr(resource, name)
            assert said["limits"][str(number)][0] == resource.prlimit(1, number)[0], name
        assert said["core"][0] == 0
    finally:
        stage.close()


def test_limits_conf_applies(stage: Stage, limits: Path) -> None:
    limits.write_text("tsh-ada - nproc 333\ntsh-ada - nofile 600\ntsh-ada - core 1000\n")
    said = agent_of(stage)
    assert said["limits"][str(resource.RLIMIT_NPROC)] == [333, 333]
    assert said["nofile"] == [600, 600]
    assert said["core"] == [1_024_000, 1_024_000]
    assert agent_of(stage, "tsh-ben")["nofile"] != [600, 600]


def test_a_session_that_pam_refuses_starts_no_agent(stage: Stage, limits: Path) -> None:
    pam = Path("/etc/pam.d/tsh-svc")
    before = pam.read_text()
    pam.write_text(before + "session required pam_deny.so\n")
    try:
        answer = stage.ask(
            "worker", {"verb": "ctr.inspect", "user": "tsh-ada", "rid": "r", "timeout_s": 5, "args": SELF}
        )
    finally:
        pam.write_text(before)
    assert answer is None
    assert any("PAM opened no session for tsh-ada" in str(line.get("why")) for line in stage.log())


def test_the_oom_score_is_nobodys_privilege(uid: dict[str, int]) -> None:
    if not may_raise():
        pytest.skip(
            "root has no CAP_SYS_RESOURCE here, so nothing can be preferred; tests/run release sees it"
        )
    stage = Stage(inside=("choom", "--adjust", "-500", "--"), pair_names=("worker",))
    stage.enrol(f"tsh-ada {uid['tsh-ada']} user")
    try:
        said = agent_of(stage)
        assert Path(f"/proc/{stage.process.pid}/oom_score_adj").read_text() == "-500\n"
        assert said["oom_score_adj"] == 0
        assert "Permission denied" in said["lower_oom_score"]
    finally:
        stage.close()
