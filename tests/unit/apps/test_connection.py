"""A browser's connection to a program: requests, answers, tunnels, and what both may send that is none."""

from __future__ import annotations

import hashlib
import http.client
import io
import json
import os
import re
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import h11
import pytest
from unit.apps.stage import HOST, ORIGIN, Serve, Stage
from waiting import until

from svc.apps import connection
from svc.apps.ends import BUFFER_MAX, READ_BYTES
from svc.apps.pair import Refused

Begin = Callable[..., Stage]
NOTHING = [("content-length", "0")]
COOKIE = {"Cookie": "__Host-svc-app=ada; a=1", "Sec-Fetch-Site": "same-origin"}
GET = f"GET / HTTP/1.1\r\nHost: {HOST}\r\nCookie: __Host-svc-app=ada\r\n"


@pytest.fixture
def begin() -> Iterator[Begin]:
    """begin(serve) starts a stage before a program."""
    begun: list[Stage] = []

    def start(serve: Serve, **more: Any) -> Stage:
        begun.append(Stage(serve, **more))
        return begun[-1]

    yield start
    for stage in begun:
        stage.close()


class Echo(BaseHTTPRequestHandler):
    """The standard library's server: what it has understood of a request, as JSON."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self._body()
        said = {
            "line": self.requestline,
            "headers": [[name.lower(), value] for name, value in self.headers.items()],
            "body": hashlib.sha256(body).hexdigest(),
            "length": len(body),
        }
        answer = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST  # noqa: N815  the names of the standard library

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def log_message(self, *_: object) -> None:
        pass


def echo(sock: socket.socket) -> None:
    """Serve one connection with Echo."""
    try:
        Echo(sock, ("127.0.0.1", 0), None)  # type: ignore[arg-type]
    except (ConnectionError, ValueError):
        pass


def raw(answer: bytes, *, until: bytes = b"\r\n\r\n") -> Serve:
    """A program that reads a head, says this, and ends."""

    def serve(sock: socket.socket) -> None:
        seen = b""
        while until not in seen:
            part = sock.recv(65536)
            if not part:
                return
            seen += part
        try:
            sock.sendall(answer)
        except ConnectionError:
            pass

    return serve


def call(
    client: socket.socket, method: str = "GET", path: str = "/", body: Any = None, **headers: str
) -> Any:
    """One request by the standard library's client; its answer, read."""
    connection = http.client.HTTPConnection("localhost")
    connection.sock = client
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(
        method,
        path,
        body,
        {"Host": HOST, **COOKIE, **named},
        encode_chunked=not isinstance(body, bytes | None),
    )
    answer = connection.getresponse()
    answer.content = answer.read()  # type: ignore[attr-defined]
    return answer


def everything(client: socket.socket) -> bytes:
    """What comes until the end."""
    parts = []
    while part := client.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def refusal(answer: Any) -> tuple[int, str]:
    """The status and the code of a refusal."""
    return answer.status, json.loads(answer.content)["error"]["code"]


def test_requests_reach_the_program_and_keep_their_stream(begin: Begin) -> None:
    stage = begin(echo)
    with stage.client() as client:
        for path in ("/", "/lab?x=%2f..", "/a//b"):
            said = json.loads(call(client, path=path).content)
            assert said["line"] == f"GET {path} HTTP/1.1"
            headers = dict(said["headers"])
            assert headers["host"] == "127.0.0.1:8888"
            assert (headers["cookie"], headers["svc-user"], headers["x-forwarded-for"]) == (
                "a=1",
                "ada",
                "192.0.2.7",
            )
    assert len(stage.asked) == 1
    assert (stage.asked[0].place.origin, stage.asked[0].cookie, stage.asked[0].token) == (ORIGIN, "ada", "")


