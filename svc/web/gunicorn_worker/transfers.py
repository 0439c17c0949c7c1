"""A file's bytes between an agent's data stream and a client's connection, as fast as the kernel moves them.

Where the connection is a plain socket they never come into Python: they are
spliced through a pipe of the listener's own. Through TLS, and in chunks, they go in
parts. Nothing waits for one side alone: the other's end, the agent's words and
the end of the listener are heard all the time, and who is slower than FILE_RATE_MIN
in FILE_RATE_S is given up. A body that ends too early is cut off, never filled up.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from flask import Response, copy_current_request_context, g, request
from gunicorn.http.body import Body, LengthReader
from gunicorn.http.errors import ParseException

from svc.errors import Conflict, EngineTimeout, InvalidRequest, Maintenance, SvcError, TooLarge
from svc.helper.transfers import PART, Transfer
from svc.limits import FILE_PIPE, FILE_RATE_MIN, FILE_RATE_S
from svc.web.gunicorn_worker import shutdown

BODY_PART = 64 * 1024  # of a body that Python reads
LOOK_S = 1.0  # between looks at what else happens, while bytes flow without a pause
STANDING_S = 15.0  # after so long who reads is asked for anew: a session may end, an account be disabled


class Pace:
    """How fast bytes move; knows when to give up, and when to look round."""

    def __init__(self) -> None:
        self.began = self.looked = time.monotonic()
        self.count = 0

    def moved(self, count: int) -> None:
        """So many bytes have gone on."""
        self.count += count
        if self.count >= FILE_RATE_MIN:
            self.began, self.count = time.monotonic(), 0

    def left(self, slow: str) -> float:
        """Seconds for the next bytes; raises Conflict or EngineTimeout when they are over."""
        left = self.began + FILE_RATE_S - time.monotonic()
        if left > 0:
            return left
        words = f"the {slow} moved fewer than {FILE_RATE_MIN} bytes in {FILE_RATE_S} seconds"
        raise EngineTimeout(words) if slow == "file system" else Conflict(words)

    def is_time_to_look(self) -> bool:
        """Whether LOOK_S have passed since the last time."""
        now = time.monotonic()
        due = now - self.looked > LOOK_S
        if due:
            self.looked = now
        return due


# --- to the client --------------------------------------------------------------------


class Outgoing:
    """The body of an answer: what comes over the data stream, `count` bytes or all."""

    def __init__(
        self,
        transfer: Transfer,
        told: dict[str, Any],
        count: int | None,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        self.transfer, self.stream = transfer, transfer.stream
        self.told = told
        self.count: int | None = count
        self.at_end = at_end
        self.pace = Pace()
        self.sent = 0
        self.whole = False
        self.error: SvcError | None = None
        self.sock: Any = request.environ["gunicorn.socket"]
        self.require = copy_current_request_context(g.require)
        self.asked_at = time.monotonic()

    def response(self, held: ExitStack, media_type: str, status: int = 200) -> Response:
        """The answer; what it needs is held to its end, which its audit row tells."""
        response = Response(self._parts(), status, content_type=media_type)
        if self.count is not None:
            response.content_length = self.count
        kept = held.pop_all()
        response.call_on_close(lambda: self._close(kept))
        return response

    def _close(self, held: ExitStack) -> None:
        error = self.error
        if error is None and not self.whole:
            error = Conflict("the caller has gone")
        if error is None:
            held.close()
            return
        self.told["cut_off"] = error.message
        with contextlib.suppress(SvcError):  # the log has an outcome that the database does not take
            held.__exit__(type(error), error, None)

    def _parts(self) -> Iterator[bytes]:
        """Moves the body, past the iterator where there is a connection to write to."""
        try:
            yield b""  # with which the server sends the head
            if self.sock is None or not isinstance(self.sock, socket.socket):  # no server: a test's client
                yield from self._taken()
            else:
                with _nonblocking(self.sock):
                    self._move()
            self.at_end()
            self.whole = True
        except SvcError as error:
            self.error = _unless_stopping(error)
            # For the server: end the connection, quietly; the client sees that the body is not whole.
            raise ConnectionResetError(errno.ECONNRESET, "cut off") from error
        except OSError as error:  # the connection's own
            raise ConnectionResetError(errno.ECONNRESET, "the caller has gone") from error

    def _move(self) -> None:
        if self.count is not None and self.stream.may_splice and type(self.sock) is socket.socket:
            self._splice()
            return
        for part in self._taken():
            framed = part if self.count is not None else b"%X\r\n%b\r\n" % (len(part), part)
            self._push(memoryview(framed))

    def _splice(self) -> None:
        stream, sock = self.stream.fileno(), self.sock.fileno()
        assert self.count is not None  # noqa: S101  for the type checker: chunks are never spliced
        if self.sock.family == socket.AF_UNIX:  # TCP finds its own size
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, FILE_PIPE)
        with _pipe() as (reader, writer):
            while self.sent < self.count:
                taken = _spliced(stream, writer, min(FILE_PIPE, self.count - self.sent))
                if taken is None:
                    self._wait(stream, select.POLLIN, "file system")
                    continue
                if taken == 0:
                    self.transfer.fail()
                while taken:
                    gone = _spliced(reader, sock, taken)
                    if gone is None:
                        self._wait(sock, select.POLLOUT, "client")
                        continue
                    taken -= gone
                    self._note(gone)

    def _taken(self) -> Iterator[bytes]:
        """What comes over the data stream, part by part."""
        while self.count is None or self.sent < self.count:
            part: bytes | None = self.stream.receive(
                PART if self.count is None else min(PART, self.count - self.sent)
            )
            if part is None:
                self._wait(self.stream.fileno(), select.POLLIN, "file system")
                continue
            if not part:
                if self.count is None:
                    return
                self.transfer.fail()
            self._note(len(part))
            yield part

    def _push(self, data: memoryview) -> None:
        while data:
            try:
                data = data[self.sock.send(data) :]
            except (BlockingIOError, ssl.SSLWantWriteError):
                self._wait(self.sock.fileno(), select.POLLOUT, "client")
            except ssl.SSLWantReadError:
                self._wait(self.sock.fileno(), select.POLLIN, "client")

    def _note(self, count: int) -> None:
        self.sent += count
        self.told["bytes"] = self.sent
        self.pace.moved(count)
        if self.pace.is_time_to_look():
            self.transfer.wait({}, 0)
            self._look()

    def _wait(self, fd: int, mask: int, slow: str) -> None:
        self.transfer.wait({fd: mask}, min(self.pace.left(slow), STANDING_S))
        self._look()

    def _look(self) -> None:
        """Now and then: whether the reader may still read."""
        if time.monotonic() - self.asked_at > STANDING_S:
            self.require()
            self.asked_at = time.monotonic()


# --- from the client ------------------------------------------------------------------


def announced(media_type: str) -> int | None:
    """The length of the request's body, None for one in chunks; raises InvalidRequest for any other body."""
    if request.mimetype != media_type:
        raise InvalidRequest(f"the body is {request.mimetype or 'untyped'}, not {media_type}")
    coding = request.headers.get("Transfer-Encoding", "").lower()
    if request.content_length is None and "chunked" not in coding:
        raise InvalidRequest("the body has neither a Content-Length nor chunks")
    if request.headers.get("Content-Encoding") or coding not in ("", "chunked"):  # nobody would decode it
        raise InvalidRequest("the body is encoded; send the file as it is")
    return request.content_length


