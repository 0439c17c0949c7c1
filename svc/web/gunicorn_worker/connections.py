"""A connection while no thread serves it: its TLS handshake, the head of its next request, its end.

Nothing here waits: each step does what the bytes that have arrived allow. gunicorn's
parser gets a head only when it is complete, and a small body with it, so that reading one holds no thread.
"""

from __future__ import annotations

import contextlib
import errno
import re
import selectors
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any

from gunicorn import http
from gunicorn.http import errors as http_errors
from gunicorn.workers import gthread

from svc.limits import BODY_GRACE_S, HEAD_MAX, IDLE_S, READING_S, SMALL_BODY_MAX
from svc.web.gunicorn_worker.detach import Detached
from svc.web.gunicorn_worker.malformed import PlainHttp
from svc.web.gunicorn_worker.shares import Share
from svc.web.gunicorn_worker.tls_reads import bounded

PART = 8192  # bytes of one read, as gunicorn's own
END_OF_HEAD = b"\r\n\r\n"
# How the body comes. The parser decides what is well-formed; this only says what to wait for.
OF_BODY = re.compile(rb"\r\n(?:(content-length)|transfer-encoding|expect):[ \t]*([0-9]{0,12})", re.IGNORECASE)
PLAIN = re.compile(rb"[A-Z]{3,7} [/*]")  # the begin of a request, and of no record of TLS
STOPPING_S = 1.0  # for the rest of a head, once the worker stops
LINGER_S = 2.0  # after the response, for the client to close first
LINGER_MAX = 64 * 1024  # bytes that are thrown away meanwhile
NOTHING, READ, WRITE = 0, selectors.EVENT_READ, selectors.EVENT_WRITE


class Ended(Exception):
    """The connection is over: its client closed it, or broke TLS."""


