"""The file that comes with a call, and an agent that waits for a build: with a Podman that does nothing."""

from __future__ import annotations

import fcntl
import io
import os
import socket
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent.podman.test_service import IMAGE_ID, LIBPOD, Stage
from agent.priv_ns import Answer, Pending

from svc_helper.agent.images import builder
from svc_helper.wire import protocol

REF = "localhost/svc/tpl-x:0123456789abcdef"
ARGS: dict[str, Any] = {"image": REF, "bases": [], "triggers": True}
Send = Callable[[socket.socket], None]


def sources() -> bytes:
    """The least that can be built."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        member = tarfile.TarInfo("Dockerfile")
        member.size = 7
        tar.addfile(member, io.BytesIO(b"FROM x\n"))
    return written.getvalue()


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    """A stage whose Podman has the image, whatever was built; ends when idle for a fifth of a second."""
    created = Stage(tmp_path, monkeypatch, idle_s=0.2)
    info = {"store": {"graphRoot": str(tmp_path / "store"), "graphDriverName": "overlay"}}
    created.answer(
        {
            f"GET {LIBPOD}/info": {"status": 200, "json": info},
            f"GET {LIBPOD}/images/{REF}/json": {
                "status": 200,
                "json": {"Id": IMAGE_ID, "Digest": "sha256:x", "Size": 5},
            },
        }
    )
    return created


def ask(stage: Stage, send: Send) -> Answer:
    """A build whose reply path has first what `send` puts there."""
    agent = stage.begin()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        send(ours)
        message = {"verb": "image.build", "args": ARGS, "rid": "r", "timeout_s": 20}
        protocol.send(agent.channel, message, [theirs.fileno()])
    answer = Pending(ours).answer(15)
    stage.end()
    return answer


def giving(message: dict[str, Any], count: int, make: Callable[[], int]) -> Send:
    """Sends a message with so many descriptors."""

    def send(sock: socket.socket) -> None:
        fds = [make() for _ in range(count)]
        protocol.send(sock, message, fds)
        protocol.close_all(fds)

    return send


def file() -> int:
    """A file that can be built from."""
    fd = os.memfd_create("sources")
    os.write(fd, sources())
    return fd


def pipe() -> int:
    """A descriptor that nobody may wait for."""
    reads, writes = os.pipe()
    os.close(writes)
    return reads


VALUE = {"input": True}


@pytest.mark.parametrize(
    "send",
    [
        lambda sock: None,
        lambda sock: sock.send(b"{"),
        lambda sock: sock.send(b""),
        giving(VALUE, 0, file),
        giving(VALUE, 2, file),
        giving(VALUE, 4, file),
        giving({"input": False}, 1, file),
        giving({"input": 1, "x": 2}, 1, file),
        giving({"cancel": True}, 1, file),
        giving(VALUE, 1, pipe),
        giving(VALUE, 1, lambda: os.open("/", os.O_RDONLY)),
        giving(VALUE, 1, lambda: os.open("/dev/zero", os.O_RDONLY)),
        giving(VALUE, 1, lambda: os.open("/tmp", os.O_PATH)),
    ],
)
def test_no_file_came(stage: Stage, send: Send) -> None:
    assert ask(stage, send).code in ("protocol", "failed")
    assert not any(line.startswith("build") for line in stage.lines("commands"))


def test_a_file_came(stage: Stage) -> None:
    """It is read from its beginning, wherever the sender's place in it is."""
    assert ask(stage, giving(VALUE, 1, file)).data["image_id"] == IMAGE_ID
    (command,) = [line for line in stage.lines("commands") if line.startswith("build")]
    arguments = command.split()
    home = stage.home.home
    assert arguments[:2] == ["build", "--pull=never"] and f"--tag={REF}" in arguments
    assert not os.listdir(f"{home}/.cache/svc/builds")


def test_an_agent_that_serves_a_build_does_not_end(stage: Stage) -> None:
    """Five times its idle time, and its caller has gone."""
    name = builder.lock_name(REF)
    with open(f"{stage.home.own}/locks/{name}", "wb") as lock, tempfile.TemporaryFile() as value:
        fcntl.flock(lock, fcntl.LOCK_EX)
        agent = stage.begin()
        value.write(sources())
        value.flush()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            protocol.send(ours, VALUE, [value.fileno()])
            message = {"verb": "image.build", "args": ARGS, "rid": "r", "timeout_s": 20}
            protocol.send(agent.channel, message, [theirs.fileno()])
            theirs.close()
            assert "waiting" in protocol.receive(ours).message["progress"]["text"]
        time.sleep(1)
        assert stage.thread.is_alive() and not agent.call("ctr.list").message["ok"]
        fcntl.flock(lock, fcntl.LOCK_UN)
        stage.thread.join(10)
    assert not stage.thread.is_alive() and any(line.startswith("build") for line in stage.lines("commands"))
    stage.end()
