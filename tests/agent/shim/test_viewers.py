"""Viewers that are slow, silent or many: none delays the command or another one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent.shim.staging import Stage

from svc_helper.agent.calls import Failure
from svc_helper.shim.terminal import VIEWERS_MAX


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    created = Stage(tmp_path)
    yield created
    created.close()


def test_a_viewer_that_never_reads_delays_nobody(stage: Stage) -> None:
    script = "echo ready; read x; i=0; while [ $i -lt 70000 ]; do echo number $i; i=$((i+1)); done"
    script += "; echo all; read y"
    silent = stage.open("sh", "-c", script)
    quick = stage.attach()
    stage.until(lambda: b"ready" in quick.output, quick)
    quick.type("\n")
    stage.until(lambda: b"all\r\n" in quick.output, quick)
    assert quick.output.count(b"number") == 70000 and not quick.skipped
    stage.until(lambda: b"all\r\n" in silent.output, silent)
    assert silent.skipped and sum(silent.skipped) + len(silent.output) <= len(quick.output) + 100


def test_a_slow_reader_alone_loses_nothing(stage: Stage) -> None:
    script = "i=0; while [ $i -lt 70000 ]; do echo number $i; i=$((i+1)); done; echo all; read y"
    viewer = stage.open("sh", "-c", script)
    end = time.monotonic() + 60
    while b"all\r\n" not in viewer.output:
        assert time.monotonic() < end
        stage.loop.turn(0.001)
        viewer.take()  # one frame in a turn
    assert viewer.output.count(b"number") == 70000 and not viewer.skipped


def test_without_readers_the_shell_goes_on(stage: Stage) -> None:
    script = "i=0; while [ $i -lt 20000 ]; do echo number $i; i=$((i+1)); done; touch $0; read y"
    stage.open("sh", "-c", script, str(stage.directory / "done"))  # attached, and never reads
    stage.until(lambda: (stage.directory / "done").exists(), seconds=60)


def test_thousands_of_attaches_leave_nothing(stage: Stage) -> None:
    viewer = stage.open("sh", "-c", "head -c 20000 /dev/zero | tr '\\0' x; read y")
    stage.until(lambda: viewer.output.count(b"x") == 20000, viewer)
    before = len(os.listdir("/proc/self/fd"))
    for number in range(3000):
        other = stage.attach()
        if number % 2:
            other.take()
        other.close()
        stage.viewers.remove(other)
        stage.until(lambda: stage.terminal.row()["viewers"] == 1)
    assert len(os.listdir("/proc/self/fd")) <= before
    for _ in range(VIEWERS_MAX - 1):
        stage.attach()
    with pytest.raises(Failure, match="viewers"):
        stage.attach()
