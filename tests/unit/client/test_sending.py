"""Files sent over the socket: whole or not at all, by the kernel, to the service's socket only."""

from __future__ import annotations

import errno
import io
import os
import select
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from fake_service import Service

from svc.client import sending
from svc.errors import BadAnswer, FileRefused, NotFound, Unreachable
from svc.limits import ANSWER_MAX

MIB = 1024 * 1024
PATH = "/api/file"


def local_file(content: bytes) -> io.FileIO:
    """An open file with this content, unbuffered."""
    file = io.FileIO(os.memfd_create("local"), "w+")
    file.write(content)
    file.seek(0)
    return file


def test_what_is_sent_arrives(service: Service) -> None:
    service.answer(f"POST {PATH}", {"ok": 1})
    content = os.urandom(3 * sending.PART + 5)
    assert sending.send(PATH, local_file(content), len(content), sending.TAR).json() == {"ok": 1}
    assert service.last.body == content
    assert service.last.fields["host"] == "localhost"


def test_no_more_is_sent_than_was_announced(service: Service) -> None:
    service.answer(f"POST {PATH}", {})
    sending.send(PATH, local_file(b"x" * 100), 10, sending.TAR)
    assert service.last.body == b"x" * 10
    with pytest.raises(FileRefused):
        sending.send(PATH, local_file(b"x" * 10), 100, sending.TAR)


def test_a_refusal_in_the_middle_of_sending_is_heard(service: Service) -> None:
    """The service answers and hangs up while most of the file is still to be sent."""

    def refuse(connection: socket.socket) -> None:
        body = b'{"error": {"code": "not_found", "message": "no"}}'
        connection.sendall(b"HTTP/1.1 404 NO\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    service.raw(f"POST {PATH}", refuse)
    service.reads_bodies = False
    answer = sending.send(PATH, local_file(bytes(64 * MIB)), 64 * MIB, sending.TAR)
    assert isinstance(answer.error(), NotFound)


def test_an_answer_without_end_is_not_read_to_it(service: Service) -> None:
    def endless(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(bytes(MIB))

    service.raw(f"POST {PATH}", endless)
    with pytest.raises(BadAnswer, match=str(ANSWER_MAX)):
        sending.send(PATH, local_file(b"x"), 1, sending.TAR)


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
        sending.send(PATH, file, None, sending.TAR, moved=received)
    assert (service.last.body, moved) == (b"firstsecond", [5, 6])


def test_input_that_does_not_block_is_waited_for(service: Service) -> None:
    """As standard input that is shared with a program which made it non-blocking."""
    service.answer(f"POST {PATH}", {})
    reading, writing = os.pipe()
    os.set_blocking(reading, False)

    def write_later() -> None:
        os.write(writing, b"late")
        os.close(writing)

    timer = threading.Timer(0.1, write_later)
    timer.start()
    with open(reading, "rb") as file:
        sending.send(PATH, file, None, sending.TAR)
    timer.join()
    assert service.last.body == b"late"


def test_nothing_to_send_has_a_length(service: Service) -> None:
    service.answer(f"PUT {PATH}", {})
    sending.send(PATH, local_file(b""), 0, sending.TAR, method="PUT")
    assert service.last.fields["content-length"] == "0"


def test_a_file_that_cannot_be_read_is_no_broken_connection(service: Service) -> None:
    service.answer(f"POST {PATH}", {})
    with open("/proc/self/mem", "rb", buffering=0) as file, pytest.raises(FileRefused, match="cannot read"):
        sending.send(PATH, file, 10, sending.TAR)


def test_a_local_file_is_sent_whole_or_not_at_all(service: Service, tmp_path: Path) -> None:
    """By the kernel, in pieces; one that ends too early is never passed off as whole."""
    service.answer(f"PUT {PATH}", {})
    local, moved = tmp_path / "local", list[int]()
    local.write_bytes(os.urandom(9 * MIB))
    with open(local, "rb", buffering=0) as file:
        sending.send(PATH, file, 9 * MIB, sending.TAR, method="PUT", moved=moved.append)
        assert (service.last.body == local.read_bytes(), sum(moved)) == (True, 9 * MIB)
        with pytest.raises(FileRefused, match="was truncated"):
            sending.send(PATH, file, 9 * MIB + 1, sending.TAR, method="PUT")


def test_a_file_system_without_sendfile(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> int:
        raise OSError(errno.EINVAL, "not here")

    service.answer(f"POST {PATH}", {})
    monkeypatch.setattr(os, "sendfile", refused)
    content = os.urandom(2 * sending.PART + 5)
    sending.send(PATH, local_file(content + b"more"), len(content), sending.TAR)
    assert service.last.body == content


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (b"", Unreachable),
        (b"HTTP/1.1 200 OK\r\n", BadAnswer),
        (b"nonsense\r\n\r\n", BadAnswer),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nxx", BadAnswer),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", BadAnswer),
    ],
)
def test_an_answer_that_is_none(service: Service, reply: bytes, error: type[Exception]) -> None:
    service.raw(f"POST {PATH}", reply)
    with pytest.raises(error) as raised:
        sending.send(PATH, local_file(b"x"), 1, sending.TAR, again="once more")
    assert getattr(raised.value, "hint", "") == "once more"
    assert len(service.sent) == 1


def test_a_service_that_stops_reading(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sends wait in the kernel, and not for ever; so does the answer."""

    def hold(connection: socket.socket) -> None:
        poll = select.poll()
        poll.register(connection, select.POLLRDHUP)
        poll.poll(20_000)

    monkeypatch.setattr(sending, "ANSWER_WAIT_S", 0.2)
    service.reads_bodies = False
    service.raw(f"POST {PATH}", hold)
    for size in (1, 64 * MIB):
        with pytest.raises(Unreachable, match="within"):
            sending.send(PATH, local_file(bytes(size)), size, sending.TAR)


def test_a_connection_that_breaks_says_what_to_run_again(service: Service) -> None:
    service.raw(f"POST {PATH}", lambda connection: connection.shutdown(socket.SHUT_RDWR))
    with pytest.raises(Unreachable) as raised:
        sending.send(PATH, local_file(b"x"), 1, sending.TAR, again="once more")
    assert raised.value.hint == "once more"


def test_somebody_elses_socket_is_not_used(service: Service) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: it makes a socket somebody else's")
    os.chown(service.path, 12345, 12345)
    with pytest.raises(Unreachable, match="owned by root"):
        sending.send(PATH, local_file(b"x"), 1, sending.TAR)
    assert service.sent == []
