"""Requests per second over a Unix socket: a few kept connections, no client library in the way."""

from __future__ import annotations

import os
import pwd
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.pairs import Row

CONNECTIONS = 4
SECONDS = 1.0
ROUNDS = 5
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)

HELLO = """
import sys
from gunicorn.app.base import BaseApplication

def hello(environ, start_response):
    body = b"hello\\n"
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
    return [body]

class Server(BaseApplication):
    def load_config(self):
        options = {"bind": "unix:" + sys.argv[1], "worker_class": "gthread", "threads": 64, "workers": 1,
                   "keepalive": 5, "worker_tmp_dir": "/dev/shm", "control_socket_disable": True,
                   "loglevel": "error"}
        for name, value in options.items():
            self.cfg.set(name, value)
    def load(self):
        return hello

Server().run()
"""


def _client(path: str, target: str, seconds: float) -> int:
    """Requests one after the other on CONNECTIONS connections; how many came back."""
    request = f"GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    sockets = []
    for _ in range(CONNECTIONS):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(path)
        sockets.append(connection)
    done, end = 0, time.perf_counter() + seconds
    for connection in sockets:
        connection.sendall(request)
    while time.perf_counter() < end:
        for connection in sockets:
            _answer(connection)
            done += 1
            connection.sendall(request)
    return done


def _answer(connection: socket.socket) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            raise RuntimeError("the server closed the connection")
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode(errors="replace"))
    found = LENGTH.search(head)
    left = int(found[1]) - len(body) if found else 0
    while left > 0:
        left -= len(connection.recv(65536))


def rate(user: str, path: str, target: str) -> float:
    """Requests per second of that Linux user for SECONDS."""
    account = pwd.getpwnam(user)
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgroups([])
            os.setresgid(*[account.pw_gid] * 3)
            os.setresuid(*[account.pw_uid] * 3)
            os.write(write, str(_client(path, target, SECONDS)).encode())
            code = 0
        except (OSError, RuntimeError) as error:
            print(f"bench: {error}", file=sys.stderr)
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read) as file:
        text = file.read()
    os.waitpid(pid, 0)
    return int(text or 0) / SECONDS


@contextmanager
def hello_server() -> Iterator[str]:
    """A raw WSGI hello under the same gunicorn with the same options; its socket's path."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = os.path.join(folder, "hello.sock")
        server = subprocess.Popen([sys.executable, "-c", HELLO, path])
        try:
            for _ in range(100):
                if os.path.exists(path):
                    break
                time.sleep(0.05)
            os.chmod(path, 0o666)
            yield path
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(10)


def against_hello(name: str, user: str, path: str, target: str) -> Row:
    """Our endpoint's requests per second against the raw hello's, in turn."""
    with hello_server() as hello:
        rate(user, path, target), rate(user, hello, "/")
        pairs = [(rate(user, path, target), rate(user, hello, "/")) for _ in range(ROUNDS)]
    return Row(
        name,
        statistics.median(mine for mine, _ in pairs),
        statistics.median(other for _, other in pairs),
        statistics.median(mine / other for mine, other in pairs),
        bar=0.2,
        reach=0.4,
        unit="req/s",
        higher_is_better=True,
    )
