"""Hostile, broken and slow answers; whose socket is trusted."""

from __future__ import annotations

import os
import socket
import threading
import time
from pathlib import Path

import pytest
from fake_service import Service

from svc.client import transport
from svc.errors import AccountMissing, BadAnswer, NotFound, SvcError, Unreachable
from svc.limits import ANSWER_MAX

GET = "GET /api/version"
HEAD = b"HTTP/1.1 200 OK\r\n"


def get(wait_s: float = 5) -> transport.Answer:
    return transport.request("GET", "/api/version", wait_s=wait_s)


def test_an_answer_of_known_length(service: Service) -> None:
    service.answer(GET, {"version": "1"})
    answer = get()
    assert (answer.status, answer.ok, answer.json()) == (200, True, {"version": "1"})
    assert service.last.fields == {"host": "localhost", "accept": "application/json", "connection": "close"}


def test_an_answer_in_chunks(service: Service) -> None:
    service.raw(
        GET, HEAD + b'Transfer-Encoding: chunked\r\n\r\n4;x=y\r\n{"a"\r\n3\r\n: 1\r\n1\r\n}\r\n0\r\n\r\n'
    )
    assert get().json() == {"a": 1}


def test_an_answer_that_ends_with_the_connection(service: Service) -> None:
    service.raw(GET, HEAD.replace(b"1.1", b"1.0") + b'\r\n{"a": 1}')
    assert get().json() == {"a": 1}


def test_an_answer_that_comes_byte_by_byte(service: Service) -> None:
    def drip(connection: socket.socket) -> None:
        for byte in HEAD + b'Content-Length: 8\r\n\r\n{"a": 1}':
            connection.sendall(bytes([byte]))

    service.raw(GET, drip)
    assert get().json() == {"a": 1}


def test_no_content(service: Service) -> None:
    service.answer(GET, None, status=204)
    assert get().body == b""


def test_a_server_that_keeps_the_connection_open_is_not_waited_for(service: Service) -> None:
    service.raw(
        GET,
        lambda connection: (connection.sendall(HEAD + b"Content-Length: 2\r\n\r\n{}"), time.sleep(0.4))[1],
    )
    before = time.monotonic()
    assert get().json() == {}
    assert time.monotonic() - before < 0.3


def test_a_body_is_announced_and_sent(service: Service) -> None:
    service.answer("POST /api/x", {})
    transport.request("POST", "/api/x", b'{"a": 1}', via="api")
    assert service.last.body == b'{"a": 1}'
    assert service.last.fields["x-svc-via"] == "api"
    assert service.last.fields["content-type"] == "application/json"


def test_a_refusal_before_the_body_was_read_is_heard(tmp_path: Path) -> None:
    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(b"HTTP/1.1 413 NO\r\nContent-Length: 0\r\n\r\n")

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "svc.sock"))
        listener.listen()
        thread = threading.Thread(target=serve)
        thread.start()
        assert transport.request("POST", "/api/x", b"x" * 2**22, wait_s=5).status == 413
        thread.join()


@pytest.mark.parametrize(
    "reply",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"\x1b[2J\x1b]0;owned\x07\r\n\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n{}",
        HEAD + b"Content-Length: 1e3\r\n\r\n{}",
        HEAD + b"Content-Length: 9999999999999999999999\r\n\r\n{}",
        HEAD + f"Content-Length: {ANSWER_MAX + 1}\r\n\r\n{{}}".encode(),
        HEAD + b"Content-Length: 10\r\n\r\n{}",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nffffffffffff\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
        HEAD + b"X: " + b"x" * 2**17,
        HEAD + b"X: y",
    ],
)
def test_what_is_no_answer_is_refused(service: Service, reply: bytes) -> None:
    service.raw(GET, reply)
    with pytest.raises(BadAnswer):
        get()


def test_endless_header_fields_end(service: Service) -> None:
    def endless(connection: socket.socket) -> None:
        connection.sendall(HEAD)
        while True:
            connection.sendall(b"X: y\r\n" * 10000)

    service.raw(GET, endless)
    with pytest.raises(BadAnswer):
        get()


def test_an_endless_body_ends(service: Service) -> None:
    def endless(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"\r\n")
        while True:
            connection.sendall(b"x" * 2**20)

    service.raw(GET, endless)
    with pytest.raises(BadAnswer, match="larger"):
        get(wait_s=20)


