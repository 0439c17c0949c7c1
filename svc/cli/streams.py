"""Files over the host's socket: sent and fetched piece by piece, by requests-unixsocket.

Loaded only by the commands that move a file; a short request goes through
svc.cli.transport, whose trust in the socket holds here too. Neither a proxy nor
a redirect leads anywhere else.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple, NoReturn

import requests
import requests_unixsocket.adapters as unix
from urllib3.exceptions import HTTPError

from svc.cli import transport
from svc.cli.transport import Answer
from svc.errors import BadAnswer, FileRefused, SvcError, Unreachable
from svc.limits import ANSWER_MAX, ANSWER_WAIT_S
from svc.settings import Settings

PART = 256 * 1024
EVENTS = "text/event-stream"
EVENT_MAX = 1024 * 1024
SILENCE_S = 60.0  # of a stream, which says at least every 15 seconds that it is still there


class _Connection(unix.UnixHTTPConnection):
    """A connection to the service's socket, if it may be trusted."""

    blocksize = PART

    def connect(self) -> None:
        """Connect as a short request does."""
        trusted = transport.connect(Settings().socket)
        self.sock = socket.socket(fileno=trusted.detach())
        self.sock.settimeout(self.timeout)


class _Pool(unix.UnixHTTPConnectionPool):
    def _new_conn(self) -> _Connection:
        connection = _Connection(self.socket_path, self.timeout)
        connection.blocksize = PART
        return connection


class _Adapter(unix.UnixAdapter):
    """Leads every address to the one socket."""

    def get_connection(self, url: str, proxies: Any = None) -> _Pool:
        return _Pool(url, self.timeout)


class _Sending:
    """A file that is sent with a length: so many bytes, whatever is added meanwhile."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file = file
        self.left = self.size = size

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[bytes]:  # by this requests knows that it is a stream
        while part := self.read(PART):
            yield part

    def read(self, count: int) -> bytes:
        """The next bytes; raises FileRefused when the file ends too early."""
        part = self.file.read(min(count, self.left))
        if self.left and not part:
            raise FileRefused("the file became shorter while it was read; nothing was taken")
        self.left -= len(part)
        return part


class Fetched:
    """An answer that is a file, of which nothing has been read yet."""

    def __init__(self, response: requests.Response, size: int) -> None:
        self.fields = {name.lower(): value for name, value in response.headers.items()}
        self.size = size
        self._response = response

    def parts(self) -> Iterator[bytes]:
        """The bytes, exactly `size` of them; raises BadAnswer when there are fewer."""
        left = self.size
        while left:
            part = self._response.raw.read(min(PART, left))
            if not part:
                raise _cut_short()
            left -= len(part)
            yield part


def send(path: str, file: BinaryIO, size: int, media_type: str) -> Answer:
    """POST so many bytes of a file and give the whole answer, whatever it says."""
    headers = {"Content-Type": media_type}
    with _asked("POST", path, headers, _Sending(file, size)) as response:
        return _whole(response)


@contextmanager
def fetch(path: str, most: int) -> Iterator[Fetched]:
    """GET a file of at most so many bytes; raises the answer's error."""
    with _asked("GET", path, {}, None) as response:
        if not 200 <= response.status_code < 300:
            raise _whole(response).error()
        length = response.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or len(length) > 18 or int(length) > most:
            raise BadAnswer(f"the service's answer has no usable length, of at most {most} bytes")
        yield Fetched(response, int(length))


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
    with _asked("GET", path, {"Accept": EVENTS}, None, SILENCE_S) as response:
        if not 200 <= response.status_code < 300:
            raise _whole(response).error()
        if response.headers.get("Content-Type", "").partition(";")[0] != EVENTS:
            raise BadAnswer("the service's answer is no stream of events")
        name = ""
        for line in _lines(response):
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


def _lines(response: requests.Response) -> Iterator[bytes]:
    """The lines of a stream as they come, none longer than EVENT_MAX."""
    buffer = b""
    for part in response.raw.stream(PART, decode_content=False):
        *lines, buffer = (buffer + part).split(b"\n")
        yield from lines
        if len(buffer) > EVENT_MAX:
            raise BadAnswer("the service's answer has an event without end")


@contextmanager
def _asked(
    method: str, path: str, headers: dict[str, str], body: _Sending | None, wait_s: float = 0
) -> Iterator[requests.Response]:
    """The answer to one request, its body unread; its failures are errors of ours, also while it is read."""
    wait_s = wait_s or ANSWER_WAIT_S
    with requests.Session() as session:
        session.trust_env = False
        for scheme in ("http+unix://", "http://", "https://"):
            session.mount(scheme, _Adapter(wait_s))
        headers = {"Accept-Encoding": "identity", "Connection": "close", "User-Agent": "svc", **headers}
        try:
            with session.request(
                method, f"http://localhost{path}", data=body, headers=headers,
                stream=True, allow_redirects=False, timeout=wait_s,
            ) as response:  # fmt: skip
                yield response
        except (requests.RequestException, HTTPError, OSError) as error:
            _broken(error, wait_s)


def _whole(response: requests.Response) -> Answer:
    body = bytearray()
    while part := response.raw.read(PART):
        body += part
        if len(body) > ANSWER_MAX:
            raise BadAnswer(f"the service's answer is larger than {ANSWER_MAX} bytes")
    fields = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status_code, fields, bytes(body))


def _broken(error: Exception, wait_s: float) -> NoReturn:
    """What went wrong on the way, in the words of the short requests."""
    if isinstance(error, requests.Timeout | TimeoutError):
        raise Unreachable(
            f"the service did not answer within {wait_s:.0f} seconds", hint=transport.remedy()
        ) from None
    if "IncompleteRead" in repr(error):
        raise _cut_short() from None
    raise Unreachable("the connection to the service broke", hint=transport.remedy()) from None


def _cut_short() -> BadAnswer:
    return BadAnswer("the service's answer was cut short", hint=transport.remedy())
