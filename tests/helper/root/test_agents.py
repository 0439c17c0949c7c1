"""One agent per user: started where it belongs, replaced when it ends, ended with its helper."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from helper.stage import WS, Stage, traced

from svc import errors
from svc_helper.root.agents import AGENTS_MAX, LOCKS


def test_the_same_agent_serves_the_next_call(stage: Stage) -> None:
    helper = stage.client("worker")
    pids = {helper.call("ctr.inspect", "tsh-ada", WS, rid="r")["pid"] for _ in range(5)}
    assert len(pids) == 1


def test_an_agent_has_its_own_cgroup_where_there_is_cgroup2(uid: dict[str, int]) -> None:
    script = 'umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$@"'
    stage = Stage(pairs=("worker",), inside=("unshare", "--mount", "sh", "-c", script, "sh"))
    stage.enrol(f"tsh-ada {uid['tsh-ada']} user")
    try:
        result = stage.client("worker").call("ctr.inspect", "tsh-ada", {"id": "ws-self0000"}, rid="r")
    finally:
        stage.close()
    ours = f"/user-{uid['tsh-ada']}"
    assert f"0::{ours}/svc-agent-" in result["cgroup"]
    assert result["own_group"] == ""  # made, entered and left again by the user, and ended by cgroup.kill


def test_a_cgroup_that_the_user_made_holds_no_child_of_root(uid: dict[str, int]) -> None:
    """Frozen groups of every likely name wait for the agent; it enters one of root's own making."""
    group = f"/sys/fs/cgroup/user-{uid['tsh-ada']}"
    script = (
        "umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup;"
        " for name in svc-agent svc-agent-0; do"
        f" mkdir -p {group}/$name; echo 1 >{group}/$name/cgroup.freeze; done;"
        f' chown -R {uid["tsh-ada"]} {group}; exec "$@"'
    )
    stage = Stage(pairs=("worker",), inside=("unshare", "--mount", "sh", "-c", script, "sh"))
    stage.enrol(f"tsh-ada {uid['tsh-ada']} user")
    try:
        result = stage.client("worker").call("ctr.inspect", "tsh-ada", {"id": "ws-self0000"}, rid="r")
    finally:
        stage.close()
    assert f"/user-{uid['tsh-ada']}/svc-agent-" in result["cgroup"]


@pytest.mark.parametrize("what", ["a file", "a directory", "the user's own"])
def test_podmans_locks_that_a_stranger_has_made_are_set_aside(
    stage: Stage, uid: dict[str, int], what: str
) -> None:
    """No Podman of the user would start."""
    lock = Path(f"{LOCKS}{uid['tsh-ada']}")
    lock.mkdir() if what == "a directory" else lock.touch(0o666)
    owner = uid["tsh-ada"] if what == "the user's own" else 65534
    os.chown(lock, owner, owner)
    try:
        stage.client("worker").call("ctr.inspect", "tsh-ada", WS, rid="r")
        assert lock.exists() == (what == "the user's own")
        assert len(list(lock.parent.glob(f"{lock.name}*"))) == 1
    finally:
        for path in lock.parent.glob(f"{lock.name}*"):
            path.rmdir() if path.is_dir() else path.unlink()


def test_an_ending_agent_loses_no_call(stage: Stage) -> None:
    helper = stage.client("worker")
    pids = set()
    for _ in range(6):
        pids.add(helper.call("ctr.inspect", "tsh-ada", {"id": "ws-ends0000"}, rid="r")["pid"])
        pids.add(helper.call("ctr.inspect", "tsh-ada", WS, rid="r")["pid"])
    assert len(pids) > 4


def gone(pid: int) -> None:
    """Wait for the end of a process: its descriptors, which tell of it, are closed one after the other."""
    until = time.monotonic() + 10
    while os.path.exists(f"/proc/{pid}"):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_dead_agent_costs_its_call_and_the_next_one_works(stage: Stage) -> None:
    helper = stage.client("worker")
    pid = helper.call("ctr.inspect", "tsh-ada", WS, rid="r")["pid"]
    with pytest.raises(errors.EngineUnavailable):
        helper.call("ctr.inspect", "tsh-ada", {"id": "ws-dies0000"}, rid="r")
    gone(pid)
    helper.call("ctr.inspect", "tsh-ada", WS, rid="r")
    pid = helper.call("ctr.inspect", "tsh-ada", WS, rid="r")["pid"]
    os.kill(pid, signal.SIGKILL)
    gone(pid)
    assert helper.call("ctr.inspect", "tsh-ada", WS, rid="r")["pid"] != pid


def test_agents_that_take_no_call_and_stay_are_not_replaced_without_end(stage: Stage) -> None:
    helper = stage.client("worker")
    stay = {"id": "ws-stay0000"}
    pids = [helper.call("ctr.inspect", "tsh-ada", stay, rid="r")["pid"] for _ in range(AGENTS_MAX)]
    try:
        assert len(set(pids)) == AGENTS_MAX
        with pytest.raises(errors.EngineUnavailable, match="8 agents of this account have not ended"):
            helper.call("ctr.inspect", "tsh-ada", WS, rid="r")
        helper.call("ctr.inspect", "tsh-ben", WS, rid="r")
        os.kill(pids[0], signal.SIGKILL)
        gone(pids[0])
        assert helper.call("ctr.inspect", "tsh-ada", WS, rid="r")["pid"] not in pids
    finally:
        for pid in pids[1:]:
            os.kill(pid, signal.SIGKILL)


def test_an_agent_that_its_user_traces_and_kills_holds_up_nobody(stage: Stage) -> None:
    helper = stage.client("worker")
    pid = helper.call("ctr.inspect", "tsh-ada", WS, rid="r")["pid"]
    with traced(pid) as tracer:
        os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + 20
        while "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]:
            assert time.monotonic() < until
            time.sleep(0.01)
        lets_go = threading.Timer(20, tracer.kill)
        lets_go.start()
        helper.call("ctr.inspect", "tsh-ben", WS, rid="r")
        assert helper.call("ctr.inspect", "tsh-ada", WS, rid="r")["pid"] != pid
        lets_go.cancel()
        assert os.path.exists(f"/proc/{pid}")  # its tracer has it still
    gone(pid)


def test_agents_end_with_the_helper(stage: Stage) -> None:
    pid = stage.client("worker").call("ctr.inspect", "tsh-ada", WS, rid="r")["pid"]
    stage.process.kill()
    stage.process.wait()
    gone(pid)
    stage.start()