def test_silence_ends(service: Service) -> None:
    service.raw(GET, lambda connection: time.sleep(0.6))
    with pytest.raises(Unreachable, match="within"):
        get(wait_s=0.3)


def test_a_drip_does_not_prolong_the_wait(service: Service) -> None:
    def drip(connection: socket.socket) -> None:
        for _ in range(20):
            connection.sendall(b"X")
            time.sleep(0.05)

    service.raw(GET, drip)
    with pytest.raises(Unreachable, match="within"):
        get(wait_s=0.3)


@pytest.mark.parametrize("reply", [b"", HEAD + b"Content-Length: 9\r\n\r\n{", b"nonsense\r\n\r\n"])
def test_a_lost_answer_denies_no_change(service: Service, reply: bytes) -> None:
    """The service may have been killed behind the commit: the workspace, say, is there."""
    service.raw("POST /api/x", reply)
    with pytest.raises((BadAnswer, Unreachable)) as changing:
        transport.request("POST", "/api/x", b"{}", wait_s=5)
    service.raw(GET, reply)
    with pytest.raises((BadAnswer, Unreachable)) as reading:
        get()
    assert changing.value.message == f"{reading.value.message}; what was asked may have been done"


def test_a_closed_connection_is_a_lost_answer(service: Service) -> None:
    service.raw(GET, b"")
    with pytest.raises(Unreachable, match="without an answer"):
        get()


@pytest.mark.parametrize(
    "body", [b"<html>", b"[1]", b"5", b"{} {}", b'{"a": NaN}', b"\xff{}", b"[" * 10**6, b'{"a": "\x1b[2J"}']
)
def test_what_is_no_object_is_refused(service: Service, body: bytes) -> None:
    service.raw(GET, HEAD + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    with pytest.raises(BadAnswer):
        get().json()


def test_an_error_body_becomes_its_row(service: Service) -> None:
    fields = [{"field": "name", "code": "x", "message": "is taken"}]
    service.refuse(GET, 404, "not_found", "no such thing", hint="svc ws list", fields=fields)
    error = get().error()
    assert isinstance(error, NotFound)
    assert (error.message, error.hint) == ("no such thing", "svc ws list")
    assert error.fields[0]["message"] == "is taken"


@pytest.mark.parametrize(
    "body", [{}, {"error": 5}, {"error": {"code": [], "fields": 3, "message": None}}, []]
)
def test_an_odd_error_body_is_an_error_all_the_same(service: Service, body: object) -> None:
    service.answer(GET, body, status=500)
    error = get().error()
    assert type(error) is SvcError
    assert error.exit_code == 1
    assert "500" in error.message


def test_the_exit_code_comes_from_the_row() -> None:
    assert (
        transport.error_of({"code": "account_missing", "message": "m"}, "").exit_code
        == AccountMissing.exit_code
        == 3
    )


def test_an_internal_error_points_at_the_log() -> None:
    inner = {"code": "internal_error", "message": "m", "request_id": "r-1"}
    assert "r-1" in transport.error_of(inner, "").hint


# --- the socket -----------------------------------------------------------------------


def test_no_socket() -> None:
    with pytest.raises(Unreachable, match="No such file"):
        get()


def test_nobody_listens(service: Service) -> None:
    service.close()
    with pytest.raises(Unreachable, match="refused"):
        get()


def test_a_file_is_no_socket(tmp_path: Path) -> None:
    (tmp_path / "svc.sock").write_text("")
    with pytest.raises(Unreachable, match="not a socket"):
        get()


def test_a_link_to_a_socket_is_no_socket(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(service.path)
    monkeypatch.setenv("SVC_SOCKET", str(tmp_path / "link"))
    with pytest.raises(Unreachable, match="not a socket"):
        get()


def test_a_stranger_s_socket_is_not_used(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.lstat(service.path)
    other = os.stat_result([*real[:4], 4711, *real[5:10]])
    monkeypatch.setattr(transport.os, "lstat", lambda path, **_: other)
    with pytest.raises(Unreachable, match="owned by root"):
        get()
    assert service.sent == []


def test_a_stranger_s_server_is_not_used(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_trusted", lambda server, me: False)
    with pytest.raises(Unreachable, match="served by"):
        get()
    assert service.sent == []


def test_who_may_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_app_uid", lambda: 991)
    trusted = [server for server in (0, 991, 1000, 1001, 65534) if transport._trusted(server, me=1000)]
    assert trusted == [0, 991, 1000]
