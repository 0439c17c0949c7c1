"""Fair gthread worker: per-client thread limits and read timeouts.

gunicorn's own gthread worker reads a request in one of its threads for as long
as the client takes to send it. Here a request has READING_S to arrive, however
slowly its bytes come. One client (a uid on the host socket, an address on the
TLS listener) has at most THREADS_PER_CLIENT threads; its other requests wait.
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

from gunicorn.http import errors as http_errors
from gunicorn.workers import gthread

from svc.errors import InvalidRequest, SvcError
from svc.limits import CONNECTIONS_PER_CLIENT, READING_S, SENDING_S, THREADS_PER_CLIENT
from svc.log import log
from svc.web.caller import new_request_id, peer_uid
from svc.web.gunicorn_worker import shutdown

FIRST_BYTES_S = 0.05  # for a new connection's first bytes, before it waits without a thread
STATUSES = (  # as gunicorn answers them itself
    (http_errors.InvalidResponseHeader, 500),
    (http_errors.InvalidResponseHeaderName, 500),
    (http_errors.ConfigurationProblem, 500),
    (http_errors.UnsupportedTransferCoding, 501),
    (http_errors.LimitRequestLine, 414),
    (http_errors.LimitRequestHeaders, 431),
    (http_errors.ExpectationFailed, 417),
    ((http_errors.ForbiddenProxyRequest, ssl.SSLError), 403),
    (http_errors.ParseException, 400),
)


class FairThreads(gthread.ThreadWorker):
    """The gthread worker with thread limits per client and read timeouts.

    Only the main thread uses the counts; all threads write `reading`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.running: Counter[str] = Counter()  # client -> threads
        self.waiting: defaultdict[str, deque[Any]] = defaultdict(deque)  # client -> connections
        self.reading: dict[Any, float] = {}  # connection -> deadline

    def init_process(self) -> None:
        """Called in the worker process, before its first connection."""
        shutdown.prepare()
        super().init_process()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """SIGTERM: streams end now, other requests in flight have STOP_GRACEFUL_S."""
        shutdown.begin()
        super().handle_exit(sig, frame)

    def enqueue_req(self, conn: Any) -> None:
        """Give a readable connection a thread, now or when its client has one to spare."""
        if not hasattr(conn, "svc_client"):
            conn.svc_client = client_of(conn.sock)
            if self._connections(conn.svc_client) > CONNECTIONS_PER_CLIENT:
                self.nr_conns -= 1
                conn.close()
                return
        if self.running[conn.svc_client] >= THREADS_PER_CLIENT:
            self.waiting[conn.svc_client].append(conn)
            return
        self.running[conn.svc_client] += 1
        super().enqueue_req(conn)

    def finish_request(self, conn: Any, future: Any) -> None:
        """A thread is free again: the same client's next connection gets it first."""
        client = conn.svc_client
        self.running[client] -= 1
        super().finish_request(conn, future)
        if self.waiting[client]:
            self.enqueue_req(self.waiting[client].popleft())
            return
        del self.waiting[client]
        if not self.running[client]:
            del self.running[client]

    def _connections(self, client: str) -> int:
        idle = sum(conn.svc_client == client for conn in (*self.keepalived_conns, *self.pending_conns))
        return self.running[client] + len(self.waiting.get(client, ())) + idle

    def handle(self, conn: Any) -> Any:
        """Read a request and serve it; called in a thread."""
        if not conn.initialized and not conn.wait_for_data(FIRST_BYTES_S):
            return gthread._DEFER
        self.reading[conn] = time.monotonic() + READING_S
        try:
            keep_alive = super().handle(conn)
        finally:
            self.reading.pop(conn, None)
        if not keep_alive:
            # gunicorn closes in its only main thread, which then accepts nothing for two seconds
            # for each connection that its client keeps open.
            conn.close(graceful=True)
            conn.close = _already_closed
        return keep_alive

    def handle_request(self, req: Any, conn: Any) -> Any:
        """Serve a request whose head has been read; each part of both bodies has a timeout."""
        self.reading.pop(conn, None)
        conn.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SENDING_S, 0))
        read = req.body.read

        def read_in_time(size: int | None = None) -> bytes:
            self.reading[conn] = time.monotonic() + READING_S
            try:
                content: bytes = read(size)
            finally:
                self.reading.pop(conn, None)
            return content

        req.body.read = read_in_time
        return super().handle_request(req, conn)

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answer malformed HTTP, which never reaches the app, with the error body of every other error.

        The log gets nothing of what was sent: it may be a password in the wrong place.
        """
        status, rid = status_of(exc), new_request_id()
        facts = {"status": status, "error": type(exc).__name__, "address": addr[0] if addr else ""}
        if status == http.HTTPStatus.INTERNAL_SERVER_ERROR:
            facts["trace"] = "".join(traceback.format_tb(exc.__traceback__))
        process = str(self.cfg.proc_name).removeprefix("svc-")
        log(process, "malformed request", "warning" if status < 500 else "error", rid=rid, **facts)
        with contextlib.suppress(OSError):
            client.sendall(_error_response(status, rid))

    def murder_pending(self) -> None:
        """Each second: close connections that wait without a thread, or read in one, for too long."""
        super().murder_pending()
        now = time.monotonic()
        for conn, deadline in list(self.reading.items()):
            if deadline <= now:
                with contextlib.suppress(OSError):  # ends the read in its thread
                    socket.socket.shutdown(conn.sock, socket.SHUT_RDWR)


def status_of(error: BaseException) -> int:
    """The HTTP status for an exception of gunicorn's parser."""
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def _error_response(status: int, rid: str) -> bytes:
    error = (InvalidRequest if status < 500 else SvcError)("the request is not well-formed HTTP/1.1")
    body = json.dumps(error.body(rid)).encode()
    head = (
        f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nX-Request-Id: {rid}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body


def _already_closed(graceful: bool = False) -> None:
    """Replaces the close method of a connection that is closed."""


def client_of(sock: socket.socket) -> str:
    """A key to count connections by: the peer's uid, or its address (IPv6: its /64 network).

    Never used to authenticate; empty for a peer that has disconnected.
    """
    try:
        if sock.family == socket.AF_UNIX:
            return f"uid {peer_uid(sock)}"
        address = ipaddress.ip_address(sock.getpeername()[0].partition("%")[0])
    except (OSError, ValueError):
        return ""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(address.ipv4_mapped or ipaddress.ip_network((address, 64), strict=False))
