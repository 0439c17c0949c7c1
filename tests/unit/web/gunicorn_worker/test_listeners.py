"""Both listeners for real: gunicorn, real sockets, the kernel's own word, and every spelling of a path."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import logging
import os
import pwd
import re
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from unit.configuring import FAST, SECRET
from unit.serving import FarEnd, copy_of_migrated, make_user

from svc.db import connect
from svc.domain import configuration
from svc.domain.accounts import hashing, passwords, users
from svc.helper.helper import Helper
from svc.host.secret import ensure_secret, read_secret
from svc.server.listeners import SO_PASSRIGHTS, refuse_descriptors
from svc.settings import Settings
from svc.web import app as web_app
from svc.web import listeners as web_listeners
from svc.web.gunicorn_worker import connections
from svc.web.gunicorn_worker.fair_worker import FairThreads

TICK_S = 0.02  # instead of gunicorn's tenths of a second and whole seconds between two checks
LINGER_S = 0.2  # instead of two seconds for a client that keeps its end open
OUT_OF_THE_WAY = 100  # descriptors that the served process keeps, above those it is told about
ME = pwd.getpwuid(os.getuid()).pw_name
PASSWORD = "tall Lamp, 7 rivers"


class Answer(NamedTuple):
    """A status and a body."""

    status: int
    body: dict[str, Any]
    head: str

    @property
    def code(self) -> str:
        return str(self.body["error"]["code"])


class Served:
    """One listener in a process of its own."""

    def __init__(
        self, name: str, settings: Settings, far: FarEnd, path: str, dev: bool, certificate: Any = None
    ) -> None:
        self.certificate = certificate
        if name == "unix":
            self.listener = socket.socket(socket.AF_UNIX)
            self.listener.bind(path)
            os.chmod(path, 0o666)
            refuse_descriptors(self.listener)
        else:
            self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.listen(1024)
        ready, says = os.pipe()
        gc.freeze()  # a collection in the child would touch, and so copy, all memory of this process
        self.pid = os.fork()
        if self.pid == 0:
            self._serve(name, settings, far, says, dev)
        os.close(says)
        with os.fdopen(ready, "rb") as file:
            assert file.read(1) == name[:1].encode()

    def _serve(self, name: str, settings: Settings, far: FarEnd, says: int, dev: bool) -> None:
        try:
            pair, listener, says = (
                fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, OUT_OF_THE_WAY)
                for fd in (far.helper.sock.fileno(), self.listener.fileno(), says)
            )
            helper = Helper(socket.socket(fileno=pair), name)
            app = web_app.build(settings, None, listener=name, dev=dev)
            options = web_listeners.Listener(name, listener, says, dev, self.certificate, app)
            sys.argv = ["svc"]  # gunicorn reads it
            _shorten_waits()
            hashing._pool.cache_clear()  # threads of tests before this one are not here
            web_listeners.serve(options, settings, helper, lambda: None, lambda: None)
        finally:
            os._exit(0)

    def let_descriptors_through(self) -> None:
        """As a kernel does that cannot refuse them; for connections from now on."""
        with contextlib.suppress(OSError):
            self.listener.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 1)

    def send(self, request: str) -> Answer:
        """One raw request on a connection of its own."""
        with socket.socket(self.listener.family) as sock:
            sock.settimeout(10)
            sock.connect(self.listener.getsockname())
            sock.sendall(request.encode("latin-1"))
            data = b""
            with contextlib.suppress(ConnectionResetError):  # after the answer, when it did not read all
                while part := sock.recv(65536):
                    data += part
        head, _, body = data.partition(b"\r\n\r\n")
        ours = b"application/json" in head  # gunicorn answers what is no HTTP by itself
        return Answer(int(head.split()[1]), json.loads(body) if ours and body else {}, head.decode("latin-1"))

    def ask(self, method: str, target: str, *headers: str, host: str = "localhost") -> Answer:
        """One request with an empty JSON object as its body."""
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", "Connection: close", *headers]
        lines += ["Content-Type: application/json", "Content-Length: 2"]
        return self.send("\r\n".join(lines) + "\r\n\r\n{}")

    def ask_as(self, uid: int, target: str) -> Answer:
        """GET as another uid: a child that drops root before it connects."""
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.setgroups([])
                os.setresuid(uid, uid, uid)
                os.write(writer, json.dumps(self.ask("GET", target)).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as file:
            answer = Answer(*json.loads(file.read()))
        os.waitpid(pid, 0)
        return answer

    def stop(self) -> None:
        os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)
        self.listener.close()


def _shorten_waits() -> None:
    """In the served process: check deadlines every TICK_S, linger for LINGER_S at a close."""
    wait = FairThreads.wait_for_and_dispatch_events

    def wait_briefly(worker: FairThreads, timeout: float) -> None:
        wait(worker, min(timeout, TICK_S))

    FairThreads.wait_for_and_dispatch_events = wait_briefly  # type: ignore[method-assign]  # gunicorn's own loop
    connections.LINGER_S = LINGER_S


@pytest.fixture(scope="module")
def socket_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("listeners")
    for folder in (path, path.parent, path.parent.parent):
        folder.chmod(folder.stat().st_mode | 0o055)  # other users connect too
    return path


@contextlib.contextmanager
def listening(folder: Path, settings: Settings) -> Iterator[Any]:
    """Start listeners on the open database, which is closed: ``start("unix")``; each is ended afterwards."""
    ensure_secret(settings.secret_file)
    me = make_user(ME, os.getuid(), superuser=os.getuid() == 0)
    hashed = passwords.hash_password(PASSWORD, read_secret(settings.secret_file))
    users.set_password(me, hashed, len(PASSWORD))
    if os.getuid() == 0:
        make_user("daemon", 1)
    connect.close_database()
    far, started = FarEnd("unix"), []

    def start(name: str, *, dev: bool = False, certificate: Any = None) -> Served:
        path = str(folder / f"{len(os.listdir(folder))}.sock")
        started.append(Served(name, settings, far, path, dev, certificate))
        return started[-1]

    start.far = far  # type: ignore[attr-defined]  # for what is asked of it
    try:
        yield start
    finally:
        for server in started:
            server.stop()
        far.close()


@pytest.fixture
def served(
    socket_folder: Path, settings: Settings, db: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """Start listeners for one test: ``served("unix")``."""
    monkeypatch.setattr(passwords, "COST", 4)
    with listening(socket_folder, settings) as start:
        yield start


class Shared(NamedTuple):
    """Listeners for all tests of a module, and what they stand on."""

    start: Any  # start("unix"), as `served`
    settings: Settings
    folder: Path


@contextlib.contextmanager
def shared_listeners(
    folder: Path, socket_folder: Path, waits: dict[str, float], **environ: str
) -> Iterator[Shared]:
    """Listeners on a database of their own in `folder`; the constants in `waits` have these seconds."""
    places = {"SVC_DB": str(folder / "svc.db"), "SVC_STATE_DIR": str(folder)}
    settings = Settings(environ=places | environ, file={})
    with pytest.MonkeyPatch.context() as changes:
        changes.setattr(configuration, "current", configuration.Configuration(secret=SECRET))
        changes.setattr(passwords, "COST", 4)
        changes.setattr(connect.database, "_pragmas", list(FAST.items()))
        for name, seconds in waits.items():
            changes.setattr(name, seconds)
        connect.open_database(copy_of_migrated(settings.db))
        with listening(socket_folder, settings) as start:
            yield Shared(start, settings, folder)


def test_the_socket_knows_its_peer_by_the_kernel(served: Any) -> None:
    unix = served("unix")
    lies = ("X-Svc-Uid: 1", "Remote-User: daemon", "X-Forwarded-For: 1.2.3.4", "X-Forwarded-Proto: https")
    answer = unix.ask("GET", "/api/users/me", *lies)
    assert (answer.status, answer.body["name"], answer.body["via"]) == (200, ME, "socket")
    assert answer.body["linux_account"]["home"] == pwd.getpwnam(ME).pw_dir


@pytest.mark.skipif(os.getuid() != 0, reason="needs root: it connects as other users")
def test_the_socket_tells_its_peers_apart(served: Any) -> None:
    unix = served("unix")
    assert unix.ask_as(1, "/api/users/me").body["name"] == "daemon"
    for uid in (65534, 54321):
        assert unix.ask_as(uid, "/api/users/me").code == "account_missing"


def test_the_tls_listener_knows_nobody(served: Any) -> None:
    tcp = served("tls")
    assert tcp.ask("GET", "/api/health").status == 200
    for headers in ((), ("X-Svc-Uid: 0",), ("Remote-User: root",), ("X-Forwarded-For: 127.0.0.1",)):
        assert tcp.ask("GET", "/api/users/me", *headers).code == "unauthenticated"
    assert tcp.ask("POST", "/api/auth/login").code == "validation_failed"


def test_a_login_for_real(served: Any) -> None:
    """One cookie, one header, one line of each: what two lines say is understood as neither."""
    tcp = served("tls")
    body = json.dumps({"username": ME, "password": PASSWORD})
    head = "POST /api/auth/login HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    head += f"Content-Length: {len(body)}\r\n"
    answer = tcp.send(f"{head}Content-Type: application/json\r\n\r\n{body}")
    assert answer.status == 200
    cookie = re.search(r"Set-Cookie: (__Host-svc=[^;]+); (.*)\r\n", answer.head)
    assert cookie and cookie[2] == "Secure; HttpOnly; Path=/; SameSite=Strict"
    ours, secret = f"Cookie: {cookie[1]}", f"X-Svc-Session: {answer.body['session_secret']}"
    assert tcp.ask("GET", "/api/users/me", ours, secret).body["via"] == "session"
    for refused in (
        (ours,), (secret,), (ours, ours, secret), (ours, secret, secret),
        (ours, "Cookie: __Host-svc=x", secret), (ours, secret, "Authorization: Bearer x"),
        ("Authorization: Bearer x", "Authorization: Bearer x"),
    ):  # fmt: skip
        assert tcp.ask("GET", "/api/users/me", *refused).status in (400, 401), refused
    form = "Content-Type: application/x-www-form-urlencoded"
    assert tcp.send(f"{head}{form}\r\n\r\n{body}").code == "cross_site"
    assert tcp.ask("POST", "/api/auth/logout", ours, secret, "Origin: https://localhost").code == "cross_site"
    assert tcp.ask("POST", "/api/auth/logout", ours, secret, "Origin: http://localhost").status == 204
    assert tcp.ask("GET", "/api/users/me", ours, secret).status == 401


LOGIN = (
    "/api/auth/login", "//api/auth/login", "/api//auth/login", "/api/auth/login/", "/api/%61uth/login",
    "/%61pi/auth/l%6fgin", "/api/auth%2Flogin", "http://localhost/api/auth/login", "http://x//api/auth/login",
    "https://a:1@b/api/auth/login", "/api/auth/login?x=1", "/api/auth/login#x",
)  # fmt: skip


def test_login_on_the_socket_however_it_is_spelt(served: Any) -> None:
    unix = served("unix")
    for target in LOGIN:
        assert unix.ask("POST", target).code == "not_allowed_on_socket", target
    for target in ("/api/users/x/password", "//api/users/x/%70assword/"):
        assert unix.ask("PUT", target).code == "not_allowed_on_socket", target
    for target in ("/API/auth/login", "/api/auth/login.", "/api/./auth/login", "/api/x/../auth/login"):
        assert unix.ask("POST", target).code in ("not_found", "not_allowed_on_socket"), target
    for header in ("SCRIPT_NAME: /x", "Script-Name: /x", "PATH_INFO: /api/health"):
        assert unix.ask("POST", "/x/api/auth/login", header).status in (400, 403, 404)
        assert unix.ask("POST", "/api/auth/login", header).status in (400, 403)


def test_the_socket_refuses_browsers_and_token_clients(served: Any) -> None:
    unix = served("unix")
    for header in (
        "Authorization: Bearer x",
        "Cookie: a=b",
        "Origin: http://localhost",
        "Sec-Fetch-Site: none",
    ):
        assert unix.ask("GET", "/api/users/me", header).code == "invalid_request"


def test_hosts_for_real(served: Any) -> None:
    tcp = served("tls")
    assert tcp.ask("GET", "/api/health", host="evil.test").code == "unknown_host"
    two = "GET /api/health HTTP/1.1\r\nHost: localhost\r\nHost: evil.test\r\nConnection: close\r\n\r\n"
    assert tcp.send(two).status in (400, 421)
    none = "GET /api/health HTTP/1.0\r\n\r\n"
    assert tcp.send(none).status in (400, 421)
    port = tcp.listener.getsockname()[1]
    assert tcp.ask("GET", "/api/health", host=f"127.0.0.1:{port}").status == 200


def test_cors_in_dev_for_exact_loopback_origins_only(served: Any) -> None:
    dev, plain = served("tls", dev=True), served("tls")
    for origin in ("http://localhost:5173", "https://127.0.0.1:1", "http://[::1]", "http://localhost"):
        answer = dev.ask("GET", "/api/health", f"Origin: {origin}")
        assert f"Access-Control-Allow-Origin: {origin}\r\n" in answer.head + "\r\n"
        assert dev.ask("OPTIONS", "/api/workspaces", f"Origin: {origin}").status == 204
        assert "Access-Control" not in plain.ask("GET", "/api/health", f"Origin: {origin}").head
    for origin in (
        "http://localhost.evil",
        "http://localhost:5173.evil",
        "null",
        "http://evil",
        "file://localhost",
    ):
        assert "Access-Control" not in dev.ask("GET", "/api/health", f"Origin: {origin}").head
        assert dev.ask("OPTIONS", "/api/workspaces", f"Origin: {origin}").status == 405


def test_a_body_that_never_ends_is_cut(served: Any) -> None:
    unix = served("unix")
    chunk = "10000\r\n" + "a" * 0x10000 + "\r\n"
    head = (
        "POST /api/templates HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    assert unix.send(head + chunk * 17 + "0\r\n\r\n").code == "too_large"
    assert unix.send(head + "2\r\n{}\r\n0\r\n\r\n").code == "validation_failed"
    both = head.replace("Transfer-Encoding", "Content-Length: 5\r\nTransfer-Encoding")
    assert unix.send(both + "0\r\n\r\n").status == 400


RESULT = "it failed for svc_pat_Ab1A[redacted]"


def test_a_failure_of_a_librarys_own_brings_its_trace(capfd: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("svc.test")
    logger.handlers, logger.propagate = [web_listeners._Lines("tls")], False
    try:
        raise KeyError("svc_pat_Ab1A" + "Ab1" * 15)
    except KeyError:
        logger.exception("it failed for %s", "svc_pat_Ab1A" + "Ab1" * 15)
    line = json.loads(capfd.readouterr().err)
    assert (line["process"], line["level"], line["message"]) == ("tls", "error", RESULT)
    assert "Ab1Ab1" not in json.dumps(line)
    assert "KeyError: 'svc_pat_Ab1A[redacted]'" in line["trace"]


def test_a_token_in_a_path_is_not_in_the_log(served: Any, capfd: pytest.CaptureFixture[str]) -> None:
    tcp, secret = served("tls"), "Ab1" * 15
    for target in (f"/svc_pat_Ab1A{secret}", f"/%73vc_pat_Ab1A{secret}", f"/svc%5Fpat%5FAb1A{secret}/x?y=z"):
        assert tcp.ask("GET", target).code == "not_found"
    assert tcp.send(f"GET svc_pat_Ab1A{secret} HTTP/1.1\r\n\r\n").status == 400
    said = capfd.readouterr().err
    assert said.count("/svc_pat_Ab1A[redacted]") == 3
    assert "Ab1Ab1" not in said


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("GARBAGE\r\n\r\n", 400),
        ("GET / HTTP/9.9\r\n\r\n", 400),
        ("GET /" + "a" * 9000 + " HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        ("GET / HTTP/1.1\r\nHost: localhost\r\n" + "X-A: b\r\n" * 120 + "\r\n", 431),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nBad Name: x\r\n\r\n", 400),
    ],
)
def test_what_is_no_http_is_answered_in_the_same_shape(served: Any, request_text: str, status: int) -> None:
    answer = served("unix").send(request_text)
    assert (answer.status, answer.code) == (status, "invalid_request")
    assert answer.body["error"]["request_id"] in answer.head
