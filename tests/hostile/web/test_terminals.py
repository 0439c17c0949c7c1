"""Terminals against pages of others, thieves of tickets, clients that never read, and numbers."""

from __future__ import annotations

import contextlib
import json
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from e2e.installation import Service, run
from e2e.surroundings import must, template_of
from hostile.attackers.live import Live
from hostile.attackers.raw import ask, connect_tls, request
from waiting import until

from svc import websocket
from svc.websocket import BINARY, CLOSE, TEXT, Receiver, frame

SECRET = "eleven grey otters under ice"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
HANDSHAKE = (
    "Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {KEY}", "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Protocol: svc-terminal.1",
)  # fmt: skip
USER = "tsz-alice"


class Page:
    """A page of the service in a browser that is logged in."""

    def __init__(self, service: Service) -> None:
        self.port = int(service.env["SVC_PORT"])
        self.origin = f"https://localhost:{self.port}"
        self.host = f"localhost:{self.port}"
        body = json.dumps({"username": USER, "password": SECRET}).encode()
        answer = ask(connect_tls(self.port), request("POST", "/api/auth/login", body, host=self.host))
        assert answer.status == 200, answer
        cookie = next(line for line in answer.head.split("\r\n") if line.lower().startswith("set-cookie"))
        self.cookie = "Cookie: " + cookie.partition(": ")[2].partition(";")[0]
        self.secret = "X-Svc-Session: " + json.loads(answer.body)["session_secret"]

    def post(self, path: str, content: dict[str, Any]) -> Any:
        data = request("POST", path, json.dumps(content).encode(), self.cookie, self.secret, host=self.host)
        return ask(connect_tls(self.port), data)

    def terminal(self, workspace: str, *command: str) -> tuple[str, str]:
        """The path of a new terminal, and its ticket."""
        body = {"command": list(command)} if command else {}
        answer = self.post(f"/api/workspaces/{workspace}/terminals", body)
        assert answer.status == 201, answer
        record = json.loads(answer.body)
        return f"/api/workspaces/{workspace}/terminal?id={record['id']}", record["ticket"]

    def again(self, path: str) -> str:
        """The URL of another attachment."""
        return str(json.loads(self.post("/api/tickets", {"url": path}).body)["url"])

    def handshake(self, url: str, *more: str, origin: str | None = "") -> bytes:
        headers = [*HANDSHAKE, self.cookie, *more]
        if origin is not None:
            headers.append(f"Origin: {origin or self.origin}")
        data = request("GET", url, b"", *headers, host=self.host)
        return data.replace(b"Connection: close\r\n", b"")

    def attach(self, url: str, **options: Any) -> tuple[ssl.SSLSocket, int, bytes]:
        """The connection, the status of the answer, and what came behind its head."""
        sock = connect_tls(self.port)
        sock.sendall(self.handshake(url, **options))
        data = b""
        while b"\r\n\r\n" not in data:
            part = sock.recv(4096)
            assert part, data
            data += part
        head, _, rest = data.partition(b"\r\n\r\n")
        return sock, int(head.split()[1]), rest


@pytest.fixture(scope="module")
def lab(service: Service, registry: str) -> Iterator[str]:
    """A running workspace of Alice's."""
    template = template_of(USER, registry, service.env, "terminals")
    must(run(USER, "ws", "setup", "--template", template, "--name", "terminals", env=service.env))
    must(run(USER, "ws", "start", "terminals", env=service.env))
    yield "terminals"
    must(run(USER, "ws", "delete", "terminals", "--yes", env=service.env))


@pytest.fixture
def page(service: Service, lab: str) -> Iterator[Page]:
    """A page of Alice's; what it opened is closed at the end."""
    yield Page(service)
    for row in rows(service, lab):
        run(USER, "ws", "shell", lab, "--close", row["id"], env=service.env)


def rows(service: Service, lab: str) -> list[dict[str, Any]]:
    listed = must(run(USER, "ws", "shell", lab, "--list", "--json", env=service.env))
    return [row for row in listed.json()["items"] if row["state"] == "running"]


def health_s(service: Service) -> float:
    began = time.monotonic()
    must(run("root", "api", "GET", "/api/health", env=service.env))
    return time.monotonic() - began


def test_of_parallel_replays_exactly_one_wins(page: Page, lab: str) -> None:
    path, ticket = page.terminal(lab)
    begin = threading.Barrier(8)
    found: list[int] = []

    def replay() -> None:
        begin.wait(30)
        sock, status, _ = page.attach(f"{path}&ticket={ticket}")
        with sock:
            found.append(status)

    threads = [threading.Thread(target=replay) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found) == [101] + [401] * 7


def test_pages_of_others(page: Page, lab: str) -> None:
    """Cross-site WebSocket hijacking: the browser sends the cookie, and the Origin of the other page."""
    path, ticket = page.terminal(lab)
    near = (f"http://localhost:{page.port}", "https://localhost:8443", "https://localhost")
    for origin in ("https://evil.test", *near, "null", None):
        for url in (path, f"{path}&ticket={ticket}"):
            sock, status, _ = page.attach(url, origin=origin)
            sock.close()
            assert status == 403, origin
    sock, status, _ = page.attach(path)  # its own origin, without a ticket: the cookie alone opens nothing
    sock.close()
    assert status == 401
    sock, status, _ = page.attach(f"{path}&ticket={ticket}")
    sock.close()
    assert status == 101