@pytest.mark.parametrize("size", [0, 1, 70_000, 5_000_000])
@pytest.mark.parametrize("is_chunked", [False, True], ids=["with a length", "chunked"])
def test_bodies_are_as_they_were(begin: Begin, size: int, is_chunked: bool) -> None:
    body = os.urandom(size)
    sent: Any = (part for part in (body[: size // 2], body[size // 2 :]) if part) if is_chunked else body
    with begin(echo).client() as client:
        headers = {"Transfer_Encoding": "chunked"} if is_chunked else {}
        said = json.loads(call(client, "POST", "/up", sent, Origin=ORIGIN, **headers).content)
    assert (said["length"], said["body"]) == (size, hashlib.sha256(body).hexdigest())
    assert dict(said["headers"])["origin"] == "http://127.0.0.1:8888"


def test_another_credential_is_another_stream(begin: Begin) -> None:
    """Also on one connection, as a proxy in front may have it."""
    stage = begin(echo)
    with stage.client() as client:
        users = [
            dict(json.loads(call(client, Cookie=f"__Host-svc-app={name}").content)["headers"])["svc-user"]
            for name in ("ada", "bob", "bob", "ada")
        ]
        by_token = call(client, Authorization="Bearer svc_pat_x1", Cookie="__Host-svc-app=ada")
    assert users == ["ada", "bob", "bob", "ada"]
    headers = dict(json.loads(by_token.content)["headers"])
    assert (headers["svc-user"], "authorization" in headers, "cookie" in headers) == (
        "by token",
        False,
        False,
    )
    assert [(asked.cookie, asked.token) for asked in stage.asked] == [
        ("ada", ""), ("bob", ""), ("ada", ""), ("", "svc_pat_x1"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Cookie": "a=1"}, (401, "app_sign_in")),
        ({"Cookie": "__Host-svc-app=eve"}, (401, "app_sign_in")),
        ({"Cookie": "__Host-svc-app=ada; __Host-svc-app=eve"}, (401, "app_sign_in")),
        ({"Cookie": "__host-svc-app=ada"}, (401, "app_sign_in")),
        (
            {"Authorization": "Bearer svc_pat_a", "X-Svc-Token": "svc_pat_b", "Cookie": ""},
            (401, "app_sign_in"),
        ),
        ({"Sec-Fetch-Site": "same-site"}, (403, "app_cross_origin")),
        ({"Host": "localhost"}, (404, "app_not_found")),
        ({"Host": "lab-f7d3k2qa.evil"}, (404, "app_not_found")),
    ],
)
def test_who_may_not_come_in(begin: Begin, headers: dict[str, str], expected: tuple[int, str]) -> None:
    stage = begin(echo)
    with stage.client() as client:
        assert (
            refusal(call(client, **{name.replace("-", "_"): value for name, value in headers.items()}))
            == expected
        )
    assert not stage.program.threads, "no program has heard of it"


def test_who_may_not_come_in_is_told_so_while_they_send(begin: Begin) -> None:
    """What is left of the request is read, and dropped: else the answer is lost with the connection."""
    stage = begin(echo)
    with stage.client() as client:
        head = f"POST / HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 5000000\r\n\r\n"
        client.sendall(head.encode() + bytes(5_000_000))
        client.sendall(GET.encode() + b"\r\n")  # and one more, which is nobody's
        got = everything(client)
    assert got.startswith(b"HTTP/1.1 401 ")
    assert got.count(b"HTTP/1.1 ") == 1
    assert stage.gone.acquire(timeout=5)
    assert not stage.program.threads


def test_what_the_authority_says(begin: Begin) -> None:
    stage = begin(echo)
    stage.refusal = Refused(502, "app_not_listening", "nothing listens")
    with stage.client() as client:
        assert refusal(call(client)) == (502, "app_not_listening")


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"hello\n", b"HTTP/1.1 200", b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", b"HTTP/1.1 200 OK\r\nA B: c\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: b\r\n c\x00\r\n\r\n", b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000 + b"\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n", b"\x16\x03\x01\x00\x05hello",
    ],
)  # fmt: skip
def test_what_is_no_http_is_said(begin: Begin, answer: bytes) -> None:
    with begin(raw(answer)).client() as client:
        assert refusal(call(client)) == (502, "app_bad_response")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n",
    ],
)
def test_half_an_answer_does_not_seem_whole(begin: Begin, answer: bytes) -> None:
    with begin(raw(answer)).client() as client, pytest.raises((http.client.IncompleteRead, ConnectionError)):
        call(client)


def test_two_lengths_are_none(begin: Begin) -> None:
    """A length beside chunks is neither side's to believe."""
    answer = (
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    )
    with begin(raw(answer)).client() as client:
        found = call(client)
        assert (found.content, found.getheader("Content-Length")) == (b"hello", None)
    with begin(echo).client() as client:
        client.sendall(
            GET.replace("GET", "POST").encode()
            + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
        )
        answered = http.client.HTTPResponse(client)
        answered.begin()
        said = json.loads(answered.read())
    assert said["length"] == 5
    assert "content-length" not in dict(said["headers"])


