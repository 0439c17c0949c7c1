"""Files over the socket: whose socket it is, what is refused midway, how much is held."""

from __future__ import annotations

import io
import os
import socket
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from fake_service import Service

from svc.cli import streams
from svc.errors import BadAnswer, FileRefused, NotFound, SvcError, Unreachable
from svc.limits import ANSWER_MAX

MIB = 1024 * 1024
PATH = "/api/file"
TAR = "application/x-tar"


def local_file(content: bytes) -> io.FileIO:
    """An open file with this content, unbuffered."""
    file = io.FileIO(os.memfd_create("local"), "w+")
    file.write(content)
    file.seek(0)
    return file


def fetched(most: int = MIB) -> bytes:
    with streams.fetch(PATH, most) as file:
        return b"".join(file.parts())


def test_what_is_sent_arrives(service: Service) -> None:
    service.answer(f"POST {PATH}", {"ok": 1})
    content = os.urandom(3 * streams.PART + 5)
    assert streams.send(PATH, local_file(content), len(content), TAR).json() == {"ok": 1}
    assert service.last.body == content
    assert service.last.fields["host"] == "localhost"


def test_what_is_fetched_arrives(service: Service) -> None:
    content = os.urandom(3 * streams.PART + 5)
    service.raw(
        f"GET {PATH}", b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-A: b\r\n\r\n" % len(content) + content
    )
    assert fetched() == content
    with streams.fetch(PATH, MIB) as file:
        assert (file.size, file.fields["x-a"]) == (len(content), "b")


def test_no_more_is_sent_than_was_announced(service: Service) -> None:
    service.answer(f"POST {PATH}", {})
    streams.send(PATH, local_file(b"x" * 100), 10, TAR)
    assert service.last.body == b"x" * 10
    with pytest.raises(FileRefused):
        streams.send(PATH, local_file(b"x" * 10), 100, TAR)


def test_a_refusal_in_the_middle_of_sending_is_heard(service: Service) -> None:
    """The service answers and hangs up while most of the file is still to be sent."""

    def refuse(connection: socket.socket) -> None:
        body = b'{"error": {"code": "not_found", "message": "no"}}'
        connection.sendall(b"HTTP/1.1 404 NO\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    service.raw(f"POST {PATH}", refuse)
    service.reads_bodies = False
    answer = streams.send(PATH, local_file(bytes(64 * MIB)), 64 * MIB, TAR)
    assert isinstance(answer.error(), NotFound)


def test_memory_stays_at_a_piece(service: Service) -> None:
    part = bytes(MIB)

    def give(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (32 * MIB))
        for _ in range(32):
            connection.sendall(part)

    service.raw(f"GET {PATH}", give)
    tracemalloc.start()
    with streams.fetch(PATH, 32 * MIB) as answer:
        assert sum(map(len, answer.parts())) == 32 * MIB
    assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (b"", Unreachable),
        (b"HTTP/1.1 200 OK\r\n", BadAnswer),
        (b"nonsense\r\n\r\n", Unreachable),
        (b"HTTP/1.1 200 OK\r\n\r\nxx", BadAnswer),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nxx", BadAnswer),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\nxx", BadAnswer),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", BadAnswer),
        (b"HTTP/1.1 302 GO\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n", SvcError),
    ],
)
def test_an_answer_that_is_none(service: Service, reply: bytes, error: type[SvcError]) -> None:
    service.raw(f"GET {PATH}", reply)
    with pytest.raises(error):
        fetched()
    assert len(service.sent) == 1  # no redirect leads anywhere


