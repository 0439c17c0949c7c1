"""The compressor's process: its output is gzip's, and it ends in every way with the call."""

from __future__ import annotations

import errno
import gzip
import os
import select
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.files import compressor
from svc_helper.agent.files.compressor import Compressor


@pytest.fixture
def call() -> Iterator[Call]:
    """A call whose caller is there."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        yield Call("rid", "fs.archive", 60, theirs)


@pytest.fixture(params=["igzip", "pigz", "gzip"])
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the programs."""
    path = f"/usr/bin/{request.param}"
    if not os.access(path, os.X_OK):
        pytest.skip(f"needs {request.param}")
    monkeypatch.setattr(compressor, "PROGRAMS", ("/nowhere/x", path))


def started() -> tuple[Compressor, int]:
    """A compressor that writes into a data stream, and the app's end of the stream."""
    near_end, far_end = (end.detach() for end in socket.socketpair())
    os.set_blocking(near_end, False)
    try:
        return Compressor(far_end), near_end
    except (Failure, OSError):
        os.close(near_end)
        os.close(far_end)
        raise


def ended(created: Compressor, reads: int) -> None:
    """Close both ends of the data stream, and the compressor."""
    created.close()
    for fd in (reads, created._output):
        with suppress(OSError):  # closed by the test
            os.close(fd)


def everything(created: Compressor, reads: int) -> bytes:
    """What comes out, to the end."""
    os.close(created._output)
    created._output = -1
    content = bytearray()
    poller = select.poll()
    poller.register(reads, select.POLLIN)
    while poller.poll(60_000):
        part = os.read(reads, 1 << 20)
        if not part:
            return bytes(content)
        content += part
    raise TimeoutError


def test_what_goes_in_comes_out(call: Call, program: None) -> None:
    created, reads = started()
    os.write(created.pipe, b"content")
    os.close(created.pipe)
    created.pipe = -1
    assert gzip.decompress(everything(created, reads)) == b"content"
    ended(created, reads)


def test_its_end_is_waited_for(call: Call, program: None) -> None:
    created, reads = started()
    os.write(created.pipe, b"content")
    created.finish(call)
    assert gzip.decompress(everything(created, reads)) == b"content"
    ended(created, reads)


def test_a_full_pipe_is_not_waited_for(call: Call, program: None) -> None:
    created, reads = started()
    with pytest.raises(BlockingIOError):
        while True:
            os.write(created.pipe, os.urandom(1 << 16))
    created.close()
    everything(created, reads)
    ended(created, reads)


def test_when_nobody_reads(call: Call, program: None) -> None:
    created, reads = started()
    os.close(reads)
    with pytest.raises(BrokenPipeError):
        while True:
            call.wait({created.pipe: select.POLLOUT})
            try:
                os.write(created.pipe, os.urandom(1 << 16))
            except BlockingIOError:
                continue
    assert created.failure(call).code == "cancelled"
    ended(created, reads)


def test_one_that_is_killed(call: Call, program: None, capfd: pytest.CaptureFixture[str]) -> None:
    created, reads = started()
    os.kill(created._process.pid, 9)
    with pytest.raises(Failure) as caught:
        created.finish(call)
    assert caught.value.code == "failed"
    assert '"status": -9' in capfd.readouterr().err
    ended(created, reads)


def test_a_host_without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressor, "PROGRAMS", ("/nowhere/x",))
    with pytest.raises(Failure, match="none of igzip, pigz and gzip"):
        started()


def test_one_that_cannot_be_waited_for_is_not_left(monkeypatch: pytest.MonkeyPatch) -> None:
    pids: list[int] = []

    def fails(pid: int) -> None:
        pids.append(pid)
        raise OSError(errno.EMFILE, "too many open files")

    monkeypatch.setattr(compressor, "Process", fails)
    with pytest.raises(OSError, match="too many"):
        started()
    with pytest.raises(ChildProcessError):
        os.waitpid(pids[0], os.WNOHANG)