class Incoming:
    """The body of a request, on its way into the data stream."""

    def __init__(self, transfer: Transfer, told: dict[str, Any], most: int) -> None:
        self.transfer, self.stream = transfer, transfer.stream
        self.told = told
        self.most = most
        self.length = request.content_length
        self.pace = Pace()
        self.count = 0
        self.sock: Any = request.environ["gunicorn.socket"]
        self.body: Any = request.environ["wsgi.input"]

    def receive(self) -> int:
        """Move the whole body; returns its length.

        Raises InvalidRequest for one that is cut short, TooLarge for one over
        `most`, Conflict for a client that is too slow, and what the agent says.
        """
        try:
            self._move()
        except SvcError as error:
            raise _unless_stopping(error) from None
        if self.length not in (None, self.count):
            raise InvalidRequest(f"the body ended after {self.count} of {self.length} bytes")
        return self.count

    def _move(self) -> None:
        if not isinstance(self.body, Body):  # no server: a test's client
            self._put_parts(self.body.read)
            return
        reader = self.body.reader
        has_length = isinstance(reader, LengthReader)
        if has_length and type(self.sock) is socket.socket and self.length == reader.length:
            self._splice(reader)
            return
        with self._hearing(reader.unreader if has_length else reader.req.unreader):
            self._put_parts(
                partial(Body.read, self.body)
            )  # the listener's own patience is for bodies unheard

    def _put_parts(self, read: Callable[[int], bytes]) -> None:
        while part := self._part(read):
            self._put(memoryview(part))

    @contextmanager
    def _hearing(self, unreader: Any) -> Iterator[None]:
        """Whenever the server finds nothing to read, the agent and the end of the listener are heard."""
        take = unreader.chunk

        def chunk(size_hint: int | None = None) -> Any:
            while True:
                try:
                    return take(size_hint)
                except (BlockingIOError, ssl.SSLWantReadError):
                    self._wait(self.sock.fileno(), select.POLLIN, "client")
                except ssl.SSLWantWriteError:
                    self._wait(self.sock.fileno(), select.POLLOUT, "client")

        unreader.chunk = chunk
        try:
            with _nonblocking(self.sock):
                yield
        finally:
            del unreader.chunk

    def _splice(self, reader: LengthReader) -> None:
        """All that the server has not read itself, from the connection.

        `reader` is the server's own, which must know at the end where the next
        request begins: its buffer comes first, and its count goes along.
        """
        read = reader.unreader.take_buffered()
        mine = min(len(read), reader.length)
        reader.unreader.unread(read[mine:])
        reader.length -= mine
        self._put(memoryview(read)[:mine])
        sock = self.sock.fileno()
        with _nonblocking(self.sock), _pipe() as (pipe, writer):
            while reader.length:
                try:
                    taken = _spliced(sock, writer, min(FILE_PIPE, reader.length))
                except OSError:
                    return  # the connection has broken
                if taken is None:
                    self._wait(sock, select.POLLIN, "client")
                    continue
                if taken == 0:
                    return
                reader.length -= taken
                self._drain(pipe, taken)

    def _drain(self, pipe: int, count: int) -> None:
        while count:
            if not self.stream.may_splice:
                # Before Linux 6.5 a splice into a socket takes the lock of its far end, which an agent
                # keeps as long as it likes (by receiving into memory of its own making); a send does not.
                part = os.read(pipe, min(PART, count))
                count -= len(part)
                self._put(memoryview(part))
                continue
            try:
                gone = _spliced(pipe, self.stream.fileno(), count)
            except OSError:
                self.transfer.fail()
            if gone is None:
                self._wait(self.stream.fileno(), select.POLLOUT, "file system")
                continue
            count -= gone
            self._note(gone)

    def _part(self, read: Callable[[int], bytes]) -> bytes:
        """The next piece of the body by way of the server, which knows its chunks; empty at its end."""
        size = BODY_PART if self.length is None else min(BODY_PART, self.length - self.count)
        try:
            part = read(size)
        except (OSError, ParseException):  # also gunicorn's words for chunks that stop, or are none
            raise InvalidRequest("the body was cut short") from None
        if self.count + len(part) > self.most:
            raise TooLarge(
                f"at most {self.most} bytes may be uploaded as one file", details={"limit": self.most}
            )
        return part

    def _put(self, data: memoryview) -> None:
        while data:
            try:
                gone = self.stream.send(data)
            except OSError:
                self.transfer.fail()
            if gone == 0:
                self._wait(self.stream.fileno(), select.POLLOUT, "file system")
                continue
            data = data[gone:]
            self._note(gone)

    def _note(self, count: int) -> None:
        self.count += count
        self.told["bytes"] = self.count
        self.pace.moved(count)
        if self.pace.is_time_to_look():
            self.transfer.wait({}, 0)

    def _wait(self, fd: int, mask: int, slow: str) -> None:
        self.transfer.wait({fd: mask}, self.pace.left(slow))


def _unless_stopping(error: SvcError) -> SvcError:
    """The error, or that the listener's end is what has hung up."""
    if not shutdown.begun():
        return error
    return Maintenance("the service is being stopped; it starts again in a moment", retry_after_s=5)


# --- the kernel -----------------------------------------------------------------------


def _spliced(source: int, target: int, count: int) -> int | None:
    """Move at most `count` bytes, one end being a pipe: how many, 0 at the source's end, None: not now."""
    try:
        return os.splice(source, target, count, flags=os.SPLICE_F_MOVE | os.SPLICE_F_NONBLOCK)
    except BlockingIOError:
        return None


@contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """A pipe that nobody else has; as large as may be."""
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        with contextlib.suppress(OSError):  # the user svc has many already
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, FILE_PIPE)
        yield reader, writer
    finally:
        os.close(reader)
        os.close(writer)


@contextmanager
def _nonblocking(sock: socket.socket) -> Iterator[None]:
    """The connection never waits by itself, for the length of the block; the server wants it to."""
    sock.setblocking(False)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # the server has closed it
            sock.setblocking(True)