@pytest.mark.parametrize(
    "head",
    [
        "GET / HTTP/1.1\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/2.0\r\n\r\n", "\x00\r\n\r\n",
        "G T / HTTP/1.1\r\n\r\n",
        f"GET / HTTP/1.1\r\nHost: {HOST}\r\nHost: {HOST}\r\n\r\n", f"GET / HTTP/1.1\r\nHost : {HOST}\r\n\r\n",
        GET + "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", GET + "Content-Length: 1, 2\r\n\r\n",
        GET + "Content-Length: +1\r\n\r\n", GET + "Transfer-Encoding: gzip, chunked\r\n\r\n",
        GET + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        GET + "Transfer-Encoding:\x0bchunked\r\n\r\n", GET + "A B: c\r\n\r\n", GET + "A: b\x00\r\n\r\n",
        GET + "A: b\rB: c\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
    ],
)  # fmt: skip
def test_what_is_no_request_reaches_nobody(begin: Begin, head: str) -> None:
    stage = begin(echo)
    with stage.client() as client:
        client.sendall(head.encode("latin-1"))
        answer = everything(client)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 404 ", b"HTTP/1.1 501 ")), answer
    assert not stage.program.threads


@pytest.mark.parametrize(
    "smuggled",
    [
        "Content-Length: 0\r\n\r\nGET /admin HTTP/1.1\r\nHost: x\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\nHost: x\r\n\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\nGET /admin HTTP/1.1\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n0\r\nSvc-User: root\r\n\r\nGET /admin HTTP/1.1\r\n\r\n",
    ],
)
def test_what_comes_behind_a_request_is_judged_by_itself(begin: Begin, smuggled: str) -> None:
    lines: list[bytes] = []

    def serve(sock: socket.socket) -> None:
        server = h11.Connection(h11.SERVER)
        while True:
            event = server.next_event()
            if event is h11.NEED_DATA:
                server.receive_data(sock.recv(65536))
            elif isinstance(event, h11.Request):
                lines.append(event.target)
            elif isinstance(event, h11.EndOfMessage):
                try:
                    sock.sendall(server.send(h11.Response(status_code=200, headers=NOTHING)) or b"")
                    sock.sendall(server.send(h11.EndOfMessage()) or b"")
                except BrokenPipeError:  # what follows was refused
                    return
                server.start_next_cycle()
            elif isinstance(event, h11.ConnectionClosed):
                return

    with begin(serve).client() as client:
        client.sendall((GET.replace("GET", "POST") + smuggled).encode())
        answers = everything(client)
    assert lines == [b"/"]
    assert answers.count(b"HTTP/1.1 ") == 2
    assert b"HTTP/1.1 4" in answers


def test_pipelined_requests_are_answered_in_order(begin: Begin) -> None:
    with begin(echo).client() as client:
        heads = [GET.replace("/ ", f"/{number} ", 1) for number in range(20)]
        client.sendall("\r\n".join([*heads[:-1], heads[-1] + "Connection: close\r\n", ""]).encode())
        lines = re.findall(rb"GET /(\d+) HTTP", everything(client))
    assert lines == [b"%d" % number for number in range(20)]


@pytest.mark.parametrize(
    "head",
    [
        GET + "".join(f"A{number}: b\r\n" for number in range(101)) + "\r\n",
        GET + "A: " + "b" * 70_000 + "\r\n\r\n",
        "GET /" + "a" * 70_000,
    ],
    ids=["fields", "bytes", "no end"],
)
def test_a_large_head_is_refused(begin: Begin, head: str) -> None:
    stage = begin(echo)
    with stage.client() as client:
        client.sendall(head.encode())
        assert everything(client).startswith(b"HTTP/1.1 431 ")
    assert not stage.program.threads


def test_who_waits_for_leave_to_send_gets_it(begin: Begin) -> None:
    with begin(echo).client() as client:
        client.sendall(
            (GET.replace("GET", "POST") + "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n").encode()
        )
        assert client.recv(65536).startswith(b"HTTP/1.1 100 ")
        client.sendall(b"hello")
        answer = http.client.HTTPResponse(client)
        answer.begin()
        said = json.loads(answer.read())
    assert said["length"] == 5
    assert "expect" not in dict(said["headers"])


