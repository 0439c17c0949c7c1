"""A listener's threads: a client that is slow, or comes in great numbers, delays itself alone.

gunicorn's own gthread worker reads a request in one of its threads for as long
as the client takes to send it. Here a request has READING_S to arrive however
slowly its bytes come, and one client (a uid on the host socket, an address on
the TLS listener) has at most PER_CLIENT threads; its further requests wait for one.
"""

from __future__ import annotations

import contextlib
import http
import ipaddress
import json
import socket
import ssl
import struct
import time
import traceback
from collections import Counter, defaultdict, deque
from typing import Any

from gunicorn.http import errors as refused
from gunicorn.workers import gthread

from svc.errors import InvalidRequest, SvcError
from svc.limits import CONNECTIONS_PER_CLIENT, READING_S, SENDING_S, THREADS_PER_CLIENT
from svc.log import log
from svc.web.caller import new_request_id, peer_uid
from svc.web.gunicorn_worker import shutdown

AT_ONCE_S = 0.05  # for a new connection's first bytes, before it waits without a thread
STATUSES = (
    ((refused.InvalidResponseHeader, refused.InvalidResponseHeaderName, refused.ConfigurationProblem), 500),
    (refused.UnsupportedTransferCoding, 501),
    (refused.LimitRequestLine, 414),
    (refused.LimitRequestHeaders, 431),
    (refused.ExpectationFailed, 417),
    ((refused.ForbiddenProxyRequest, ssl.SSLError), 403),
    (refused.ParseException, 400),
)


class FairThreads(gthread.ThreadWorker):
    """The gthread worker with patience, and places, of a known size. Counts are the main thread's alone."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.running: Counter[str] = Counter()
        self.waiting: defaultdict[str, deque[Any]] = defaultdict(deque)
        self.reading: dict[Any, float] = {}  # connection -> when its patience ends; all threads write it

    def init_process(self) -> None:
        """In the worker's own process, before its first connection."""
        shutdown.prepare()
        super().init_process()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """SIGTERM: streams end now, other requests in flight have STOP_GRACEFUL_S."""
        shutdown.begin()
        super().handle_exit(sig, frame)

    def enqueue_req(self, conn: Any) -> None:
        """Give a readable connection a thread, now or when its client has one to spare."""
        if not hasattr(conn, "whose"):
            conn.whose = client_of(conn.sock)
            if self._held(conn.whose) > CONNECTIONS_PER_CLIENT:
                self.nr_conns -= 1
                conn.close()
                return
        if self.running[conn.whose] >= THREADS_PER_CLIENT:
            self.waiting[conn.whose].append(conn)
            return
        self.running[conn.whose] += 1
        super().enqueue_req(conn)

    def finish_request(self, conn: Any, future: Any) -> None:
        """A thread is free again; its client's next connection comes first to it."""
        self.running[conn.whose] -= 1
        super().finish_request(conn, future)
        line = self.waiting[conn.whose]
        if line:
            self.enqueue_req(line.popleft())
            return
        del self.waiting[conn.whose]
        if not self.running[conn.whose]:
            del self.running[conn.whose]

    def _held(self, whose: str) -> int:
        idle = sum(conn.whose == whose for conn in (*self.keepalived_conns, *self.pending_conns))
        return self.running[whose] + len(self.waiting.get(whose, ())) + idle

    def handle(self, conn: Any) -> Any:
        """In a thread: read a request and serve it."""
        if not conn.initialized and not conn.wait_for_data(AT_ONCE_S):
            return gthread._DEFER
        self.reading[conn] = time.monotonic() + READING_S
        try:
            goes_on = super().handle(conn)
        finally:
            self.reading.pop(conn, None)
        if not goes_on:
            # gunicorn does this in its one main thread: two seconds without a listener for
            # each connection that its client does not close.
            conn.close(graceful=True)
            conn.close = closed
        return goes_on

    def handle_request(self, req: Any, conn: Any) -> Any:
        """The head is there: what the app reads of the body has its own patience, and so has the answer."""
        self.reading.pop(conn, None)
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SENDING_S, 0))
        read = req.body.read

        def patiently(size: int | None = None) -> bytes:
            self.reading[conn] = time.monotonic() + READING_S
            try:
                content: bytes = read(size)
            finally:
                self.reading.pop(conn, None)
            return content

        req.body.read = patiently
        return super().handle_request(req, conn)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """What is no HTTP never reaches the app; it is answered in the same shape all the same.

        Of what was sent the log gets nothing: it may be a password in the wrong place.
        """
        status, rid = status_of(exc), new_request_id()
        facts = {"status": status, "error": type(exc).__name__, "address": addr[0] if addr else ""}
        if status == http.HTTPStatus.INTERNAL_SERVER_ERROR:
            facts["trace"] = "".join(traceback.format_tb(exc.__traceback__))
        process = str(self.cfg.proc_name).removeprefix("svc-")
        log(process, "no request", "warning" if status < 500 else "error", rid=rid, **facts)
        with contextlib.suppress(OSError):
            client.sendall(malformed(status, rid))

    def murder_pending(self) -> None:
        """Each second: end what waits without a thread for too long, and what reads for too long in one."""
        super().murder_pending()
        now = time.monotonic()
        for conn, until in list(self.reading.items()):
            if until <= now:
                with contextlib.suppress(OSError):  # its read ends with this
                    socket.socket.shutdown(conn.sock, socket.SHUT_RDWR)


def status_of(error: BaseException) -> int:
    """How what gunicorn refuses to read is answered: as gunicorn itself would."""
    for kind, status in STATUSES:
        if isinstance(error, kind):
            return status
    return 500


def malformed(status: int, rid: str) -> bytes:
    """The whole answer to something that is no request of HTTP/1.1, in the shape of every error."""
    row: type[SvcError] = InvalidRequest if status < 500 else SvcError
    body = json.dumps(row("the request is not well-formed HTTP/1.1").body(rid)).encode()
    head = (
        f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nX-Request-Id: {rid}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body


def closed(graceful: bool = False) -> None:
    """In place of a connection's close: it has been done."""


def client_of(sock: socket.socket) -> str:
    """Whose connection it is, for counting alone: the uid, or the address (IPv6: its network)."""
    try:
        if sock.family == socket.AF_UNIX:
            return f"uid {peer_uid(sock)}"
        address = ipaddress.ip_address(sock.getpeername()[0].partition("%")[0])
    except (OSError, ValueError):  # gone already
        return ""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(address.ipv4_mapped or ipaddress.ip_network((address, 64), strict=False))
