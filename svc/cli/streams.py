"""Uploads, downloads and event streams over the host-local socket, by requests-unixsocket.

Imported only by commands that need it; short requests use svc.cli.transport,
whose checks of the socket apply here too. Proxies and redirects are ignored.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO
from typing import Any, NamedTuple, NoReturn

import requests
import requests_unixsocket.adapters as unix
from urllib3.exceptions import HTTPError, ReadTimeoutError

from svc.cli import transport
from svc.cli.transport import Answer
from svc.errors import BadAnswer, FileRefused, SvcError, Unreachable
from svc.limits import ANSWER_MAX, ANSWER_WAIT_S
from svc.settings import Settings

PART = 256 * 1024
PIECE = 4 * 1024 * 1024  # of an uploaded file, between two updates of the progress
TAR, BYTES = "application/x-tar", "application/octet-stream"
EVENTS = "text/event-stream"
EVENT_MAX = 1024 * 1024
SILENCE_S = 60.0  # an event stream sends a keep-alive at least every 15 seconds
BROKEN = (requests.RequestException, HTTPError, OSError)  # raised by the libraries for a broken connection

Moved = Callable[[int], object]


class _Connection(unix.UnixHTTPConnection):
    """A connection to the service's socket, with the checks of svc.cli.transport."""

    blocksize = PART

    def connect(self) -> None:
        """Connect through transport.connect."""
        trusted = transport.connect(Settings().socket)
        self.sock = socket.socket(fileno=trusted.detach())
        self.sock.settimeout(self.timeout)

    def send(self, data: Any) -> None:
        """Send data; a piece of a file with sendfile(2)."""
        if not isinstance(data, _Piece):
            super().send(data)
            return
        try:
            data.sent = self.sock.sendfile(data.file, data.offset, data.count)
        except OSError:
            data.require_readable()
            raise


class _Pool(unix.UnixHTTPConnectionPool):
    def _new_conn(self) -> _Connection:
        connection = _Connection(self.socket_path, self.timeout)
        connection.blocksize = PART
        return connection


class _Adapter(unix.UnixAdapter):
    """Maps every URL to the one socket."""

    def get_connection(self, url: str, proxies: Any = None) -> _Pool:
        return _Pool(url, self.timeout)


class _ChunkedBody:
    """A body of unknown length, sent in chunks until EOF."""

    def __init__(self, readinto: Callable[[memoryview], int], moved: Moved) -> None:
        self.readinto = readinto
        self.moved = moved

    def __iter__(self) -> Iterator[memoryview]:  # makes requests treat it as a stream
        buffer = memoryview(bytearray(PART))
        while count := self._read(buffer):
            yield buffer[:count]  # sent before the next is requested
            self.moved(count)

    def _read(self, buffer: memoryview) -> int:
        try:
            return self.readinto(buffer)
        except OSError as error:  # of the file, not of the connection
            raise _unreadable(error) from None


def _unreadable(error: OSError) -> FileRefused:
    return FileRefused(f"cannot read the data to send: {error.strerror}")


class _Piece:
    """A piece of a local file to send; `sent` is how much of it existed."""

    def __init__(self, file: FileIO, offset: int, count: int) -> None:
        self.file, self.offset, self.count = file, offset, count
        self.sent = 0

    def __len__(self) -> int:
        return self.count

    def require_readable(self) -> None:
        """Raise FileRefused if the file failed, not the connection."""
        try:
            os.pread(self.file.fileno(), 1, self.offset)
        except OSError as error:
            raise _unreadable(error) from None


class _FileBody:
    """A local file of known length, sent with sendfile(2)."""

    def __init__(self, file: FileIO, moved: Moved, size: int) -> None:
        self.file, self.moved, self.size = file, moved, size

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[_Piece]:
        offset = 0
        while offset < self.size:
            piece = _Piece(self.file, offset, min(PIECE, self.size - offset))
            yield piece  # sent before the next is requested
            if not piece.sent:
                piece.require_readable()
                raise FileRefused("the file was truncated while it was read; nothing was stored")
            offset += piece.sent
            self.moved(piece.sent)


class _Response(NamedTuple):
    """An answer with an unread body; `again` is the hint if the connection breaks."""

    response: requests.Response
    wait_s: float
    again: str

    def read(self, count: int) -> bytes:
        """So many bytes, fewer only at the end; raises Unreachable or BadAnswer."""
        try:
            return bytes(self.response.raw.read(count))
        except BROKEN as error:
            _broken(error, self.wait_s, self.again)

    def fields(self) -> dict[str, str]:
        """The header fields, in lower case."""
        return {name.lower(): value for name, value in self.response.headers.items()}

    def whole(self) -> Answer:
        """The answer with its body, like that to a short request."""
        body = bytearray()
        while part := self.read(PART):
            body += part
            if len(body) > ANSWER_MAX:
                raise BadAnswer(f"the service's answer is larger than {ANSWER_MAX} bytes")
        return Answer(self.response.status_code, self.fields(), bytes(body))

    def raise_for_status(self) -> None:
        """Raise the answer's error unless its status is 2xx."""
        if not 200 <= self.response.status_code < 300:
            raise self.whole().error()


class Fetched:
    """An answer whose unread body is a file; `size` is None if unknown."""

    def __init__(self, opened: _Response, size: int | None) -> None:
        self.fields = opened.fields()
        self.size = size
        self._response = opened

    def parts(self) -> Iterator[bytes]:
        """The bytes, exactly `size` or up to the last chunk; raises BadAnswer if there are fewer."""
        left = self.size
        while left is None or left:
            part = self._response.read(PART if left is None else min(PART, left))
            if not part and left is None:
                return
            if not part:
                raise _cut_short(self._response.again)
            yield part
            left = None if left is None else left - len(part)