@pytest.mark.parametrize("size", [5, 3_000_000])
def test_a_websocket_becomes_a_tunnel(begin: Begin, size: int) -> None:
    """Bytes behind either head included, both ways at once, until one side ends."""
    body = os.urandom(size)

    def serve(sock: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += sock.recv(65536)
        assert b"upgrade: websocket" in head.lower()
        early = head.partition(b"\r\n\r\n")[2]
        sock.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst"
            + early
        )
        while part := sock.recv(65536):
            sock.sendall(part)

    with begin(serve).client() as client:
        client.sendall(
            (GET + f"Origin: {ORIGIN}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n").encode()
            + b"early"
        )
        file = client.makefile("rb")
        assert file.readline() == b"HTTP/1.1 101 \r\n"
        while file.readline().strip():
            pass
        assert file.read(10) == b"firstearly"
        sending = threading.Thread(target=lambda: (client.sendall(body), client.shutdown(socket.SHUT_WR)))
        sending.start()
        assert file.read() == body
        sending.join()
        file.close()


def test_an_upgrade_to_something_else_is_none(begin: Begin) -> None:
    with begin(echo).client() as client:
        said = json.loads(
            call(client, Upgrade="h2c", Connection="Upgrade, HTTP2-Settings", HTTP2_Settings="AAM").content
        )
    assert not {"upgrade", "connection", "http2-settings"} & set(dict(said["headers"]))


def test_a_websocket_of_a_neighbour_is_refused(begin: Begin) -> None:
    stage = begin(echo)
    with stage.client() as client:
        answer = call(
            client, Upgrade="websocket", Connection="Upgrade", Origin="http://evil-aaaaaaaa.localhost:24681"
        )
        assert refusal(answer) == (403, "app_cross_origin")
    assert not stage.program.threads


def test_a_slow_reader_fills_no_memory(begin: Begin) -> None:
    """Neither a browser that does not read a download, nor a program that does not read an upload."""
    size = 30_000_000
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size
    stage = begin(raw(head + bytes(size)))
    with stage.client() as client:
        client.sendall((GET + "\r\n").encode())
        most = max(stage.ask(lambda: len(stage.connections[0].browser.output)) for _ in range(50))
        assert most <= BUFFER_MAX + 2 * READ_BYTES
        assert len(everything_of(client, len(b"\r\n\r\n") + size)) > size
    deaf = threading.Event()

    def serve(sock: socket.socket) -> None:
        deaf.wait(30)
        while sock.recv(1 << 20):
            pass

    stage = begin(serve)
    with stage.client() as client:
        client.settimeout(1)
        client.sendall((GET.replace("GET", "POST") + f"Content-Length: {size}\r\n\r\n").encode())
        with pytest.raises(TimeoutError):
            client.sendall(bytes(size))
        program = stage.connections[0].program
        assert program is not None
        assert stage.ask(lambda: len(program.end.output)) <= BUFFER_MAX + 2 * READ_BYTES
    deaf.set()


def everything_of(client: socket.socket, least: int) -> bytes:
    """What comes, at least so many bytes of it."""
    found = io.BytesIO()
    while found.tell() < least:
        part = client.recv(1 << 20)
        assert part
        found.write(part)
    return found.getvalue()


def test_a_stream_that_has_ended_meanwhile_is_opened_again(begin: Begin) -> None:
    """A program closes what it keeps; what changes something is not sent twice."""
    served: list[bytes] = []

    def serve(sock: socket.socket) -> None:
        with sock.makefile("rb") as file:
            line = file.readline()
            while file.readline().strip():
                pass
            served.append(line)
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            file.readline()  # the next request, which gets no answer

    stage = begin(serve)
    with stage.client() as client:
        assert call(client).content == b"ok"
        assert call(client).content == b"ok"
        assert refusal(call(client, "POST", "/", b"", Origin=ORIGIN)) == (502, "app_bad_response")
    assert [line.split()[0] for line in served] == [b"GET", b"GET"]
    assert len(stage.asked) == 2


def test_an_early_answer_ends_an_upload(begin: Begin) -> None:
    answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno!"
    with begin(raw(answer)).client() as client:
        client.sendall(
            (GET.replace("GET", "POST") + "Content-Length: 99999999\r\n\r\n").encode() + bytes(100_000)
        )
        got = everything(client)
    assert got.startswith(b"HTTP/1.1 413 ")
    assert got.endswith(b"no!")


