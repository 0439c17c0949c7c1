"""What a workspace's processes use: in real containers, and by the files that controllers write."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from agent.priv_ns import Agent, User

from svc_helper.agent.calls import Call
from svc_helper.agent.containers import running, stats
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.runtime import crun

Make = Callable[..., str]
SPIN = ["sh", "-c", "sh -c 'while :; do :; done' & exec sleep 1000"]


def eventually(agent: Agent, ws: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """A sample of which that holds; a loaded machine may need more than one."""
    until = time.monotonic() + 30
    while True:
        sample = agent.call("ctr.stats", id=ws, sample_ms=300).data
        if holds(sample) or time.monotonic() > until:
            return sample


@pytest.mark.root
@pytest.mark.parametrize("run_as", [None, {"uid": 1234, "gid": 1234}], ids=["root", "keep-id"])
def test_a_busy_workspace(agent: Agent, make: Make, run_as: dict[str, int] | None) -> None:
    ws = make(command=SPIN, run_as=run_as)
    sample = eventually(agent, ws, lambda found: (found["cpu_percent"] or 0) > 5)
    assert sample["source"] == "proc", "without controllers"
    assert sample["cpu_percent"] > 5
    assert sample["sampled_ms"] >= 300
    assert sample["cpu_usec"] > 0
    assert {sample[limit] for limit in ("cpu_limit", "memory_limit_bytes", "pids_limit")} == {None}
    assert sample["memory_bytes"] == sum(row["memory_bytes"] for row in sample["processes"]) > 0
    assert sample["pids"] >= 3
    busiest = sample["processes"][0]
    assert busiest["command"] == "sh -c while :; do :; done"
    assert busiest["cpu_percent"] > 5
    assert Path(f"/proc/{busiest['pid']}").exists(), "a pid of the host"
    first = agent.call("ctr.inspect", id=ws).data["pid"]
    assert first in [row["pid"] for row in sample["processes"]]
    assert busiest["parent"] in [row["pid"] for row in sample["processes"]]
    assert sample["more_processes"] == 0


@pytest.mark.root
def test_only_what_is_in_it(agent: Agent, make: Make, user: User) -> None:
    ws, other = make(command=["sleep", "1111"]), make(command=["sleep", "2222"])
    commands = [row["command"] for row in agent.call("ctr.stats", id=ws, sample_ms=0).data["processes"]]
    assert "sleep 1111" in commands
    assert not {"sleep 2222"} & set(commands)
    quiet = agent.call("ctr.stats", id=other, sample_ms=0).data
    assert (quiet["sampled_ms"], quiet["cpu_percent"], quiet["processes"][0]["cpu_percent"]) == (
        0,
        None,
        None,
    )
    exec_ = agent.begin("ctr.exec", id=ws, command=["sleep", "3333"], timeout_s=60)
    found = eventually(
        agent, ws, lambda sample: any(row["command"] == "sleep 3333" for row in sample["processes"])
    )
    assert "sleep 3333" in [row["command"] for row in found["processes"]], "a command belongs to it"
    exec_.cancel()
    assert exec_.answer().code == "cancelled"


@pytest.mark.root
def test_many_processes_and_strange_commands(agent: Agent, make: Make) -> None:
    script = "i=0; while [ $i -lt 70 ]; do sleep 1000 & i=$((i+1)); done; exec sleep $(printf '1\\n000')"
    ws = make(command=["sh", "-c", f"sh -c 'sleep 1000; : {'x' * 500}\n\t\033[31m' & {script}"])
    found = eventually(agent, ws, lambda sample: sample["pids"] >= 72)
    assert len(found["processes"]) == 50
    assert found["more_processes"] >= 22
    for row in found["processes"]:
        assert len(row["command"]) <= 200
        assert row["command"].isprintable()


@pytest.mark.root
def test_processes_that_come_and_go(agent: Agent, make: Make) -> None:
    ws = make(command=["sh", "-c", "while :; do /bin/true; done"])
    found = eventually(agent, ws, lambda sample: sample["cpu_percent"] > 1)
    assert found["cpu_percent"] > 1, "the time of those that have ended is their parent's"


@pytest.mark.root
def test_what_does_not_run(agent: Agent, make: Make) -> None:
    ws = make()
    agent.call("ctr.stop", id=ws, grace_s=5)
    assert agent.call("ctr.stats", id=ws, sample_ms=0).code == "not_running"
    assert agent.call("ctr.stats", id="ws-00000000", sample_ms=0).code == "not_found"
    ws = make()
    pending = agent.begin("ctr.stats", id=ws, sample_ms=4000)
    agent.call("ctr.stop", id=ws, grace_s=5)
    assert pending.answer().code == "not_running", "it ended in between"


# --- with controllers ---------------------------------------------------------------------------


class Still:
    """A call that sleeps as it is told."""

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        self.then = then

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
        self.then()


@pytest.fixture(autouse=True)
def samples(monkeypatch: pytest.MonkeyPatch) -> stats.Samples:
    """Nothing kept of another test: its process here is the same."""
    samples = stats.Samples()
    monkeypatch.setattr(stats, "_samples", samples)
    return samples


@pytest.fixture
def group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cgroup's directory with the files of its controllers; this test's own process is in a group below."""
    below = tmp_path / "container"
    below.mkdir()
    below.joinpath("cgroup.procs").write_text(f"{os.getpid()}\n4194305\n")
    for name, text in {
        "cgroup.procs": "",
        "memory.current": "3000000\n",
        "memory.max": "67108864\n",
        "memory.stat": "anon 100\ninactive_file 1000000\nslab x y\n",
        "pids.current": "42\n",
        "pids.max": "100\n",
        "cpu.max": "25000 100000\n",
        "cpu.stat": "usage_usec 1000000\nuser_usec 1\n",
    }.items():
        tmp_path.joinpath(name).write_text(text)
    started = crun.start_time(os.getpid())
    assert started
    monkeypatch.setattr(running, "find", lambda *_: running.First(os.getpid(), started, str(tmp_path)))
    return tmp_path


