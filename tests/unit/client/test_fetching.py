"""Files fetched over the socket: whose socket it is, how much is held, what is no answer."""

from __future__ import annotations

import os
import socket
import tracemalloc
from typing import Any

import pytest
from fake_service import Service

from svc.client import fetching, transport
from svc.errors import BadAnswer, SvcError, Unreachable
from svc.limits import ANSWER_MAX

MIB = 1024 * 1024
PATH = "/api/file"


def fetched(most: int = MIB) -> bytes:
    with fetching.Fetched(PATH, most) as file:
        return b"".join(file.parts())


def test_what_is_fetched_arrives(service: Service) -> None:
    content = os.urandom(3 * transport.PIECE + 5)
    service.raw(
        f"GET {PATH}", b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-A: b\r\n\r\n" % len(content) + content
    )
    assert fetched() == content
    with fetching.Fetched(PATH, MIB) as file:
        assert (file.size, file.fields["x-a"]) == (len(content), "b")


def test_memory_stays_at_a_piece(service: Service) -> None:
    part = bytes(MIB)

    def give(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (32 * MIB))
        for _ in range(32):
            connection.sendall(part)

    service.raw(f"GET {PATH}", give)
    tracemalloc.start()
    with fetching.Fetched(PATH, 32 * MIB) as answer:
        assert sum(map(len, answer.parts())) == 32 * MIB
    assert tracemalloc.get_traced_memory()[1] < 8 * MIB
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (b"", Unreachable),
        (b"HTTP/1.1 200 OK\r\n", BadAnswer),
        (b"nonsense\r\n\r\n", BadAnswer),
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


def test_somebody_elses_socket_is_not_used(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same trust as for a short request: nothing is sent to a socket that is not root's or one's own."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it makes a socket somebody else's")
    os.chown(service.path, 12345, 12345)
    with pytest.raises(Unreachable, match="owned by root"):
        fetched()
    assert service.sent == []


def test_silence_ends(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "ANSWER_WAIT_S", 0.2)

    def silent(connection: socket.socket) -> Any:
        connection.recv(1)

    service.raw(f"GET {PATH}", silent)
    with pytest.raises(Unreachable, match="within"):
        fetched()


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + end


def test_a_file_of_any_length_may_come_in_chunks(service: Service) -> None:
    content = os.urandom(transport.PIECE + 5)
    service.raw(f"GET {PATH}", chunked(content, b"x", content))
    with fetching.Fetched(PATH, None) as file:
        assert (file.size, b"".join(file.parts())) == (None, content + b"x" + content)
    with pytest.raises(BadAnswer):
        fetched()


@pytest.mark.parametrize("end", [b"", b"5\r\n", b"5\r\nabc", b"5\r\nabcde\r\n", b"zz\r\n", b"-1\r\n"])
def test_chunks_that_break_off(service: Service, end: bytes) -> None:
    """Only the last chunk says that a file is whole; what breaks off says what to run again."""
    service.raw(f"GET {PATH}", chunked(b"abc", end=end))
    with (
        pytest.raises((BadAnswer, Unreachable)) as raised,
        fetching.Fetched(PATH, None, again="once more") as file,
    ):
        list(file.parts())
    assert raised.value.hint == "once more"


def test_what_goes_wrong_with_what_was_fetched_is_not_the_connection(service: Service) -> None:
    service.raw(f"GET {PATH}", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
    with pytest.raises(BrokenPipeError), fetching.Fetched(PATH, MIB) as file:
        assert list(file.parts()) == [b"x"]
        raise BrokenPipeError


def test_a_connection_that_breaks_says_what_to_run_again(service: Service) -> None:
    def die(connection: socket.socket) -> None:
        connection.shutdown(socket.SHUT_RDWR)

    service.raw(f"GET {PATH}", die)
    with pytest.raises(Unreachable) as raised, fetching.Fetched(PATH, None, again="once more"):
        pass
    assert raised.value.hint == "once more"


def test_an_answer_without_end_is_not_read_to_it(service: Service) -> None:
    def endless(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 404 NO\r\n\r\n")
        while True:
            connection.sendall(bytes(MIB))

    service.raw(f"GET {PATH}", endless)
    with pytest.raises(BadAnswer, match=str(ANSWER_MAX)):
        fetched()