def test_an_old_client_is_served_once(begin: Begin) -> None:
    with begin(
        raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    ).client() as client:
        client.sendall(GET.replace("HTTP/1.1", "HTTP/1.0").encode() + b"\r\n")
        got = everything(client)
    assert got.endswith(b"\r\n\r\nhello")
    assert b"chunked" not in got


def test_answers_of_proxies_are_no_ones(begin: Begin) -> None:
    with begin(
        raw(b"HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")
    ).client() as client:
        answer = call(client)
        assert (answer.status, answer.getheader("Proxy-Authenticate")) == (502, None)


def test_a_browser_that_leaves_takes_the_stream_along(begin: Begin) -> None:
    ended = threading.Event()

    def serve(sock: socket.socket) -> None:
        while sock.recv(65536):
            pass
        ended.set()

    stage = begin(serve)
    client = stage.client()
    client.sendall((GET + "\r\n").encode())
    while not stage.program.threads:
        pass
    client.close()
    assert ended.wait(30)
    assert stage.gone.acquire(timeout=30)


@pytest.mark.parametrize(("status", "goes_on"), [(401, False), (404, False), (503, True)])
def test_a_visitor_is_judged_again(
    begin: Begin, monkeypatch: pytest.MonkeyPatch, status: int, goes_on: bool
) -> None:
    """The trouble of the service itself ends nobody's work."""
    monkeypatch.setattr(connection, "CHECK_S", 0.02)
    stage = begin(echo)
    with stage.client() as client:
        assert call(client).status == 200
        until(lambda: stage.checked, 30, 0.01)
        stage.refusal = Refused(status, "no", "no")
        if not goes_on:
            assert client.recv(1) == b""
            return
        seen = len(stage.checked)
        until(lambda: len(stage.checked) > seen + 1, 30, 0.01)
        assert call(client).status == 200


def deaf(sock: socket.socket) -> None:
    """A program that answers more than anybody's buffers hold, and one that reads nothing of a body."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += sock.recv(100)
    if head.startswith(b"GET"):
        try:
            sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(64 << 20))
        except ConnectionError:
            pass
    else:
        threading.Event().wait(2)


def test_a_reader_that_takes_nothing_is_cut(begin: Begin) -> None:
    stage = begin(deaf)
    with stage.client() as client:
        client.sendall((GET + "\r\n").encode())
        client.recv(1)
        made = stage.connections[0]
        until(lambda: made.browser.output, 30, 0.01)
        stage.ask(lambda: made.close_if_stalled(1))
        for _ in range(3):
            client.recv(1 << 16)  # whoever takes something stays
            until(lambda: len(made.browser.output) >= BUFFER_MAX, 30, 0.01)
            stage.ask(lambda: made.close_if_stalled(connection.STALL_S))
        stage.ask(lambda: made.close_if_stalled(connection.STALL_S))
        assert made.is_closed


@pytest.mark.parametrize(("size", "goes_on"), [(10, False), (connection.BODY_MIN, True)])
def test_a_body_that_comes_too_slowly_is_cut(begin: Begin, size: int, goes_on: bool) -> None:
    stage = begin(echo)
    with stage.client() as client:
        head = GET.replace("GET", "POST", 1).replace("\r\n", "\r\nSec-Fetch-Site: same-origin\r\n", 1)
        client.sendall(f"{head}Content-Length: 9999999\r\n\r\n".encode())
        made = stage.connections[0]
        until(lambda: made.program, 30, 0.01)
        stage.ask(lambda: made.close_if_stalled(1))
        client.sendall(bytes(size))
        until(lambda: made.browser.received >= size, 30, 0.01)
        stage.ask(lambda: made.close_if_stalled(connection.STALL_S))
        assert made.is_closed is not goes_on


def test_nobody_is_connected_to_elsewhere(begin: Begin) -> None:
    stage = begin(raw(b"HTTP/1.1 200 OK\r\n\r\n"))
    with stage.client() as client:
        client.sendall((GET.replace("GET /", "CONNECT 192.0.2.1:22", 1) + "\r\n").encode())
        assert everything(client).startswith(b"HTTP/1.1 400 ")
    assert not stage.asked
