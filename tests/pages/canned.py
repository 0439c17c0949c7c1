"""The pages of the real app over TLS, before an API that answers from a table.

For states that a host without GPUs does not have, or not for long: GPUs of others, a lost one, an
answer that never comes, a refusal of each kind. What the service itself answers is in tests/stories.
"""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from wsgiref.types import StartResponse

from unit.serving import Visitor
from werkzeug.serving import WSGIRequestHandler, make_server

from svc.settings import Settings
from svc.web.app import build

AXE = Path(sys.prefix) / "share/axe-core/axe.min.js"  # tests/run pages fetches it
AXE_PATH = "/axe.min.js"
REFUSED = {
    "fields": [],
    "details": {},
    "retryable": False,
    "request_id": "req-5b1c09aa41",
    "hint": "",
    "action": None,
}

BROKEN_OFF = "broken off"
Answer = tuple[int, Any, dict[str, str]]


@runtime_checkable
class Held(Protocol):
    """An answer that lasts: a stream, a WebSocket."""

    def respond(self, environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        """Begin it."""

    def end(self) -> None:
        """End it: the server is closed."""


def self_signed(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost and its key, made in the folder."""
    chain, key = folder / "chain.pem", folder / "key.pem"
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command = ["openssl", "req", *kind, "-days", "3", "-subj", "/CN=localhost", "-keyout", key, "-out", chain]
    subprocess.run(command, check=True, capture_output=True)
    return chain, key


class Listener:
    """The app on a port of its own, with its pages; what asks for the API is answered by `canned`."""

    def __init__(self, certificate: tuple[Path, Path]) -> None:
        self.canned: Canned
        self.app = build(
            Settings(environ={"SVC_LOG_LEVEL": "error"}, file={}), None, listener="tls", dev=False
        )  # type: ignore[arg-type]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        self.server = make_server(
            "127.0.0.1", 0, self.call, threaded=True, ssl_context=context, request_handler=_Quiet
        )
        self.url = f"https://localhost:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def call(self, environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        """One request, as WSGI has it."""
        environ["gunicorn.socket"] = Visitor()
        if environ["PATH_INFO"].startswith("/api/"):
            return self.canned.call(environ, start)
        if environ["PATH_INFO"] == AXE_PATH:
            start("200 OK", [("Content-Type", "text/javascript"), ("Cache-Control", "max-age=86400")])
            return [AXE.read_bytes()]
        return self.app.wsgi_app(environ, start)

    def close(self) -> None:
        """End the server."""
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


class Canned:
    """What the API answers in one test.

    `answers` has for each "METHOD path" a body, an Answer, a Held, or a function of one.

    A function finds the WSGI environ of its request in `present.environ`, with the body as `svc.body`.
    """

    def __init__(self, listener: Listener) -> None:
        self.answers: dict[str, Any] = {}
        self.requests: list[tuple[str, Any, dict[str, str]]] = []
        self.streams: list[Stream] = []  # of events
        self.held: list[Held] = []  # these, and other streams
        self.is_closed = False
        self.present = threading.local()
        self.released = threading.Event()
        self.url = listener.url
        listener.canned = self

    def close(self) -> None:
        """End the streams that are still open, and whatever asks for another one."""
        self.release()
        self.is_closed = True
        for held in self.held:
            held.end()

    def refuse(self, request: str, status: int, code: str, message: str, **more: Any) -> None:
        """Answer a request with an error."""
        after = {"Retry-After": str(more.pop("after"))} if "after" in more else {}
        self.answers[request] = (
            status,
            {"error": REFUSED | {"code": code, "message": message} | more},
            after,
        )

    def sent(self, request: str) -> list[tuple[Any, dict[str, str]]]:
        """The bodies and headers of these requests so far."""
        return [(body, headers) for line, body, headers in self.requests if line == request]

    def break_off(self, request: str) -> None:
        """End the connection instead of an answer."""
        self.answers[request] = BROKEN_OFF

    def hold(self, *requests: str) -> None:
        """Give no answer to these before `release`: what a screen shows while it waits."""

        def held(answer: Any) -> Any:
            return lambda: (self.released.wait(120), answer() if callable(answer) else answer)[1]

        for request in requests:
            self.answers[request] = held(self.answers.get(request, BROKEN_OFF))

    def release(self) -> None:
        """Give the answers that were held."""
        self.released.set()

    def event(self, kind: str, **more: Any) -> None:
        """Send an event on all open streams."""
        for stream in self.streams:
            stream.send(kind, more)

    def call(self, environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        """One request of the API."""
        request = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        headers = {
            key.removeprefix("HTTP_"): value for key, value in environ.items() if key.startswith("HTTP_")
        }
        headers["QUERY"] = environ.get("QUERY_STRING", "")
        is_json = environ.get("CONTENT_TYPE") == "application/json"
        self.requests.append((request, json.loads(body) if is_json and body else body or None, headers))
        if request == "GET /api/events" and request not in self.answers:
            self.streams.append(Stream())
            return self._hold(self.streams[-1], environ, start)
        answer = self.answers.get(
            request, (404, {"error": REFUSED | {"code": "not_found", "message": request}}, {})
        )
        self.present.environ = environ | {"svc.body": body}
        answer = answer() if callable(answer) else answer
        if answer == BROKEN_OFF:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            raise ConnectionAbortedError
        if isinstance(answer, Held):
            return self._hold(answer, environ, start)
        status, value, more = answer if isinstance(answer, tuple) else (200, answer, {})
        if isinstance(value, bytes):
            start(f"{status} -", [("Content-Type", "application/octet-stream"), *more.items()])
            return [value]
        start(f"{status} -", [("Content-Type", "application/json"), *more.items()])
        return [b"" if value is None else json.dumps(value).encode()]

    def _hold(self, held: Held, environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        self.held.append(held)
        if self.is_closed:
            held.end()
        return held.respond(environ, start)


class Stream:
    """One open stream of events."""

    def __init__(self) -> None:
        self.blocks: list[bytes] = [b": hello\n\n"]
        self.changed = threading.Condition()
        self.is_open = True
        self.number = 0

    def send(self, kind: str, data: dict[str, Any]) -> None:
        """Send one event."""
        with self.changed:
            self.number += 1
            data = data if kind in ("restarting", "gap") else {"id": self.number, "type": kind} | data
            head = f"id: {self.number}\n" if "id" in data else ""
            self.blocks.append(f"{head}event: {kind}\ndata: {json.dumps(data)}\n\n".encode())
            self.changed.notify_all()

    def send_raw(self, block: str) -> None:
        """Send an event as it is, without its last two line ends."""
        with self.changed:
            self.blocks.append(f"{block}\n\n".encode())
            self.changed.notify_all()

    def respond(self, environ: dict[str, Any], start: StartResponse) -> Iterable[bytes]:
        """Begin it."""
        start("200 OK", [("Content-Type", "text/event-stream")])
        return self

    def end(self) -> None:
        """Close it."""
        with self.changed:
            self.is_open = False
            self.changed.notify_all()

    def __iter__(self) -> Iterator[bytes]:
        while True:
            with self.changed:
                self.changed.wait_for(lambda: self.blocks or not self.is_open)
                if not self.blocks:
                    return
                block = self.blocks.pop(0)
            yield block


class _Quiet(WSGIRequestHandler):
    """Writes no log, and waits for no request on a connection that a browser keeps in store."""

    timeout = 5.0

    def log(self, type: str, message: str, *values: Any) -> None:
        """Nothing."""
