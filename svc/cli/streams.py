"""Files over the host's socket: sent and fetched piece by piece, by requests-unixsocket.

Loaded only by the commands that move a file; a short request goes through
svc.cli.transport, whose trust in the socket holds here too. Neither a proxy nor
a redirect leads anywhere else.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedIOBase, FileIO, RawIOBase
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
PIECE = 4 * 1024 * 1024  # of a file that is sent, between two looks at how far it is
EVENTS = "text/event-stream"
EVENT_MAX = 1024 * 1024
SILENCE_S = 60.0  # of a stream, which says at least every 15 seconds that it is still there
BROKEN = (requests.RequestException, HTTPError, OSError)  # what the libraries raise for a connection

ReadInto = Callable[[memoryview], int]
Moved = Callable[[int], object]


class _Connection(unix.UnixHTTPConnection):
    """A connection to the service's socket, if it may be trusted."""

    blocksize = PART

    def connect(self) -> None:
        """Connect as a short request does."""
        trusted = transport.connect(Settings().socket)
        self.sock = socket.socket(fileno=trusted.detach())
        self.sock.settimeout(self.timeout)

    def send(self, data: Any) -> None:
        """Send what it is given; a piece of a file goes past this program, from kernel to kernel."""
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
    """Leads every address to the one socket."""

    def get_connection(self, url: str, proxies: Any = None) -> _Pool:
        return _Pool(url, self.timeout)


class _Flowing:
    """A body whose length nobody knows, which goes out in chunks until the file ends."""

    def __init__(self, readinto: ReadInto, moved: Moved) -> None:
        self.readinto = readinto
        self.moved = moved

    def __iter__(self) -> Iterator[memoryview]:  # by this requests knows that it is a stream
        buffer = memoryview(bytearray(PART))
        while count := self.more(buffer):
            yield buffer[:count]  # which is sent before the next is asked for
            self.moved(count)

    def more(self, buffer: memoryview) -> int:
        """The next bytes and how many there are; raises FileRefused."""
        try:
            return self.readinto(buffer)
        except OSError as error:  # no failure of the connection
            raise _unread(error) from None


def _unread(error: OSError) -> FileRefused:
    return FileRefused(f"cannot read what is to be sent: {error.strerror}")


class _Sending(_Flowing):
    """A file that is sent with a length: so many bytes, whatever is added meanwhile."""

    def __init__(self, readinto: ReadInto, moved: Moved, size: int) -> None:
        super().__init__(readinto, moved)
        self.left = self.size = size

    def __len__(self) -> int:
        return self.size

    def more(self, buffer: memoryview) -> int:
        """The next bytes; raises FileRefused when the file ends too early."""
        count = super().more(buffer[: self.left])
        if self.left and not count:
            raise FileRefused("the file became shorter while it was read; nothing was taken")
        self.left -= count
        return count


class _Piece:
    """A piece of a local file to send, and how much of it there was."""

    def __init__(self, file: FileIO, offset: int, count: int) -> None:
        self.file, self.offset, self.count = file, offset, count
        self.sent = 0

    def __len__(self) -> int:
        return self.count

    def require_readable(self) -> None:
        """Raise FileRefused where it was the file that failed, and not the connection."""
        try:
            os.pread(self.file.fileno(), 1, self.offset)
        except OSError as error:
            raise _unread(error) from None


class _SendingFile:
    """A local file that is sent with a length, without being read here."""

    def __init__(self, file: FileIO, moved: Moved, size: int) -> None:
        self.file, self.moved, self.size = file, moved, size

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[_Piece]:
        offset = 0
        while offset < self.size:
            piece = _Piece(self.file, offset, min(PIECE, self.size - offset))
            yield piece  # which is sent before the next is asked for
            if not piece.sent:
                piece.require_readable()
                raise FileRefused("the file became shorter while it was read; nothing was taken")
            offset += piece.sent
            self.moved(piece.sent)


class _Asked(NamedTuple):
    """An answer whose body is to be read, and what is said when it breaks off."""

    response: requests.Response
    wait_s: float
    again: str

    def read(self, count: int) -> bytes:
        """So many bytes, fewer only at the end; its failures are errors of ours."""
        try:
            return bytes(self.response.raw.read(count))
        except BROKEN as error:
            _broken(error, self.wait_s, self.again)

    def fields(self) -> dict[str, str]:
        """The header fields, in lower case."""
        return {name.lower(): value for name, value in self.response.headers.items()}

    def whole(self) -> Answer:
        """The answer, as that to a short request."""
        body = bytearray()
        while part := self.read(PART):
            body += part
            if len(body) > ANSWER_MAX:
                raise BadAnswer(f"the service's answer is larger than {ANSWER_MAX} bytes")
        return Answer(self.response.status_code, self.fields(), bytes(body))

    def refuse(self) -> None:
        """Raise the error that the answer tells of, if it does."""
        if not 200 <= self.response.status_code < 300:
            raise self.whole().error()


