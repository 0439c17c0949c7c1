"""A terminal around a real command: typing, sizes, titles, and its end."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent.shim.staging import Stage

from svc_helper.shim import terminal as shim_terminal
from svc_helper.wire import terminal_frames as frames


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    created = Stage(tmp_path)
    yield created
    created.close()


def test_a_shell_from_its_first_byte_to_its_exit_code(stage: Stage) -> None:
    viewer = stage.open("sh", "-c", "echo ready; read x; stty size; echo got $x; exit 9")
    stage.until(lambda: b"ready" in viewer.output, viewer)
    viewer.type("this\n")
    stage.until(lambda: viewer.closed, viewer)
    assert b"24 80\r\ngot this" in viewer.output and viewer.ended == {"reason": "exited", "exit_code": 9}
    late = stage.attach()
    stage.until(lambda: late.closed, late)
    assert late.output == viewer.output and late.ended == viewer.ended
    assert not (stage.directory / "console").exists()


def test_typing_more_than_the_shell_takes_waits(stage: Stage) -> None:
    viewer = stage.open("sh", "-c", "stty raw -echo; echo ready; sleep 1; exec wc -c")
    stage.until(lambda: b"ready" in viewer.output, viewer)
    sent, block = 0, frames.INPUT + b"x" * 1000
    viewer.sock.setblocking(False)
    end = time.monotonic() + 30
    while sent < 400_000:
        assert time.monotonic() < end
        try:
            viewer.sock.send(block)
            sent += 1000
        except BlockingIOError:
            stage.loop.turn(0.01)
    assert len(stage.terminal._master._typed) <= 64 * 1024 + frames.DATA_MAX
    stage.until(lambda: not stage.terminal._master._typed, viewer)


def test_viewers_that_type_and_go_fill_nothing(stage: Stage) -> None:
    """A command that reads nothing, and one viewer after the other that leaves it its last words."""
    viewer = stage.open("sh", "-c", "stty raw -echo; echo ready; exec sleep 60")
    stage.until(lambda: b"ready" in viewer.output, viewer)
    for _ in range(40):
        other = stage.attach()
        stage.until(lambda: b"ready" in other.output, other)  # noqa: B023  called at once
        other.sock.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                other.sock.send(frames.INPUT + b"x" * 8000)
        other.close()
        stage.viewers.remove(other)
        stage.until(lambda: stage.terminal.row()["viewers"] == 1)
    assert len(stage.terminal._master._typed) <= 64 * 1024 + frames.DATA_MAX


def test_a_flood_of_sizes_and_of_titles(stage: Stage) -> None:
    viewer = stage.open(
        "sh",
        "-c",
        r"stty -echo; i=0; while [ $i -lt 3000 ]; do printf '\033]2;%s\007' $i; i=$((i+1)); done; cat",
    )
    for number in range(3000):
        viewer.resize(1 + number % 1000, 1 + number % 999)
        stage.loop.turn(0)
        while viewer.take():
            pass
    viewer.type("done\n")
    stage.until(lambda: b"done" in viewer.output and viewer.states[-1]["title"] == "2999", viewer)
    assert viewer.states[-1] == {"title": "2999", "cols": 1000, "rows": 3}
    assert stage.terminal.row()["cols"] == 1000


def test_binary_rubbish_comes_through(stage: Stage) -> None:
    viewer = stage.open("sh", "-c", "stty raw -echo; head -c 300000 /dev/urandom; echo; echo the end; read y")
    stage.until(lambda: b"the end" in viewer.output, viewer)
    assert len(viewer.output) >= 300_000 and not viewer.skipped
    assert len(stage.terminal.row()["title"]) <= 256


def test_closing_hangs_up_then_kills(stage: Stage) -> None:
    viewer = stage.open("sh", "-c", "trap '' HUP; echo ready; while true; do sleep 0.1; done")
    stage.until(lambda: b"ready" in viewer.output, viewer)
    began = time.monotonic()
    stage.terminal.close("closed")
    stage.until(lambda: viewer.closed, viewer)
    assert viewer.ended == {"reason": "closed", "exit_code": 128 + signal.SIGKILL}
    assert time.monotonic() - began >= shim_terminal._KILL_S


def test_a_command_that_gives_its_terminal_up_and_runs_on(stage: Stage) -> None:
    go = stage.directory / "go"
    viewer = stage.open(
        "sh",
        "-c",
        "echo ready; exec </dev/null >/dev/null 2>&1; while [ ! -e $0 ]; do sleep 0.1; done; exit 4",
        str(go),
    )
    stage.until(lambda: b"ready" in viewer.output, viewer)
    stage.until(lambda: stage.terminal._master._paused is not None, viewer)
    go.touch()
    stage.until(lambda: viewer.closed, viewer)
    assert viewer.ended == {"reason": "exited", "exit_code": 4}