class Connection(gthread.TConn):
    """A connection with the part of its next request that has arrived."""

    sock: Any  # a plain socket, or an SSLSocket from its first byte on

    def __init__(self, cfg: Any, sock: socket.socket, address: Any, server: Any, share: Share) -> None:
        super().__init__(cfg, sock, address, server)
        self.share = share
        self.head = bytearray()
        self.request_size = 0  # bytes of the head with its small body; 0 while the end of the head is missing
        self.holds_body = False  # a thread reads the body
        self.has_whole_head_since = 0.0
        self.problem: Exception | None = None  # why gunicorn's parser is not asked
        self.detached: Detached | None = None  # its request has made it a stream
        self.descriptor = sock.fileno()  # as the poller knows it: a failed handshake closes the socket
        self.polled = NOTHING  # what the poller watches it for
        self.is_open, self.is_ending = True, False
        self.thrown_away = 0
        self.since = time.monotonic()
        self.began_at = 0.0  # when the first byte of this request, or of the handshake, came; 0: not yet

    # --- the next request -------------------------------------------------------------

    def await_request(self) -> None:
        """Begin with the next request; bytes that came with the last one are its first."""
        self.sock.setblocking(False)
        self.head = bytearray(self.parser.unreader.take_buffered())
        self.request_size, self.holds_body = 0, False
        self.since = time.monotonic()
        self.began_at = self.since if self.head else 0.0

    def has_bytes(self) -> bool:
        """Whether bytes are here already that the poller does not see: after a request, or within TLS."""
        return bool(self.head) or (isinstance(self.sock, ssl.SSLSocket) and self.sock.pending() > 0)

    def advance(self, context: Callable[[], ssl.SSLContext] | None) -> int:
        """Go on with the handshake (given a TLS context) and the head.

        Returns what to wait for, NOTHING when a thread can go on; raises Ended, OSError.
        """
        try:
            if not self.initialized:
                self._open(context)
            return self._read_head()
        except (BlockingIOError, ssl.SSLWantReadError):
            return READ
        except ssl.SSLWantWriteError:
            return WRITE

    def _open(self, context: Callable[[], ssl.SSLContext] | None) -> None:
        if context is not None:
            if not isinstance(self.sock, ssl.SSLSocket):
                self._require_first_byte()
                self.sock = self._wrapped(context())
            bounded(self.sock, self.sock.do_handshake)
        self.parser = http.get_parser(self.cfg, self.sock, self.client)
        self.initialized = True

    def _wrapped(self, context: ssl.SSLContext) -> ssl.SSLSocket:
        try:
            return context.wrap_socket(
                self.sock,
                server_side=True,
                suppress_ragged_eofs=self.cfg.suppress_ragged_eofs,
                do_handshake_on_connect=False,
            )
        except OSError as error:
            if error.errno == errno.ENOTCONN:  # reset since its first byte came; an SSLError says that too
                raise Ended from None
            raise

    def _require_first_byte(self) -> None:
        """A silent connection costs no TLS state, and one that speaks HTTP gets none."""
        first = self.sock.recv(PART, socket.MSG_PEEK)
        if not first:
            raise Ended
        self.began_at = time.monotonic()
        if PLAIN.match(first):
            self.head, self.problem = bytearray(first), PlainHttp()
            raise self.problem

    def _read_head(self) -> int:
        searched = 0
        while not self.request_size:
            end = self.head.find(END_OF_HEAD, searched)
            if end >= 0:
                self.request_size = end + len(END_OF_HEAD) + self._size_of_small_body(end)
                self.has_whole_head_since = time.monotonic()
                break
            if len(self.head) > HEAD_MAX:
                self.problem = _too_long(self.head)
                return NOTHING
            searched = max(0, len(self.head) - len(END_OF_HEAD) + 1)
            if not self._add_part():
                raise Ended
        while len(self.head) < self.request_size:
            if not self._add_part():
                break  # a thread answers that it did not come whole
        return NOTHING

    def _size_of_small_body(self, end_of_head: int) -> int:
        """The bytes to await with the head: none without a body, and of one that a thread reads."""
        found = OF_BODY.findall(self.head, 0, end_of_head)
        if len(found) == 1 and found[0][0] and found[0][1] and int(found[0][1]) <= SMALL_BODY_MAX:
            return int(found[0][1])
        self.holds_body = bool(found)
        return 0

    def lets_body_wait(self, now: float) -> bool:
        """Whether its small body has taken so long that a thread reads the rest."""
        return (
            bool(self.request_size) and not self.is_ending and now > self.has_whole_head_since + BODY_GRACE_S
        )

    def _add_part(self) -> bool:
        """Add what has arrived; false at the end of what the client sends."""
        part = bounded(self.sock, self._receive)
        if part:
            self.began_at = self.began_at or time.monotonic()
            self.head += part
        return bool(part)

    def _receive(self) -> bytes:
        return bytes(self.sock.recv(PART))

    def is_overdue(self, now: float, *, stopping: bool) -> bool:
        """Whether its client has taken too long; it has less time when the worker stops."""
        if self.is_ending:
            return now > self.since + LINGER_S
        if stopping:
            return now > self.began_at + STOPPING_S
        if self.began_at:
            return now > self.began_at + READING_S
        return now > self.since + IDLE_S

    # --- in a thread ------------------------------------------------------------------

    def give_to_parser(self) -> None:
        """Give gunicorn's parser the head, and nothing after what has arrived with it."""
        unreader = self.parser.unreader
        unreader.unread(bytes(self.head))
        self.head = bytearray()
        unreader.chunk = _no_more

    def open_body(self) -> None:
        """The head is parsed: what the parser reads from here on comes from the connection."""
        vars(self.parser.unreader).pop("chunk", None)

    # --- its end ------------------------------------------------------------------------

    def begin_to_end(self) -> None:
        """Tell the client that nothing follows; raises OSError when it has gone already.

        Closing now could cost it the end of the response: the kernel resets a connection with
        unread bytes.
        """
        self.is_ending, self.since = True, time.monotonic()
        self.sock.setblocking(False)
        self.sock.shutdown(socket.SHUT_WR)

    def throw_away(self) -> int:
        """Read and forget what still comes; returns READ, raises Ended or OSError when it may be closed."""
        while self.thrown_away < LINGER_MAX:
            try:
                part = bounded(self.sock, self._receive)
            except BlockingIOError:
                return READ
            if not part:
                break
            self.thrown_away += len(part)
        raise Ended

    def close(self, graceful: bool = False) -> None:
        """Close it, without waiting for anything."""
        with contextlib.suppress(OSError):
            self.sock.close()


def _no_more(size_hint: int | None = None) -> bytes:
    """Replaces the read of a connection while a head is parsed: what is there has to do."""
    return b""


def _too_long(head: bytearray) -> Exception:
    line = head.find(b"\r\n")
    if line < 0:
        error: Exception = http_errors.LimitRequestLine(len(head), HEAD_MAX)
    else:
        error = http_errors.LimitRequestHeaders("limit request headers fields size")
    return error
