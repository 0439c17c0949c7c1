"""Raw bytes on both listeners: no input changes the authenticated user or blocks other users."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from e2e.installation import SVC, Call, Service, app_uids, processes, run
from hostile.attackers.raw import Answer, ask, connect, connect_tls, gone_within, request

Unmoved = Callable[[], float]


@pytest.fixture
def unix(service: Service) -> Callable[..., Answer]:
    """unix(bytes, user=tsz-mallory): the response of the host socket."""
    return lambda data, user="tsz-mallory": ask(connect(service.env["SVC_SOCKET"], user), data)


@pytest.fixture
def tcp(service: Service) -> Callable[[bytes], Answer]:
    """tcp(bytes): the response of the TLS listener."""
    return lambda data: ask(connect_tls(int(service.env["SVC_PORT"])), data)


# HOSTILE 6, rows 1 and 2: every spelling of the paths that the host socket never takes
SPELLINGS = [
    "/api/auth/login", "//api/auth/login", "/api//auth///login", "/api/%61uth/login", "/api/auth/login/",
    "/API/auth/login", "/api/auth/login?x=1", "/api/auth/./login", "/api/x/../auth/login",
    "/api/auth/login%00", "/api/auth%2flogin", "/api/auth/login.", "/api/auth/login;x", "/./api/auth/login",
    "http://localhost/api/auth/login", "http://evil.test/api/auth/login", "/x/api/auth/login",
    "/api/users/tsz-mallory/password", "//api/users/tsz-alice//password/",
]  # fmt: skip


@pytest.mark.parametrize("path", SPELLINGS)
def test_no_spelling_logs_in_on_the_socket(unix: Callable[..., Answer], path: str) -> None:
    body = b'{"name": "tsz-mallory", "password": "eleven grey otters under ice"}'
    for method in ("POST", "PUT"):
        for headers in ((), ("SCRIPT_NAME: /x",), ("Script-Name: /x",), ("X-HTTP-Method-Override: GET",)):
            answer = unix(request(method, path, body, *headers))
            assert answer.status in (0, 400, 403, 404, 405, 501), answer
            assert answer.status != 501 or "socket" not in answer.code
            assert "cookie" not in answer.head.lower()


SPOOFS = [
    "X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: https", "X-Real-IP: 127.0.0.1", "Remote-User: root",
    "REMOTE_USER: root", "X-Svc-Uid: 0", "X-Svc-User: tsz-alice", "X_Svc_Uid: 0", "Forwarded: for=unix:",
    "X-Remote-User: root", "Proxy-User: root", "Gunicorn.Socket: x", "Wsgi.Url_scheme: https",
]  # fmt: skip


def test_no_header_says_who_somebody_is(unix: Callable[..., Answer]) -> None:
    answer = unix(request("GET", "/api/users/me", b"", *SPOOFS))
    assert (answer.status, json.loads(answer.body)["name"]) == (200, "tsz-mallory")
    assert unix(request("GET", "/api/admin/audit", b"", *SPOOFS)).status == 403


def test_no_header_lets_anybody_in_over_tcp(tcp: Callable[[bytes], Answer]) -> None:
    for more in (
        [],
        SPOOFS,
        ["Authorization: Basic cm9vdDpyb290"],
        ["Cookie: __Host-svc=x"],
        ["Authorization: Bearer svc_pat_"],
    ):
        answer = tcp(request("GET", "/api/workspaces", b"", *more))
        assert (answer.status, answer.code) == (401, "unauthenticated"), answer


def test_credentials_of_browsers_are_refused_on_the_socket(unix: Callable[..., Answer]) -> None:
    for header in ("Authorization: Bearer x", "Cookie: a=b", "Origin: null", "Sec-Fetch-Site: same-origin"):
        assert unix(request("GET", "/api/users/me", b"", header)).status == 400


SMUGGLED = b"GET /api/users/me HTTP/1.1\r\nHost: localhost\r\n\r\n"
AMBIGUOUS = {
    "length and chunks": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "two codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "a coding nobody knows": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "an underscore": b"Transfer_Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "two lengths": b"Content-Length: 0\r\nContent-Length: 49\r\n\r\n" + SMUGGLED,
    "a signed length": b"Content-Length: +0\r\n\r\n" + SMUGGLED,
    "a folded line": b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n" + SMUGGLED,
    "a bare line feed": b"X: a\nContent-Length: 49\r\n\r\n" + SMUGGLED,
    "a space before the colon": b"Content-Length : 49\r\n\r\n" + SMUGGLED,
    "a NUL": b"X: a\0b\r\nContent-Length: 0\r\n\r\n" + SMUGGLED,
    "a chunk too large": b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n0\r\n\r\n"
    + SMUGGLED,
    "a chunk of no size": b"Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n" + SMUGGLED,
}


@pytest.mark.parametrize("how", AMBIGUOUS)
def test_a_request_of_two_readings_has_at_most_one(
    unix: Callable[..., Answer], tcp: Callable[[bytes], Answer], how: str
) -> None:
    data = b"POST /api/workspaces/none/start HTTP/1.1\r\nHost: localhost\r\n" + AMBIGUOUS[how]
    for answer in (unix(data), tcp(data)):
        assert answer.body.count(b"HTTP/1.1") <= 1, answer
        assert answer.status in (0, 400, 401, 404, 413, 422, 501), answer


def test_heads_without_end_are_refused(unix: Callable[..., Answer], tcp: Callable[[bytes], Answer]) -> None:
    long = "x" * 65536
    for data in (
        request("GET", f"/api/workspaces?q={long}"),
        request("GET", "/api/workspaces", b"", f"X-Long: {long}"),
        request("GET", "/api/workspaces", b"", *(f"X-{n}: {n}" for n in range(500))),
        b"\0" * 10000 + b"\r\n\r\n",
        b"\r\n" * 10000,
        b"GET " + b"/" * 100 + b" HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ):
        for answer in (unix(data), tcp(data)):
            assert answer.status in (0, 400, 404, 414, 431, 505), answer


BODIES = {
    "deep": (b"[" * 100_000, 400),
    "deep in an object": (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, (400, 422)),  # also too many values
    "a key twice": (b'{"name": "a", "name": "b"}', 400),
    "not a number": (b'{"name": NaN}', 400),
    "beyond a double": (b'{"grace_s": 1e400}', 400),
    "a lone surrogate": (b'{"name": "\\ud800"}', 400),
    "digits": (b'{"grace_s": ' + b"9" * 10_000 + b"}", 400),
    "2**64": (b'{"name": "x", "template": "base", "resources": {"memory_bytes": 18446744073709551616}}', 422),
    "no text": (b'{"name": "\xff"}', 400),
    "a list": (b"[1]", 400),
    "a name with NUL": (b'{"name": "a\\u0000b", "template": "base"}', 422),
    "a template with NUL": (b'{"name": "ab", "template": "ba\\u0000se"}', (404, 422)),
    "a display name of controls": (
        b'{"name": "zz", "template": "none", "display_name": "\\u001b[2J"}',
        (404, 422),
    ),
    "unknown key": (b'{"name": "x", "template": "base", "privileged": true}', 422),
    "a variable of NUL": (b'{"name":"x","template":"base","env":[{"name":"A","value":"\\u0000"}]}', 422),
    "a variable LD_PRELOAD=": (b'{"name":"x","template":"base","env":[{"name":"A=B","value":""}]}', 422),
}  # fmt: skip


@pytest.mark.parametrize("what", BODIES)
def test_bodies(unix: Callable[..., Answer], mallorys: str, what: str) -> None:
    body, status = BODIES[what]
    answer = unix(request("POST", "/api/workspaces", body))
    assert answer.status in (status if isinstance(status, tuple) else (status,)), answer
    assert answer.code not in ("", "internal_error")


def resident(service: Service) -> int:
    """Memory of all processes of svc, in KiB."""
    return sum(int(one.status.get("VmRSS", "0 kB").split()[0]) for one in service.members())


def test_great_bodies_cost_nothing(service: Service, unix: Callable[..., Answer], unmoved: Unmoved) -> None:
    before = resident(service)
    body = b'{"name": "' + b"x" * 64 * 1024 * 1024 + b'"}'

    def send(chunked: bool) -> Answer:
        data = request("POST", "/api/workspaces", body)
        if chunked:
            head = request("POST", "/api/workspaces", b"", "Content-Type: application/json")
            head = head.replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
            data = head + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
        return unix(data)

    with ThreadPoolExecutor(4) as pool:
        for answer in pool.map(send, (True, False) * 3):
            assert answer.status in (0, 413), answer
    assert resident(service) - before < 60_000
    assert unmoved() < 2


def test_strange_hosts_are_not_answered(tcp: Callable[[bytes], Answer]) -> None:
    for host in (
        "evil.test",
        "127.0.0.1.nip.io",
        "localhost.evil",
        "",
        "localhost:1:2",
        "localhost/",
        "[::1",
    ):
        answer = tcp(request("GET", "/api/health", host=host))
        assert answer.status in (400, 421), (host, answer)
    twice = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nHost: evil.test\r\nConnection: close\r\n\r\n"
    assert tcp(twice).status in (400, 421)
    assert tcp(request("GET", "/api/health")).status == 200


def test_no_origin_is_told_that_it_may_read(tcp: Callable[[bytes], Answer]) -> None:
    for origin in ("http://localhost.evil", "https://localhost:5173", "null", "https://localhost"):
        for method in ("GET", "OPTIONS"):
            answer = tcp(request(method, "/api/health", b"", f"Origin: {origin}"))
            assert "access-control" not in answer.head.lower()


def test_the_tls_listener_full_of_half_requests_is_nothing_to_the_host(
    service: Service, unmoved: Unmoved
) -> None:
    port = int(service.env["SVC_PORT"])
    with contextlib.ExitStack() as stack:
        for number in range(50):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
            sock.sendall((b"\x16\x03\x01\x02", b"GET ", b"")[number % 3])
        assert max(unmoved() for _ in range(3)) < 2


HALF_A_HEAD = b"GET /api/x HTTP/1.1\r\nX: "
HALF_A_BODY = b"POST /api/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"


def test_a_crowd_of_half_requests_leaves_the_listener_open(service: Service, unmoved: Unmoved) -> None:
    """150 connections of tsz-carol, who has no account, block other users only briefly."""
    with contextlib.ExitStack() as stack:
        crowd = [
            stack.enter_context(connect(service.env["SVC_SOCKET"], "tsz-carol")) for _ in range(110)
        ]  # fmt: skip
        for number, sock in enumerate(crowd):
            with contextlib.suppress(OSError):
                sock.sendall(
                    b"GET /api/x HTTP/1.1\r\nX: "
                    if number % 2
                    else b"POST /api/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{"
                )
        assert max(unmoved() for _ in range(3)) < 2
        assert gone_within(crowd[1], 14, drip=b"x"), "a request that drips is read for ever"


def test_a_client_that_reads_nothing_takes_no_place_from_others(
    service: Service, mallory: Call, mallorys: str, unmoved: Unmoved
) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            sock = stack.enter_context(connect(service.env["SVC_SOCKET"], "tsz-mallory"))
            sock.sendall(request("GET", "/api/openapi.json") * 1)
        assert max(unmoved() for _ in range(3)) < 2


def test_twenty_execs_of_one_user(service: Service, mallory: Call, mallorys: str, unmoved: Unmoved) -> None:
    mallory("ws", "start", mallorys)
    body = b'{"command": ["sleep", "3"], "timeout_s": 20}'
    data = request("POST", f"/api/workspaces/{mallorys}/exec", body)
    with ThreadPoolExecutor(20) as pool:
        asked = [pool.submit(ask, connect(service.env["SVC_SOCKET"], "tsz-mallory"), data) for _ in range(20)]
        time.sleep(1)
        assert unmoved() < 2
        answers = [future.result() for future in asked]
    statuses = sorted(answer.status for answer in answers)
    assert statuses == [200] * 8 + [429] * 12, statuses
    assert all("retry-after" in answer.head.lower() for answer in answers if answer.status == 429)


def test_uids_without_an_account_get_exit_3(service: Service) -> None:
    assert run("tsz-carol", "whoami", env=service.env).code == 3
    for user in ("tsz-carol", "nobody", "daemon", "svc"):
        answer = ask(connect(service.env["SVC_SOCKET"], user), request("GET", "/api/users/me"))
        assert (answer.status, answer.code) == (403, "account_missing")


def test_no_unauthenticated_request_reaches_the_helper(
    service: Service, tcp: Callable[[bytes], Answer]
) -> None:
    before = len(service.log.read_text())
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        for path in (
            "workspaces",
            "workspaces/ws-00000000",
            "workspaces/x/exec",
            "images",
            "templates",
            "admin/registries",
        ):
            assert tcp(request(method, f"/api/{path}", b"{}" if method != "GET" else b"")).status in (
                401,
                403,
                405,
            )
    lines = service.log.read_text()[before:].splitlines()
    helper = [line for line in lines if '"process": "helper"' in line]
    # What else it says is of its own, of agents that end, and of the worker's calls: it watches workspaces.
    assert not [line for line in helper if '"rid": "req-' in line or "violation" in line]


def test_nothing_of_svc_listens_where_it_should_not(service: Service) -> None:
    ports = {int(service.env["SVC_PORT"])}
    uids = {0, *app_uids().values()}
    mine = {one.pid for one in service.members() if one.uid in uids}
    assert SVC.exists()
    assert mine
    assert {one.pid for one in processes()} >= mine
    inodes = listening()
    assert inodes
    assert ports <= set(inodes.values())


def listening() -> dict[str, int]:
    """The listening TCP sockets of this host: inode to port."""
    found = {}
    for name in ("tcp", "tcp6"):
        with open(f"/proc/net/{name}", encoding="ascii") as file:
            for line in list(file)[1:]:
                arguments = line.split()
                if arguments[3] == "0A":
                    found[arguments[9]] = int(arguments[1].rpartition(":")[2], 16)
    return found
