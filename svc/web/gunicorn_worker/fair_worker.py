"""Fair gthread worker: a client that is slow, or comes in great numbers, delays itself alone.

gunicorn's own gthread worker gives each connection a thread that reads its request
for as long as the client takes to send it. Here the main thread reads handshakes and
heads as they arrive, and a thread gets a connection with a whole head. A client (a user
on the host socket, an address on the TLS listener) has at most THREADS_PER_CLIENT threads;
neither the last threads nor the last connections go to those who have many.
"""

from __future__ import annotations

import contextlib
import errno
import http
import os
import resource
import socket
import ssl
import struct
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from gunicorn.workers import gthread

from svc import descriptors, heaps
from svc.clients import STRANGERS, SocketOwners, Uids, peer_uid
from svc.db.connect import close_database
from svc.domain import addresses
from svc.host.ids import new_request_id
from svc.limits import BODIES_AWAITED_MAX, CONNECTIONS_MAX, READING_S, SENDING_S, STREAMS_TOTAL
from svc.log import Counted
from svc.web.gunicorn_worker import detach, malformed, note_client, responses, shutdown
from svc.web.gunicorn_worker.connections import NOTHING, READ, Connection, Ended
from svc.web.gunicorn_worker.renewal import Renewal
from svc.web.gunicorn_worker.shares import Share, Shares
from svc.web.gunicorn_worker.thread_pool import IDLE_S, ThreadPool
from svc.web.gunicorn_worker.tls_context import TlsContext

_GONE = (ssl.SSLEOFError, ssl.SSLZeroReturnError)  # the client has closed the connection
_serving = threading.local()  # `head`: of the request that this thread serves
ACCEPTED_AT_ONCE = 64  # connections; then others' events have their turn
TURN_S = 0.01  # for the events of one look at the poller; the clients with the fewest connections come first
TICK_S = 0.25  # between two looks for connections that take too long
UNREAD_BODY_S = 0.05  # for the rest of a body that nobody reads, before the connection is closed instead
BODY_PATIENCE_S = 0.25  # for the next part of a body, when too many threads wait for one
DESCRIPTORS_EACH = 8  # for a thread: the database, reply paths, a transfer
DESCRIPTORS_BESIDE = 128 + 2 * STREAMS_TOTAL  # for the process and its streams
CROWD = 64  # connections at once: what they took is worth giving back when they have gone
DESCRIPTORS = 8192  # of a listener's process, if the host allows as many


