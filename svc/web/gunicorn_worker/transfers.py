"""Move a file's bytes between an agent's data stream and a client's connection at the kernel's speed.

With a plain socket the bytes never enter Python: they are spliced through a pipe of
this process. Through TLS, and in chunks, they are moved in parts. Each wait also
watches the other side, the agent's messages and the shutdown of the listener; a peer
slower than FILE_RATE_MIN in FILE_RATE_S is disconnected. A body that ends too early is
cut off, never padded.
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

from svc.errors import Conflict, EngineTimeout, InvalidRequest, SvcError, TooLarge
from svc.helper.transfers import PART, Transfer
from svc.limits import ACCESS_ENDED_S, FILE_PIPE, FILE_RATE_MIN, FILE_RATE_S
from svc.web.gunicorn_worker import connection, shutdown
from svc.web.rechecks import Recheck

BODY_PART = 64 * 1024  # of a body that Python reads
CHECK_S = 1.0  # between checks for messages while bytes flow without a pause


class Pace:
    """The rate of a transfer: when to give up, and when a check is due."""

    def __init__(self) -> None:
        self.began = self.checked_at = time.monotonic()
        self.count = 0

    def moved(self, count: int) -> None:
        """Count bytes that have been moved."""
        self.count += count
        if self.count >= FILE_RATE_MIN:
            self.began, self.count = time.monotonic(), 0

    def left(self, slow: str) -> float:
        """Seconds left for the next bytes; raises Conflict, or EngineTimeout for a slow file system."""
        left = self.began + FILE_RATE_S - time.monotonic()
        if left > 0:
            return left
        message = f"the {slow} moved fewer than {FILE_RATE_MIN} bytes in {FILE_RATE_S} seconds"
        raise EngineTimeout(message) if slow == "file system" else Conflict(message)

    def is_check_due(self) -> bool:
        """Whether CHECK_S have passed since it last returned True."""
        now = time.monotonic()
        due = now - self.checked_at > CHECK_S
        if due:
            self.checked_at = now
        return due


class Movement:
    """A transfer in either direction; `detail` is that of its audit row."""

    def __init__(self, transfer: Transfer, detail: dict[str, Any]) -> None:
        self.transfer, self.stream = transfer, transfer.stream
        self.detail = detail
        self.count = 0  # bytes moved
        self.pace = Pace()
        self.sock: Any = connection(request.environ)

    def _record(self, count: int) -> None:
        self.count += count
        self.detail["bytes"] = self.count
        self.pace.moved(count)
        if self.pace.is_check_due():
            self.transfer.wait({}, 0)
            self._recheck()

    def _wait(self, fd: int, mask: int, slow: str) -> None:
        """Wait for one side; `slow` names it in the error when it is too slow."""
        self.transfer.wait({fd: mask}, min(self.pace.left(slow), ACCESS_ENDED_S))
        self._recheck()

    def _recheck(self) -> None:
        """Called at least every second."""


# --- to the client --------------------------------------------------------------------


class Outgoing(Movement):
    """The body of a response: `length` bytes of the data stream, or all of it."""

    def __init__(
        self,
        transfer: Transfer,
        detail: dict[str, Any],
        length: int | None,
        at_end: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(transfer, detail)
        self.length: int | None = length
        self.at_end = at_end
        self.complete = False
        self.error: SvcError | None = None
        self.recheck = Recheck(g.caller, copy_current_request_context(g.require))

    def response(self, held: ExitStack, media_type: str, status: int = 200) -> Response:
        """The response, which takes over `held` and closes it at its end, with the outcome."""
        response = Response(self._parts(), status, content_type=media_type)
        if self.length is not None:
            response.content_length = self.length
        kept = held.pop_all()
        response.call_on_close(lambda: self._close(kept))
        return response

    def _close(self, held: ExitStack) -> None:
        error = self.error
        if error is None and not self.complete:
            error = Conflict("the caller has gone")
        if error is None:
            held.close()
            return
        self.detail["cut_off"] = error.message
        with contextlib.suppress(SvcError):  # the log has the outcome if the database cannot store it
            held.__exit__(type(error), error, None)

    def _parts(self) -> Iterator[bytes]:
        """Move the body, bypassing the iterator if there is a connection to write to."""
        try:
            yield b""  # makes the server send the headers
            if not isinstance(self.sock, socket.socket):  # a test client without a server
                yield from self._received()
            else:
                with _nonblocking(self.sock):
                    self._move()
            self.at_end()
            self.complete = True
        except SvcError as error:
            self.error = _unless_stopping(error)
            # The server closes the connection without a message; the client sees an incomplete body.
            raise ConnectionResetError(errno.ECONNRESET, "cut off") from error
        except OSError as error:  # of the connection
            raise ConnectionResetError(errno.ECONNRESET, "the caller has gone") from error

    def _move(self) -> None:
        if self.length is not None and self.stream.may_splice and not isinstance(self.sock, ssl.SSLSocket):
            self._splice(self.length)
            return
        for part in self._received():
            framed = part if self.length is not None else b"%X\r\n%b\r\n" % (len(part), part)
            self._send(memoryview(framed))

    def _splice(self, length: int) -> None:
        stream, sock = self.stream.fileno(), self.sock.fileno()
        if self.sock.family == socket.AF_UNIX:  # TCP adapts its buffer itself
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, FILE_PIPE)
        with _pipe() as (reader, writer):
            while self.count < length:
                received = _spliced(stream, writer, min(FILE_PIPE, length - self.count))
                if received is None:
                    self._wait(stream, select.POLLIN, "file system")
                    continue
                if received == 0:
                    self.transfer.fail()
                while received:
                    sent = _spliced(reader, sock, received)
                    if sent is None:
                        self._wait(sock, select.POLLOUT, "client")
                        continue
                    received -= sent
                    self._record(sent)

    def _received(self) -> Iterator[bytes]:
        """The data stream in parts."""
        while self.length is None or self.count < self.length:
            most = PART if self.length is None else min(PART, self.length - self.count)
            part: bytes | None = self.stream.receive(most)
            if part is None:
                self._wait(self.stream.fileno(), select.POLLIN, "file system")
                continue
            if not part:
                if self.length is None:
                    return
                self.transfer.fail()
            self._record(len(part))
            yield part

    def _send(self, data: memoryview) -> None:
        while data:
            try:
                data = data[self.sock.send(data) :]
            except (BlockingIOError, ssl.SSLWantWriteError):
                self._wait(self.sock.fileno(), select.POLLOUT, "client")
            except ssl.SSLWantReadError:
                self._wait(self.sock.fileno(), select.POLLIN, "client")

    def _recheck(self) -> None:
        self.recheck.apply()


# --- from the client ------------------------------------------------------------------


def announced(media_type: str) -> int | None:
    """The length of the request's body, None for chunks; raises InvalidRequest for any other body."""
    if request.mimetype != media_type:
        raise InvalidRequest(f"the body is {request.mimetype or 'untyped'}, not {media_type}")
    coding = request.headers.get("Transfer-Encoding", "").lower()
    if request.content_length is None and "chunked" not in coding:
        raise InvalidRequest("the body has neither a Content-Length nor chunks")
    if request.headers.get("Content-Encoding") or coding not in ("", "chunked"):  # it would not be decoded
        raise InvalidRequest("the body is encoded; send the file as it is")
    return request.content_length