def test_an_answer_without_end_is_not_read_to_it(service: Service) -> None:
    def endless(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(bytes(MIB))

    service.raw(f"POST {PATH}", endless)
    with pytest.raises(BadAnswer, match=str(ANSWER_MAX)):
        streams.send(PATH, local_file(b"x"), 1, TAR)


def test_neither_proxy_nor_environment_leads_elsewhere(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.answer(f"POST {PATH}", {})
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://192.0.2.1:9")
    assert streams.send(PATH, local_file(b"x"), 1, TAR).ok


def test_somebody_elses_socket_is_not_used(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same trust as for a short request: nothing is sent to a socket that is not root's or one's own."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it makes a socket somebody else's")
    os.chown(service.path, 12345, 12345)
    for ask in (fetched, lambda: streams.send(PATH, local_file(b"x"), 1, TAR)):
        with pytest.raises(Unreachable, match="owned by root"):
            ask()  # type: ignore[operator]  # both take nothing
    assert service.sent == []


def test_silence_ends(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "ANSWER_WAIT_S", 0.2)

    def silent(connection: socket.socket) -> Any:
        connection.recv(1)

    service.raw(f"GET {PATH}", silent)
    with pytest.raises(Unreachable, match="within"):
        fetched()


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + end


def test_a_file_of_any_length_may_come_in_chunks(service: Service) -> None:
    content = os.urandom(streams.PART + 5)
    service.raw(f"GET {PATH}", chunked(content, b"x", content))
    with streams.fetch(PATH, None) as file:
        assert (file.size, b"".join(file.parts())) == (None, content + b"x" + content)
    with pytest.raises(BadAnswer):
        fetched()


@pytest.mark.parametrize("end", [b"", b"5\r\n", b"5\r\nabc", b"5\r\nabcde\r\n", b"zz\r\n", b"-1\r\n"])
def test_chunks_that_break_off(service: Service, end: bytes) -> None:
    """Only the last chunk says that a file is whole; what breaks off says what to run again."""
    service.raw(f"GET {PATH}", chunked(b"abc", end=end))
    with (
        pytest.raises((BadAnswer, Unreachable)) as raised,
        streams.fetch(PATH, None, again="once more") as file,
    ):
        list(file.parts())
    assert raised.value.hint == "once more"


def test_what_has_no_length_goes_out_as_it_comes(service: Service) -> None:
    """A piece is sent when it is there, not when a buffer is full of it."""
    service.answer(f"POST {PATH}", {})
    reading, writing = os.pipe()
    moved: list[int] = []

    def received(count: int) -> None:
        moved.append(count)
        if len(moved) == 1:
            os.write(writing, b"second")
            os.close(writing)

    os.write(writing, b"first")
    with open(reading, "rb") as file:
        streams.send(PATH, file, None, TAR, moved=received)
    assert (service.last.body, moved) == (b"firstsecond", [5, 6])


def test_nothing_to_send_has_a_length(service: Service) -> None:
    service.answer(f"PUT {PATH}", {})
    streams.send(PATH, local_file(b""), 0, TAR, method="PUT")
    assert service.last.fields["content-length"] == "0"


def test_a_file_that_cannot_be_read_is_no_broken_connection(service: Service) -> None:
    service.answer(f"POST {PATH}", {})
    with open("/proc/self/mem", "rb", buffering=0) as file, pytest.raises(FileRefused, match="cannot read"):
        streams.send(PATH, file, 10, TAR)


def test_a_local_file_is_sent_whole_or_not_at_all(service: Service, tmp_path: Path) -> None:
    """By the kernel, in pieces; one that ends too early is never passed off as whole."""
    service.answer(f"PUT {PATH}", {})
    local, moved = tmp_path / "local", list[int]()
    local.write_bytes(os.urandom(9 * MIB))
    with open(local, "rb", buffering=0) as file:
        streams.send(PATH, file, 9 * MIB, TAR, method="PUT", moved=moved.append)
        assert (service.last.body == local.read_bytes(), sum(moved)) == (True, 9 * MIB)
        with pytest.raises(FileRefused, match="was truncated"):
            streams.send(PATH, file, 9 * MIB + 1, TAR, method="PUT")


def test_what_goes_wrong_with_what_was_fetched_is_not_the_connection(service: Service) -> None:
    service.raw(f"GET {PATH}", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
    with pytest.raises(BrokenPipeError), streams.fetch(PATH, MIB) as file:
        assert list(file.parts()) == [b"x"]
        raise BrokenPipeError


def test_a_connection_that_breaks_says_what_to_run_again(service: Service) -> None:
    def die(connection: socket.socket) -> None:
        connection.shutdown(socket.SHUT_RDWR)

    for method in ("GET", "POST"):
        service.raw(f"{method} {PATH}", die)
    with pytest.raises(Unreachable) as raised, streams.fetch(PATH, None, again="once more"):
        pass
    assert raised.value.hint == "once more"
    with pytest.raises(Unreachable) as raised:
        streams.send(PATH, local_file(b"x"), 1, TAR, again="once more")
    assert raised.value.hint == "once more"