def test_a_ticket_is_for_its_terminal_alone(page: Page, lab: str) -> None:
    path, _ = page.terminal(lab)
    for other in (path.partition("?")[0], path[:-1] + ("0" if path[-1] != "0" else "1")):
        _, ticket = page.terminal(lab)
        joint = "&" if "?" in other else "?"
        sock, status, _ = page.attach(f"{other}{joint}ticket={ticket}")
        sock.close()
        assert status == 401


def test_a_stolen_ticket(page: Page, service: Service, lab: str) -> None:
    """Another user of the host cannot use it, and uses it up; it ends with the session it was issued to."""
    path, ticket = page.terminal(lab)
    with Live(service.env["SVC_SOCKET"], "tsz-mallory", f"{path}&ticket={ticket}", "svc-terminal.1") as thief:
        assert thief.status == 401
    later = page.again(path)
    for url in (f"{path}&ticket={ticket}", later.replace("ticket=svc", "Ticket=svc"), later[:-1]):
        sock, status, _ = page.attach(url)
        sock.close()
        assert status in (401, 422), url
    assert page.post("/api/auth/logout", {}).status == 204
    sock, status, _ = page.attach(later)
    sock.close()
    assert status == 401


def test_a_terminal_ends_within_a_second_of_the_logout(page: Page, lab: str) -> None:
    """Whoever took over a page keeps no shell when its owner logs out."""
    path, ticket = page.terminal(lab)
    sock, status, _ = page.attach(f"{path}&ticket={ticket}")
    assert status == 101
    assert page.post("/api/auth/logout", {}).status == 204
    began = time.monotonic()
    sock.settimeout(20)
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while sock.recv(4096):
            pass
    assert time.monotonic() - began < 1
    sock.close()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(BINARY, b"unmasked"), 1002),
        (b"\x82\xff\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00", 1009),
        (frame(TEXT, b"{}", mask=True), 4400),
        (b"\x00\x80\x00\x00\x00\x00", 1002),
    ],
    ids=["unmasked", "oversized", "senseless", "continued"],
)
def test_broken_frames_end_the_connection_alone(
    page: Page, service: Service, lab: str, data: bytes, code: int
) -> None:
    path, ticket = page.terminal(lab)
    sock, status, rest = page.attach(f"{path}&ticket={ticket}")
    assert status == 101
    receiver, messages = Receiver(1 << 20, masked=False), []
    with sock:
        sock.sendall(data)
        messages += receiver.feed(rest)
        while not messages or messages[-1][0] != CLOSE:
            part = sock.recv(65536)
            assert part, messages
            messages += receiver.feed(part)
    assert websocket.close_code(messages[-1][1]) == code
    assert path.endswith(rows(service, lab)[-1]["id"])


def test_a_client_that_never_reads(page: Page, service: Service, lab: str) -> None:
    """A shell that prints without end, and nobody who reads it: others are served, and see it too."""
    quiet = min(health_s(service) for _ in range(5))
    path, ticket = page.terminal(lab, "yes")
    deaf, status, _ = page.attach(f"{path}&ticket={ticket}")
    assert status == 101
    sock, status, rest = page.attach(page.again(path))
    assert status == 101
    with deaf, sock:
        seen = len(rest)
        while seen < 4 << 20:
            part = sock.recv(65536)
            assert part
            seen += len(part)
        assert min(health_s(service) for _ in range(5)) < 10 * quiet + 1


def test_many_attaches(page: Page, service: Service, lab: str) -> None:
    """Beyond the viewers of a terminal each is refused, and everybody else is served."""
    path, _ = page.terminal(lab)
    statuses: list[int] = []
    with contextlib.ExitStack() as held:
        for _ in range(30):
            sock, status, _ = page.attach(page.again(path))
            held.enter_context(sock)
            statuses.append(status)
        assert 101 in statuses and 409 in statuses
        assert statuses.count(101) <= 8
        assert health_s(service) < 10
    until(lambda: [row["viewers"] for row in rows(service, lab)] == [0], 30)


def test_sizes_and_keys_in_floods(page: Page, service: Service, lab: str) -> None:
    path, ticket = page.terminal(lab, "sh", "-c", "stty -echo; exec cat >/dev/null")
    sock, status, _ = page.attach(f"{path}&ticket={ticket}")
    assert status == 101
    with sock:
        for number in range(2000):
            size = json.dumps({"type": "resize", "cols": number % 200 + 1, "rows": 1}).encode()
            sock.sendall(frame(TEXT, size, mask=True) + frame(BINARY, b"x" * 1000 + b"\n", mask=True))
        must(run(USER, "ws", "list", env=service.env))
        until(lambda: rows(service, lab)[-1]["cols"] == 200, 30)  # the last one counts