class Incoming(Movement):
    """The body of a request, written into the data stream."""

    def __init__(self, transfer: Transfer, detail: dict[str, Any], most: int) -> None:
        super().__init__(transfer, detail)
        self.most = most
        self.length = request.content_length
        self.body: Any = request.environ["wsgi.input"]

    def receive(self) -> int:
        """Move the whole body; returns its length.

        Raises InvalidRequest for a truncated body, TooLarge for one over `most`,
        Conflict for a client that is too slow, and the agent's own errors.
        """
        try:
            self._move()
        except SvcError as error:
            raise _unless_stopping(error) from None
        if self.length not in (None, self.count):
            raise InvalidRequest(f"the body ended after {self.count} of {self.length} bytes")
        return self.count

    def _move(self) -> None:
        if not isinstance(self.body, Body):  # a test client without a server
            self._send_parts(self.body.read)
            return
        reader = self.body.reader
        has_length = isinstance(reader, LengthReader)
        is_tls, is_plain = isinstance(self.sock, ssl.SSLSocket), type(self.sock) is socket.socket
        if (
            has_length and (is_tls or is_plain) and self.length == reader.length
        ):  # not past a GuardedSocket's reading
            self._send_buffered(reader)
            with _nonblocking(self.sock):
                self._decrypt(reader) if is_tls else self._splice(reader)
            return
        with self._waiting_reads(reader.unreader if has_length else reader.req.unreader):
            self._send_parts(partial(Body.read, self.body))  # without the read timeout of other bodies

    def _send_parts(self, read: Callable[[int], bytes]) -> None:
        while part := self._part(read):
            self._send(memoryview(part))

    @contextmanager
    def _waiting_reads(self, unreader: Any) -> Iterator[None]:
        """Make the server's own reads of the connection wait in _wait()."""
        read_chunk = unreader.chunk

        def chunk(size_hint: int | None = None) -> Any:
            while True:
                try:
                    return read_chunk(size_hint)
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

    def _send_buffered(self, reader: LengthReader) -> None:
        """Send the part of the body that the server has read with the head.

        `reader` is the server's: its count is kept up to date, here and below, so that it
        finds the beginning of the next request.
        """
        buffered = reader.unreader.take_buffered()
        own = min(len(buffered), reader.length)
        reader.unreader.unread(buffered[own:])
        reader.length -= own
        self._send(memoryview(buffered)[:own])

    def _splice(self, reader: LengthReader) -> None:
        """Splice the body from the connection."""
        sock = self.sock.fileno()
        with _pipe() as (pipe, writer):
            while reader.length:
                try:
                    received = _spliced(sock, writer, min(FILE_PIPE, reader.length))
                except OSError:
                    return  # the connection is broken
                if received is None:
                    self._wait(sock, select.POLLIN, "client")
                    continue
                if received == 0:
                    return
                reader.length -= received
                self._drain(pipe, received)

    def _decrypt(self, reader: LengthReader) -> None:
        """Read the body through TLS into one buffer, without the copies of the server's reader."""
        buffer = memoryview(bytearray(PART))
        while reader.length:
            count = self._read_records(buffer[: min(PART, reader.length)])
            if not count:
                return
            reader.length -= count
            self._send(buffer[:count])

    def _read_records(self, room: memoryview) -> int:
        """Fill the room with the records that have arrived, at least one; 0 at the connection's end."""
        count = 0
        while count < len(room):
            try:
                received = self.sock.recv_into(room[count:])  # one record at most
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError) as error:
                if count:
                    break
                is_reading = isinstance(error, ssl.SSLWantReadError)
                self._wait(self.sock.fileno(), select.POLLIN if is_reading else select.POLLOUT, "client")
                continue
            except OSError:
                break  # the connection is broken
            if not received:
                break
            count += received
        return count

    def _drain(self, pipe: int, count: int) -> None:
        while count:
            if not self.stream.may_splice:
                # Before Linux 6.5 a splice into a socket takes the lock of its far end, which an agent
                # can hold for any time (by receiving into memory that it backs itself); a send does not.
                part = os.read(pipe, min(PART, count))
                count -= len(part)
                self._send(memoryview(part))
                continue
            try:
                sent = _spliced(pipe, self.stream.fileno(), count)
            except OSError:
                self.transfer.fail()
            if sent is None:
                self._wait(self.stream.fileno(), select.POLLOUT, "file system")
                continue
            count -= sent
            self._record(sent)

    def _part(self, read: Callable[[int], bytes]) -> bytes:
        """The next part of the body through the server, which decodes chunks; empty at its end."""
        size = BODY_PART if self.length is None else min(BODY_PART, self.length - self.count)
        try:
            part = read(size)
        except (OSError, ParseException):  # gunicorn raises both for truncated or malformed chunks
            raise InvalidRequest("the body was cut short") from None
        if self.count + len(part) > self.most:
            raise TooLarge(
                f"at most {self.most} bytes may be uploaded as one file", details={"limit": self.most}
            )
        return part

    def _send(self, data: memoryview) -> None:
        while data:
            try:
                sent = self.stream.send(data)
            except OSError:
                self.transfer.fail()
            if sent == 0:
                self._wait(self.stream.fileno(), select.POLLOUT, "file system")
                continue
            data = data[sent:]
            self._record(sent)


def _unless_stopping(error: SvcError) -> SvcError:
    """The error, or Maintenance if the listener's shutdown has caused it."""
    if not shutdown.begun():
        return error
    return shutdown.error()


# --- the kernel -----------------------------------------------------------------------


def _spliced(source: int, target: int, count: int) -> int | None:
    """Splice at most `count` bytes: the number moved, 0 at the source's end, None if it would block."""
    try:
        return os.splice(source, target, count, flags=os.SPLICE_F_MOVE | os.SPLICE_F_NONBLOCK)
    except BlockingIOError:
        return None


@contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """A pipe of this process alone, as large as possible."""
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        with contextlib.suppress(OSError):  # the limit on pipe buffers of the user svc is reached
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, FILE_PIPE)
        yield reader, writer
    finally:
        os.close(reader)
        os.close(writer)


@contextmanager
def _nonblocking(sock: socket.socket) -> Iterator[None]:
    """Make the connection non-blocking in the block; the server expects a blocking one."""
    sock.setblocking(False)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # closed by the server
            sock.setblocking(True)
