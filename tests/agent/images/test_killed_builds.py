"""Whether a build program was killed, by its directory and its lock; the real program cleans up."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.images import killed_builds

NAME = "build-0000abcd"


@pytest.fixture
def podman(tmp_path: Path) -> Any:
    """A store without containers; nothing is asked of Podman itself."""
    (tmp_path / "own/locks").mkdir(parents=True)
    home = SimpleNamespace(
        own=str(tmp_path / "own"),
        builds=str(tmp_path / "builds"),
        podman_runtime=str(tmp_path / "run"),
        environment={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )
    process = object()
    return SimpleNamespace(
        home=home,
        service=SimpleNamespace(start=lambda: None, process=process),
        store=(process, str(tmp_path / "store"), "overlay"),
        scope=SimpleNamespace(wait=lambda: None),
    )


@pytest.fixture
def reply() -> Iterator[socket.socket]:
    """The agent's end of a reply path whose other end is open."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        yield theirs


def directory_of(podman: Any) -> Path:
    """The directory of a build that has begun."""
    directory = Path(podman.home.builds, NAME)
    (directory / "temporary-12").mkdir(parents=True)
    (directory / "temporary-12/image-id").write_text("")
    return directory


def test_what_a_killed_build_has_left_is_removed(podman: Any, reply: socket.socket) -> None:
    call = Call("r", "image.secrets", 120, reply)
    killed_builds.remove(podman, call)  # there is no directory of builds yet
    directory = directory_of(podman)
    killed_builds.remove(podman, call)
    assert not directory.exists() and not call.afterwards


def test_a_build_that_runs_is_left_alone(podman: Any, reply: socket.socket) -> None:
    directory = directory_of(podman)
    with open(f"{podman.home.own}/locks/{NAME}", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        killed_builds.remove(podman, Call("r", "image.secrets", 120, reply))
    assert directory.exists()


def test_what_takes_longer_than_the_call_fails_it_and_goes_on(
    podman: Any, reply: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(killed_builds, "_REPLY_S", 600)  # so that no time is left for the cleanup
    directory = directory_of(podman)
    call = Call("r", "image.secrets", 600, reply)
    with pytest.raises(Failure, match="still being removed") as failure:
        killed_builds.remove(podman, call)
    assert failure.value.code == "unavailable"
    for action in call.afterwards:
        action()
    assert not directory.exists()
