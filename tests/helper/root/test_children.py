"""The helper's children: nothing of the helper's in them, and an end to the late ones."""

from __future__ import annotations

import errno
import os
import select
import signal
import threading
import time
from pathlib import Path

import pytest
from helper.stage import traced

from svc_helper.root.children import Children
from svc_helper.root.log import LimitedLog


def test_a_check_that_hangs_is_killed() -> None:
    poll = select.poll()
    children = Children(poll, LimitedLog())
    ended: list[int] = []
    children.fork(lambda: time.sleep(30), ended.append, source="ada", deadline_s=1)
    pid = next(iter(children.running.values())).pid
    deadline = children.next_deadline()
    assert deadline is not None
    time.sleep(max(0, deadline - time.monotonic()))
    children.kill_late()
    (pidfd, _), *_ = poll.poll(2000)
    children.reap(pidfd)
    assert ended and ended[0] != 0  # killed, or ended by its own alarm of the same second
    assert not os.path.exists(f"/proc/{pid}")
    assert children.next_deadline() is None


def test_a_child_holds_none_of_the_helpers_descriptors(tmp_path: Path) -> None:
    poll = select.poll()
    children = Children(poll, LimitedLog())
    secret = os.open("/etc/shadow", os.O_RDONLY)
    said, keep = os.pipe()
    children.fork(
        lambda: os.write(keep, " ".join(os.listdir("/proc/self/fd")).encode()) and None,
        print,
        source="ada",
        keep=[keep],
    )
    (pidfd, _), *_ = poll.poll(2000)
    children.reap(pidfd)
    held = {int(fd) for fd in os.read(said, 4096).split()}
    assert keep in held
    assert secret not in held
    assert len(held - {0, 1, 2, keep}) == 1  # the directory that it looked in
    for fd in (secret, said, keep):
        os.close(fd)


def test_a_child_that_cannot_be_watched_is_not_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more(pid: int) -> int:
        raise OSError(errno.EMFILE, f"no descriptor for {pid}")

    monkeypatch.setattr(os, "pidfd_open", no_more)
    children = Children(select.poll(), LimitedLog())
    with pytest.raises(OSError, match="no descriptor"):
        children.fork(lambda: time.sleep(30), print, source="ada")
    (child,) = children.held
    reap_all(children)
    with pytest.raises(ChildProcessError):
        os.waitpid(child.pid, os.WNOHANG)
    assert not children.running


def reap_all(children: Children) -> None:
    """Reap as the helper's loop does, until no child is held."""
    until = time.monotonic() + 20
    while children.held:
        assert time.monotonic() < until, "a child was not reaped"
        children.reap_held()
        time.sleep(0.01)


def test_a_child_that_its_tracer_holds_is_not_waited_for() -> None:
    """The end of a traced child reaches its parent only when the tracer has taken note of it."""
    poll = select.poll()
    children = Children(poll, LimitedLog())
    ended: list[int] = []
    children.fork(lambda: time.sleep(600), ended.append, source="ada")
    pid = next(iter(children.running.values())).pid
    with traced(pid) as tracer:
        os.kill(pid, signal.SIGKILL)
        (pidfd, _), *_ = poll.poll(20_000)
        lets_go = threading.Timer(20, tracer.kill)  # so that a wait, which must not be, has an end
        lets_go.start()
        children.reap(pidfd)
        lets_go.cancel()
        assert ended == []
        assert [child.pid for child in children.held] == [pid]
        assert children.next_deadline() is not None  # the loop looks again
        assert poll.poll(0) == []  # and does not spin meanwhile
    reap_all(children)
    assert ended == [-signal.SIGKILL]
    assert children.next_deadline() is None


def test_children_that_fail_without_end_do_not_fill_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    poll, limited = select.poll(), LimitedLog()
    children = Children(poll, limited)

    def fail() -> None:
        raise OSError("no home")

    for _ in range(40):
        children.fork(fail, lambda code: limited.log("ada", "agent ended", exit=code), source="ada")
        (pidfd, _), *_ = poll.poll(2000)
        children.reap(pidfd)
    lines = capfd.readouterr().err.splitlines()
    assert sum("no home" in line for line in lines) == sum("agent ended" in line for line in lines) == 10
    assert limited.omitted == {"ada": 30}