def sample(sample_ms: int, then: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """The verb's answer for the group."""
    args = {"id": "ws-00000000", "sample_ms": sample_ms}
    return stats.stats(cast(Podman, None), cast(Call, Still(then)), args)


def test_a_counted_workspace(group: Path) -> None:
    later = "usage_usec 1100000\n"
    found = sample(100, lambda: group.joinpath("cpu.stat").write_text(later))
    assert found["source"] == "cgroup"
    assert (found["memory_bytes"], found["memory_limit_bytes"], found["pids"]) == (2_000_000, 67_108_864, 42)
    assert found["cpu_usec"] == 1_100_000
    assert found["cpu_percent"] == pytest.approx(100_000 / (found["sampled_ms"] * 10), rel=0.02)
    assert [row["pid"] for row in found["processes"]] == [os.getpid()], "one that has gone is no error"


def counted(group: Path, usage_us: int) -> None:
    """The cgroup has used so much since its beginning."""
    group.joinpath("cpu.stat").write_text(f"usage_usec {usage_us}\n")


def test_whoever_asks_again_does_not_wait(group: Path) -> None:
    """The last sample serves as the first of the next call, while it is recent and its own."""
    sample(0)
    time.sleep(0.1)
    counted(group, 1_050_000)
    found = sample(50, lambda: counted(group, 9_000_000))
    assert found["sampled_ms"] >= 100
    assert found["cpu_percent"] == pytest.approx(50_000 / (found["sampled_ms"] * 10), rel=0.1)
    assert found["processes"][0]["cpu_percent"] < 200


def test_one_who_asks_too_soon_waits_for_the_rest(group: Path) -> None:
    sample(0)
    found = sample(300, lambda: counted(group, 1_150_000))
    assert found["sampled_ms"] >= 300
    assert found["cpu_percent"] == pytest.approx(150_000 / (found["sampled_ms"] * 10), rel=0.1)


def test_a_sample_of_long_ago_is_not_used(group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample(0)
    counted(group, 5_000_000)
    monkeypatch.setattr(stats, "KEPT_S", 0.0)
    assert sample(50)["cpu_percent"] == 0, "measured from now on"


def test_what_counts_otherwise_is_not_compared(group: Path) -> None:
    sample(0)
    group.joinpath("memory.current").unlink()  # from here on the sum over the processes
    assert sample(10)["cpu_percent"] < 1000


def test_few_samples_are_kept() -> None:
    """An agent stays small: neither many workspaces nor one of very many processes."""
    samples, stat = stats.Samples(), stats.ProcessStat(1, 0, 0, 0, 0, 1, 0)
    keys = [stats.Key(running.First(pid, 1, ""), "") for pid in range(40)]
    at = time.monotonic()
    for key in keys:
        samples.keep(key, stats.Sample(at, {}, 1))
    assert [key for key in keys if samples.find(key, 0)] == keys[-16:]
    samples.keep(keys[-1], stats.Sample(at, dict.fromkeys(range(501), stat), 1))
    assert samples.find(keys[-1], 0) is None
    samples.keep(keys[0], stats.Sample(at + 11, {}, 1))
    assert [key for key in keys if samples.find(key, 0)] == keys[:1], "the others are too old by then"


def test_who_asks_often_does_not_wait_either() -> None:
    """The last sample may be of just now: then the one before it serves."""
    samples, key = stats.Samples(), stats.Key(running.First(1, 1, ""), "")
    now = time.monotonic()
    for age_s in (8.0, 2.0, 0.0):
        samples.keep(key, stats.Sample(now - age_s, {}, round(age_s)))

    def found(age_s: float) -> int | None:
        sample = samples.find(key, age_s)
        return sample and sample.usage_us

    assert (found(0.0), found(1.0), found(5.0)) == (0, 2, 2), "of two, the older is the best there is"


def test_a_process_of_which_the_kernel_counts_ticks_is_measured_exactly(group: Path) -> None:
    """In a tenth of a second ten ticks pass: a tenth of a core would be one of them, or none."""

    def work() -> None:
        until = time.process_time() + 0.025
        while time.process_time() < until:
            pass

    group.joinpath("memory.current").unlink()
    found = sample(10, work)["processes"][0]
    before = sample(0)["cpu_usec"]
    work()
    assert sample(0)["cpu_usec"] - before >= 25_000
    assert found["pid"] == os.getpid()
    assert found["cpu_percent"] > 0


def test_a_counted_workspace_without_a_limit(group: Path) -> None:
    limits = ("cpu_limit", "memory_limit_bytes", "pids_limit")
    found = sample(0)
    assert [found[limit] for limit in limits] == [250, 67_108_864, 100]
    for name, text in (("memory.max", "max\n"), ("pids.max", "max\n"), ("cpu.max", "max 100000\n")):
        group.joinpath(name).write_text(text)
    found = sample(0)
    assert [found[limit] for limit in limits] == [None] * 3
    assert (found["cpu_percent"], found["sampled_ms"]) == (None, 0)
    group.joinpath("cpu.max").unlink()  # a manager that delegates memory and pids only
    assert sample(0)["cpu_limit"] is None


def test_a_group_that_nothing_counts(group: Path) -> None:
    group.joinpath("memory.current").unlink()
    found = sample(0)
    assert found["source"] == "proc"
    assert found["memory_bytes"] == found["processes"][0]["memory_bytes"] > 0
    assert found["pids"] >= 1


def test_the_group_of_another_runtime() -> None:
    name = "a" * 64
    assert running.own_group(f"/user.slice/libpod-{name}.scope/container", name) == (
        f"/sys/fs/cgroup/user.slice/libpod-{name}.scope"
    )
    assert running.own_group(f"/x/libpod-{name}", name) == f"/sys/fs/cgroup/x/libpod-{name}"
    assert running.own_group("/elsewhere", name) == ""
