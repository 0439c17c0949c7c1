"""Event streams over the host-local socket, by requests-unixsocket.

Imported only by commands that need it; short requests use svc.client.transport,
whose checks of the socket apply here too, and files svc.client.fetching and
svc.client.sending. Proxies and redirects are ignored.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

import requests
import requests_unixsocket.adapters as unix
from urllib3.exceptions import HTTPError, ReadTimeoutError

from svc.client import transport
from svc.client.transport import Answer
from svc.errors import BadAnswer, SvcError, Unreachable
from svc.limits import ANSWER_MAX
from svc.settings import Settings

PART = 256 * 1024
EVENTS = "text/event-stream"
EVENT_MAX = 1024 * 1024
SILENCE_S = 60.0  # an event stream sends a keep-alive at least every 15 seconds
BROKEN = (requests.RequestException, HTTPError, OSError)  # raised by the libraries for a broken connection


class _Connection(unix.UnixHTTPConnection):
    """A connection to the service's socket, with the checks of svc.client.transport."""

    blocksize = PART

    def connect(self) -> None:
        """Connect through transport.connect."""
        trusted = transport.connect(Settings().socket)
        self.sock = socket.socket(fileno=trusted.detach())
        self.sock.settimeout(self.timeout)


class _Pool(unix.UnixHTTPConnectionPool):
    def _new_conn(self) -> _Connection:
        connection = _Connection(self.socket_path, self.timeout)
        connection.blocksize = PART
        return connection


class _Adapter(unix.UnixAdapter):
    """Maps every URL to the one socket."""

    def get_connection(self, url: str, proxies: Any = None) -> _Pool:
        return _Pool(url, self.timeout)


class _Response(NamedTuple):
    """An answer with an unread body."""

    response: requests.Response

    def read(self, count: int) -> bytes:
        """So many bytes, fewer only at the end; raises Unreachable or BadAnswer."""
        try:
            return bytes(self.response.raw.read(count))
        except BROKEN as error:
            _broken(error)

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
    with _request(path) as opened:
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
            _broken(error)
        if not part:
            return
        *lines, buffer = (buffer + part).split(b"\n")
        yield from lines
        if len(buffer) > EVENT_MAX:
            raise BadAnswer(f"the service's answer has an event of more than {EVENT_MAX} bytes")


@contextmanager
def _request(path: str) -> Iterator[_Response]:
    """Ask for events and yield the answer with an unread body; raises Unreachable."""
    with requests.Session() as session:
        session.trust_env = False
        for scheme in ("http+unix://", "http://", "https://"):
            session.mount(scheme, _Adapter(SILENCE_S))
        headers = {
            "Accept": EVENTS, "Accept-Encoding": "identity", "Connection": "close", "User-Agent": "svc",
        }  # fmt: skip
        try:
            response = session.request(
                "GET", f"http://localhost{path}", headers=headers,
                stream=True, allow_redirects=False, timeout=SILENCE_S,
            )  # fmt: skip
        except BROKEN as error:
            _broken(error)
        with response:
            yield _Response(response)


def _broken(error: Exception) -> NoReturn:
    """Raise the error that a short request would raise for a broken connection."""
    if isinstance(error, requests.Timeout | TimeoutError | ReadTimeoutError):
        raise Unreachable(
            f"the service did not respond within {SILENCE_S:.0f} seconds", hint=transport.remedy()
        ) from None
    if "IncompleteRead" in repr(error):
        raise _cut_short() from None
    raise Unreachable("the connection to the service broke", hint=transport.remedy()) from None


def _cut_short() -> BadAnswer:
    return BadAnswer("the service's answer was cut short", hint=transport.remedy())