class FairThreads(gthread.ThreadWorker):
    """The gthread worker that watches connections until a whole head is there, and shares threads out.

    The main thread alone uses the shares; all threads write `reading`.
    """

    uids: Uids | None = None  # set before there is a worker, both
    uids_of_clients: SocketOwners | None = None  # tells the users of this host apart, who come by loopback
    alive: bool  # gunicorn's: false ends the loop
    beat: Callable[[], None] | None = None  # tells whoever watches the process that its main thread works

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.shares = Shares(self.cfg.threads, _connections(self.cfg.threads))
        # Accepting never stops.
        self.worker_connections = self.shares.most + ACCEPTED_AT_ONCE + STREAMS_TOTAL
        self.reading: dict[Any, float] = {}  # connection -> deadline for the next part of its body
        self.tls = TlsContext(self.cfg) if self.cfg.is_ssl else None
        self.name: Any = None  # of the listening socket
        self.ticked_at = self.crowded_at = 0.0
        self.renewal = Renewal()
        self.lines = Counted(
            str(self.cfg.proc_name).removeprefix("svc-"), "malformed request", malformed.LINES_A_SECOND
        )

    def init_process(self) -> None:
        """Called in the worker process, before its first connection."""
        shutdown.prepare()
        responses.install()
        super().init_process()

    def get_thread_pool(self) -> Any:
        """Threads that end when they are not needed any more, with their connections to the database."""
        return ThreadPool(at_end=close_database)

    def notify(self) -> None:
        """Called by the main thread at least once a second, also while requests in flight end."""
        if self.beat:
            self.beat()

    def handle_exit(self, sig: int, frame: Any) -> None:
        """SIGTERM: streams end now, other requests in flight have STOP_GRACEFUL_S."""
        shutdown.begin()
        super().handle_exit(sig, frame)

    # --- in the main thread: connections -------------------------------------------------

    def accept(self, listener: socket.socket) -> None:
        """Take what waits at the listener, so that nobody waits behind silent connections."""
        self.name = self.name or listener.getsockname()
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                sock, address = listener.accept()
            except OSError as error:  # none is left, or it has gone again, or there is no descriptor for it
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    self._make_room()
                return
            try:
                share = self.shares.find(self._client_of(sock, address))
            except OSError:
                sock.close()
                continue
            sock = descriptors.guarded(sock)
            self._admit(Connection(self.cfg, sock, address, self.name, share))

    def _client_of(self, sock: socket.socket, address: Any) -> str:
        """The client of a connection; never used to authenticate. Raises OSError."""
        if sock.family == socket.AF_UNIX:
            return self._client_of_uid(peer_uid(sock))
        client = addresses.client_of(address[0])
        if client != addresses.LOOPBACK or self.uids_of_clients is None:
            return client
        uid = self.uids_of_clients.uid_of(address, sock.getsockname())
        user = STRANGERS if uid is None else self._client_of_uid(uid)
        return client if user == STRANGERS else f"{client} {user}"

    def _client_of_uid(self, uid: int) -> str:
        return self.uids.client_of(uid) if self.uids else f"uid {uid}"

    def _admit(self, conn: Connection) -> None:
        """Count the connection and begin to read; for one too many another gives way, or this one."""
        self.nr_conns += 1
        self.shares.connections += 1
        if self.shares.connections > self.shares.most:
            self._close(self.shares.giving_way(conn.share) or conn)
        if conn.is_open:
            self._advance(conn)

    def _make_room(self) -> None:
        """The client with the most connections loses one; without any the main thread does not spin."""
        other = self.shares.giving_way()
        if other is not None:
            self._close(other)
        else:
            time.sleep(TURN_S)

    def _advance(self, conn: Connection) -> None:
        """Go on with a connection that no thread serves, as far as its bytes go."""
        try:
            events = conn.throw_away() if conn.is_ending else conn.advance(self.tls)
        except malformed.PlainHttp as error:
            self._refuse_plain(conn, error)
            return
        except (OSError, ValueError, Ended) as error:
            if isinstance(error, ssl.SSLError) and not isinstance(error, _GONE):
                self.handle_error(None, None, conn.client, error)
            self._close(conn)
            return
        if events == NOTHING:
            self._await_thread(conn)
        else:
            self._watch(conn, events)

    def _refuse_plain(self, conn: Connection, error: malformed.PlainHttp) -> None:
        """Say where HTTPS is; the answer fits the empty buffer of the connection."""
        _serving.head = bytes(conn.head)
        self.handle_error(None, conn.sock, conn.client, error)
        try:
            conn.begin_to_end()
        except OSError:
            self._close(conn)
        else:
            self._watch(conn, READ)

    def _await_thread(self, conn: Connection) -> None:
        self._watch(conn, NOTHING)
        conn.share.waiting.append(conn)
        self._serve_waiting()

    def _watch(self, conn: Connection, events: int) -> None:
        """Have the poller watch it for that; NOTHING: no longer."""
        if events == conn.polled:
            return
        if conn.polled:
            self.poller.unregister(conn.descriptor)
        if events:
            self.poller.register(conn.descriptor, events, partial(self._on_ready, conn))
            conn.share.idle[conn] = None
        else:
            conn.share.idle.pop(conn, None)
        conn.polled = events

    def _on_ready(self, conn: Connection, _descriptor: int) -> None:
        if conn.polled:  # not closed meanwhile, for an event before this one
            self._advance(conn)

    def _close(self, conn: Connection) -> None:
        """Close a connection that no thread serves."""
        conn.is_open = False
        with contextlib.suppress(KeyError, ValueError, OSError):
            self._watch(conn, NOTHING)
        conn.share.idle.pop(conn, None)
        with contextlib.suppress(ValueError):
            conn.share.waiting.remove(conn)
        self.nr_conns -= 1
        self.shares.connections -= 1
        self.shares.forget(conn.share)
        conn.close()

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """As gunicorn's, but for TURN_S: the poller tells the rest again."""
        try:
            events = self.poller.select(min(timeout, TICK_S) if self.nr_conns else timeout)
        except InterruptedError:
            return
        ends_at = time.monotonic() + TURN_S
        for key, _ in sorted(events, key=_crowd) if len(events) > 1 else events:
            key.data(key.fileobj)
            if time.monotonic() > ends_at:
                return

    def murder_pending(self) -> None:
        """Close connections whose clients take too long, and end reads of bodies that do."""
        now = time.monotonic()
        if now < self.ticked_at + TICK_S:
            return
        self.ticked_at = now
        self._give_back(now)
        if self.alive and self.renewal.is_due(self.nr_conns, now):
            self.log.info("replaced by a new process: %d KiB are kept of earlier use", self.renewal.grown_kib)
            self.alive = False  # nobody is connected, and nothing is accepted any more
        for share in list(self.shares.of_client.values()):
            for conn in list(share.idle):
                if self.alive and conn.lets_body_wait(now):
                    conn.holds_body = True
                    self._await_thread(conn)
                elif conn.is_overdue(now, stopping=not self.alive):
                    self._close(conn)
        for conn, deadline in list(self.reading.items()):
            if deadline <= now:
                _cut(conn)

    def _give_back(self, now: float) -> None:
        """IDLE_S after a crowd: strangers take memory, but no thread whose end gives it back."""
        if self.nr_conns >= CROWD:
            self.crowded_at = now
        elif self.crowded_at and now > self.crowded_at + IDLE_S:
            self.crowded_at = 0.0
            heaps.give_back()

    # --- in the main thread: threads -------------------------------------------------------

    def enqueue_req(self, conn: Connection) -> None:
        """Give a connection with a whole head a thread."""
        conn.share.running += 1
        conn.share.bodies += conn.holds_body
        self.shares.running += 1
        super().enqueue_req(conn)

    def _serve_waiting(self) -> None:
        while (conn := self.shares.next_waiting()) is not None:
            self.enqueue_req(conn)

    def finish_request(self, conn: Connection, future: Any) -> None:
        """A thread is free again; its connection awaits the next request, or its end."""
        conn.share.running -= 1
        conn.share.bodies -= conn.holds_body
        self.shares.running -= 1
        if conn.detached is not None:
            self._detach(conn, conn.detached)
            self._serve_waiting()
            return
        try:
            if not future.cancelled() and future.result():
                conn.await_request()
            else:
                conn.begin_to_end()
        except Exception:  # noqa: BLE001  as gunicorn does: whatever it is, the connection ends
            self._close(conn)
        else:
            if conn.has_bytes():
                self._advance(conn)
            else:  # the usual case: nothing to look for yet
                self._watch(conn, READ)
        self._serve_waiting()

    def _detach(self, conn: Connection, detached: detach.Detached) -> None:
        """Give the connection to its stream; until that ends it counts as one of the process alone."""
        self.shares.connections -= 1
        self.shares.forget(conn.share)
        conn.is_open = False
        conn.sock.setblocking(False)
        received = conn.parser.unreader.take_buffered()
        at_end = partial(self.method_queue.defer, self._forget_stream)
        detached.stream.begin(conn.sock, detached.head, received, at_end)

    def _forget_stream(self) -> None:
        self.nr_conns -= 1

    # --- in a thread -----------------------------------------------------------------------

    def handle(self, conn: Connection) -> Any:
        """Serve the request whose head has arrived."""
        conn.sock.setblocking(True)
        _serving.head = bytes(conn.head)
        if conn.problem is not None:
            _limit_sending(conn.sock)
            self.handle_error(None, conn.sock, conn.client, conn.problem)
            return False
        conn.give_to_parser()
        return super().handle(conn)

    def handle_request(self, req: Any, conn: Connection) -> Any:
        """Serve a request whose head has been parsed; each part of both bodies has a timeout."""
        conn.open_body()
        note_client(conn.sock, conn.share.client)
        _limit_sending(conn.sock)
        read = req.body.read

        def read_in_time(size: int | None = None) -> bytes:
            self._await_body(conn)
            try:
                content: bytes = read(size)
            finally:
                self.reading.pop(conn, None)
            return content

        req.body.read = read_in_time
        try:
            with detach.allowed():
                return super().handle_request(req, conn)
        except detach.Detached as detached:
            conn.detached = detached
            return False

    def _await_body(self, conn: Connection) -> None:
        """Note that a thread waits for a body; when too many do, one of the largest client gives way."""
        self.reading[conn] = time.monotonic() + READING_S
        if len(self.reading) > min(BODIES_AWAITED_MAX, self.cfg.threads // 2):
            before = time.monotonic() + READING_S - BODY_PATIENCE_S
            waiting = [one for one, deadline in list(self.reading.items()) if deadline < before]
            counts = Counter(one.share.client for one in waiting)
            if waiting:
                _cut(max(waiting, key=lambda one: counts[one.share.client]))  # the first: the longest waiting

    def _keepalive_after(self, conn: Connection, keepalive: Any) -> bool:
        """Whether the connection can be reused; no thread waits for the rest of a body that nobody read."""
        return bool(keepalive and conn.parser.finish_body(deadline=time.monotonic() + UNREAD_BODY_S))

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Answer malformed HTTP (`client` is None where nothing can be answered) and log it.

        The log gets nothing of what was sent: it may be a password in the wrong place.
        """
        status, rid = malformed.status_of(exc), new_request_id()
        head = getattr(_serving, "head", b"")
        message = malformed.message_of(exc, head)
        facts = {"status": status, "error": type(exc).__name__, "address": addr[0] if addr else ""}
        if status == http.HTTPStatus.INTERNAL_SERVER_ERROR:
            facts["trace"] = "".join(traceback.format_tb(exc.__traceback__))
        self.lines.write("warning" if status < 500 else "error", rid=rid, **facts)
        if client is not None:
            with contextlib.suppress(OSError):
                client.sendall(malformed.response(status, rid, message, head))


def serve_alone(application: Any, listening: socket.socket, beat: Callable[[], None]) -> None:
    """Serve an application of gunicorn in this process, without an arbiter, until SIGTERM."""
    config = application.cfg
    log = config.logger_class(config)
    worker = FairThreads(1, os.getppid(), [listening], application, config.timeout, config, log)
    worker.beat = beat
    worker.init_process()


def _connections(threads: int) -> int:
    """How many connections this process has descriptors for; raises its limit as far as it may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return max(threads, min(CONNECTIONS_MAX, soft - threads * DESCRIPTORS_EACH - DESCRIPTORS_BESIDE))


def _crowd(event: tuple[Any, int]) -> int:
    """How many connections the client of an event has; 0 for the listener and what threads say."""
    callback: Callable[..., Any] = event[0].data
    if isinstance(callback, partial):
        share: Share = callback.args[0].share
        return share.connections
    return 0


def _limit_sending(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SENDING_S, 0))


def _cut(conn: Connection) -> None:
    """End the read of a connection in its thread."""
    with contextlib.suppress(OSError):
        socket.socket.shutdown(conn.sock, socket.SHUT_RDWR)