def send(
    path: str,
    file: Any,  # a FileIO, or any readable binary stream when the size is None
    size: int | None,
    media_type: str,
    *,
    method: str = "POST",
    moved: Moved = lambda _: None,
    again: str = "",
) -> Answer:
    """Send so many bytes of a file, or all until EOF, and return the answer, whatever its status.

    `moved` is called with the size of each piece sent; `again` is the command to
    run when the connection breaks.
    """
    body: _ChunkedBody | _FileBody | bytes = b""  # unlike an empty stream, sent with a length
    if size is None:
        body = _ChunkedBody(getattr(file, "readinto1", file.readinto), moved)  # returns available bytes
    elif size:
        body = _FileBody(file, moved, size)
    with _request(method, path, {"Content-Type": media_type}, body, again=again) as opened:
        return opened.whole()


@contextmanager
def fetch(path: str, most: int | None, *, again: str = "") -> Iterator[Fetched]:
    """GET a file of at most `most` bytes (None: any size, also chunked); raises the answer's error."""
    with _request("GET", path, {}, None, again=again) as opened:
        opened.raise_for_status()
        fields = opened.fields()
        if most is None and fields.get("transfer-encoding", "").lower() == "chunked":
            yield Fetched(opened, None)
            return
        length = fields.get("content-length", "")
        if not length.isascii() or not length.isdigit() or len(length) > 18:
            raise BadAnswer("the service's answer has an invalid length")
        if most is not None and int(length) > most:
            raise BadAnswer(f"the service's answer is larger than {most} bytes")
        yield Fetched(opened, int(length))


class Event(NamedTuple):
    """One server-sent event: its name, its data (unparsed JSON) and its id; without a name a sign of life."""

    name: str
    data: bytes
    id: str = ""

    def json(self) -> dict[str, Any]:
        """The parsed data; raises BadAnswer."""
        return Answer(200, {}, self.data).json()

    def error(self) -> SvcError:
        """The error in the data, as an exception."""
        return Answer(200, {}, self.data).error()


def events(path: str) -> Iterator[Event]:
    """GET server-sent events up to the one named `end`; raises the error of an event named `error`.

    Errors raised where an event is printed are not mistaken for a broken connection.
    """
    with _request("GET", path, {"Accept": EVENTS}, None, SILENCE_S) as opened:
        opened.raise_for_status()
        if opened.fields().get("content-type", "").partition(";")[0] != EVENTS:
            raise BadAnswer("the service's answer is not an event stream")
        for event in _events(_lines(opened)):
            if event.name == "end":
                return
            if event.name == "error":
                raise event.error()
            yield event
    raise _cut_short()


def _events(lines: Iterator[bytes]) -> Iterator[Event]:
    """The blocks of lines, each up to an empty one; a comment is an event without a name."""
    fields: dict[bytes, bytes] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(b": ")
            fields[name] = value
            continue
        if fields:
            text = {name: fields.get(name, b"").decode("ascii", "replace") for name in (b"event", b"id")}
            yield Event(text[b"event"], fields.get(b"data", b""), text[b"id"])
        fields.clear()


def _lines(opened: _Response) -> Iterator[bytes]:
    """The lines of a stream, none longer than EVENT_MAX."""
    buffer = b""
    stream = opened.response.raw.stream(PART, decode_content=False)
    while True:
        try:
            part = next(stream, b"")
        except BROKEN as error:
            _broken(error, opened.wait_s)
        if not part:
            return
        *lines, buffer = (buffer + part).split(b"\n")
        yield from lines
        if len(buffer) > EVENT_MAX:
            raise BadAnswer(f"the service's answer has an event of more than {EVENT_MAX} bytes")


@contextmanager
def _request(
    method: str,
    path: str,
    headers: dict[str, str],
    body: Any,  # bytes or one of the bodies above
    wait_s: float = 0,
    again: str = "",
) -> Iterator[_Response]:
    """Send one request and yield its answer with an unread body; raises Unreachable."""
    wait_s = wait_s or ANSWER_WAIT_S
    with requests.Session() as session:
        session.trust_env = False
        for scheme in ("http+unix://", "http://", "https://"):
            session.mount(scheme, _Adapter(wait_s))
        headers = {"Accept-Encoding": "identity", "Connection": "close", "User-Agent": "svc", **headers}
        try:
            response = session.request(
                method, f"http://localhost{path}", data=body, headers=headers,
                stream=True, allow_redirects=False, timeout=wait_s,
            )  # fmt: skip
        except BROKEN as error:
            _broken(error, wait_s, again)
        with response:
            yield _Response(response, wait_s, again)


def _broken(error: Exception, wait_s: float, again: str = "") -> NoReturn:
    """Raise the error that a short request would raise for a broken connection."""
    hint = again or transport.remedy()
    if isinstance(error, requests.Timeout | TimeoutError | ReadTimeoutError):
        raise Unreachable(f"the service did not respond within {wait_s:.0f} seconds", hint=hint) from None
    if "IncompleteRead" in repr(error):
        raise _cut_short(again) from None
    raise Unreachable("the connection to the service broke", hint=hint) from None


def _cut_short(again: str = "") -> BadAnswer:
    return BadAnswer("the service's answer was cut short", hint=again or transport.remedy())