class Fetched:
    """An answer that is a file, of which nothing has been read yet; `size` is None where nobody knows it."""

    def __init__(self, asked: _Asked, size: int | None) -> None:
        self.fields = asked.fields()
        self.size = size
        self._asked = asked

    def parts(self) -> Iterator[bytes]:
        """The bytes, exactly `size` or up to the last chunk; raises BadAnswer when there are fewer."""
        left = self.size
        while left is None or left:
            part = self._asked.read(PART if left is None else min(PART, left))
            if not part and left is None:
                return
            if not part:
                raise _cut_short(self._asked.again)
            yield part
            left = None if left is None else left - len(part)


def send(
    path: str,
    file: RawIOBase | BufferedIOBase,
    size: int | None,
    media_type: str,
    *,
    method: str = "POST",
    moved: Moved = lambda _: None,
    again: str = "",
) -> Answer:
    """Send so many bytes of a file, or all until it ends, and give the whole answer, whatever it says.

    `moved` hears of each piece that has gone out; `again` is the command to run
    when the connection breaks.
    """
    readinto = getattr(file, "readinto1", file.readinto)  # what there is, without waiting for more
    body: _Flowing | _SendingFile | bytes = b""  # which, unlike a stream of nothing, is sent with a length
    if size is None:
        body = _Flowing(readinto, moved)
    elif size and isinstance(file, FileIO):
        body = _SendingFile(file, moved, size)
    elif size:
        body = _Sending(readinto, moved, size)
    with _asked(method, path, {"Content-Type": media_type}, body, again=again) as asked:
        return asked.whole()


@contextmanager
def fetch(path: str, most: int | None, *, again: str = "") -> Iterator[Fetched]:
    """GET a file of at most so many bytes; None: of any, also in chunks. Raises the answer's error."""
    with _asked("GET", path, {}, None, again=again) as asked:
        asked.refuse()
        fields = asked.fields()
        if most is None and fields.get("transfer-encoding", "").lower() == "chunked":
            yield Fetched(asked, None)
            return
        length = fields.get("content-length", "")
        if not length.isascii() or not length.isdigit() or len(length) > 18:
            raise BadAnswer("the service's answer has no usable length")
        if most is not None and int(length) > most:
            raise BadAnswer(f"the service's answer has no usable length, of at most {most} bytes")
        yield Fetched(asked, int(length))


class Event(NamedTuple):
    """One server-sent event: its name and its data, a JSON object as it came."""

    name: str
    data: bytes

    def json(self) -> dict[str, Any]:
        """The data; raises BadAnswer."""
        return Answer(200, {}, self.data).json()

    def error(self) -> SvcError:
        """The error that it tells of."""
        return Answer(200, {}, self.data).error()


def events(path: str) -> Iterator[Event]:
    """GET server-sent events, as they come, up to the one called `end`; raises the error that came instead.

    A plain generator, so that what goes wrong where an event is printed is not
    taken for a failure of the connection.
    """
    with _asked("GET", path, {"Accept": EVENTS}, None, SILENCE_S) as asked:
        asked.refuse()
        if asked.fields().get("content-type", "").partition(";")[0] != EVENTS:
            raise BadAnswer("the service's answer is no stream of events")
        name = ""
        for line in _lines(asked):
            field, _, value = line.partition(b": ")
            if field == b"event":
                name = value.decode("ascii", "replace")
            elif field == b"data":
                event = Event(name, value)
                if name == "end":
                    return
                if name == "error":
                    raise event.error()
                yield event
    raise _cut_short()


def _lines(asked: _Asked) -> Iterator[bytes]:
    """The lines of a stream as they come, none longer than EVENT_MAX."""
    buffer = b""
    stream = asked.response.raw.stream(PART, decode_content=False)
    while True:
        try:
            part = next(stream, b"")
        except BROKEN as error:
            _broken(error, asked.wait_s)
        if not part:
            return
        *lines, buffer = (buffer + part).split(b"\n")
        yield from lines
        if len(buffer) > EVENT_MAX:
            raise BadAnswer("the service's answer has an event without end")


@contextmanager
def _asked(
    method: str,
    path: str,
    headers: dict[str, str],
    body: Any,  # a _Flowing or bytes, which requests takes by what they can do
    wait_s: float = 0,
    again: str = "",
) -> Iterator[_Asked]:
    """The answer to one request, its body unread.

    Failures of the connection are errors of ours, here and in what reads the
    body; what goes wrong where that is used is not taken for one.
    """
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
            yield _Asked(response, wait_s, again)


def _broken(error: Exception, wait_s: float, again: str = "") -> NoReturn:
    """What went wrong on the way, in the words of the short requests."""
    hint = again or transport.remedy()
    if isinstance(error, requests.Timeout | TimeoutError | ReadTimeoutError):
        raise Unreachable(f"the service did not answer within {wait_s:.0f} seconds", hint=hint) from None
    if "IncompleteRead" in repr(error):
        raise _cut_short(again) from None
    raise Unreachable("the connection to the service broke", hint=hint) from None


def _cut_short(again: str = "") -> BadAnswer:
    return BadAnswer("the service's answer was cut short", hint=again or transport.remedy())
