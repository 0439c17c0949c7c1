"""One short request over the host-local socket, with the C parts of the standard library only.

HTTP/1.1 with `Connection: close`: for quick commands an HTTP library is too slow
(importing http.client takes longer than the request). The answer is untrusted:
its size, duration and form are checked, and the socket is used only when root
(with `svc server --dev`, the caller) owns it and root or the service serves it.
"""

from __future__ import annotations

import _socket  # the C half of socket, which needs 3 ms more to load
import os
import stat
import sys
import time

from svc.errors import BadAnswer, SvcError, Unreachable, by_code
from svc.limits import ANSWER_MAX, ANSWER_WAIT_S
from svc.settings import Settings
from svc_helper.wire import quick_json

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

APP_USER = "svc-unix"  # serves the socket, which root has bound
CONNECT_S = 5.0  # for a place in the queue of connections, unless the whole request may last less
HEAD_MAX = 64 * 1024
CHUNK = 64 * 1024
READING = ("GET", "HEAD")  # requests that change nothing
UNKNOWN = "; what was asked may have been done"  # of a request whose answer is lost
changes: list[str] = []  # the methods of this process's requests that have changed something
PIECE = 256 * 1024  # of a file


class Answer:
    """An HTTP answer: status, header fields (names in lower case), body."""

    __slots__ = ("body", "fields", "status")

    def __init__(self, status: int, fields: dict[str, str], body: bytes) -> None:
        self.status = status
        self.fields = fields
        self.body = body

    @property
    def ok(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    def json(self) -> dict[str, Any]:
        """The body as a JSON object; raises BadAnswer."""
        try:
            value = quick_json.loads(self.body.decode())
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise BadAnswer(f"the service's answer (status {self.status}) is not a JSON object")
        return value

    def error(self) -> SvcError:
        """The error in the body, as an exception."""
        try:
            inner = self.json().get("error")
        except BadAnswer:
            inner = None
        return error_of(
            inner, f"the service refused the request with status {self.status} and gave no reason"
        )


def error_of(untrusted: object, otherwise: str) -> SvcError:
    """An error object of the API as an exception; parts of the wrong type are ignored."""
    error = untrusted if isinstance(untrusted, dict) else {}
    row = by_code(str(error.get("code")))
    listed = error.get("fields")
    fields = [
        {"field": str(field.get("field", "")), "code": "", "message": str(field.get("message", ""))}
        for field in (listed if isinstance(listed, list) else [])
        if isinstance(field, dict)
    ]
    hint = str(error.get("hint") or "")
    if not hint and row is SvcError and error.get("request_id"):
        hint = f"sudo journalctl -u svc --grep {error['request_id']}"
    return row(str(error.get("message") or otherwise), hint=hint, fields=fields, details=_printed(error))


def _printed(error: dict[str, Any]) -> dict[str, Any]:
    """What an error's details have of an engine's words, a program's last lines, an operation under way."""
    details = error.get("details")
    details = details if isinstance(details, dict) else {}
    engine, output, operation = (details.get(key) for key in ("engine", "output", "operation"))
    return {
        "engine": engine if isinstance(engine, str) else "",
        "output": [str(line) for line in output] if isinstance(output, list) else [],
        "operation": operation if isinstance(operation, dict) else {},
    }


def request(
    method: str,
    path: str,
    body: bytes | None = None,
    *,
    via: str = "",
    if_match: str = "",
    wait_s: float = ANSWER_WAIT_S,
    socket: str = "",
) -> Answer:
    """Send one request and return the answer, whatever its status; `via` is the X-Svc-Via header."""
    message = _message(method, path, body, via, if_match)
    deadline = time.monotonic() + wait_s
    connection = connect(socket or Settings().socket, min(wait_s, CONNECT_S))
    try:
        _send(connection, message, wait_s)
        return _receive(connection, method, deadline)
    except OSError as error:
        raise unsure(method, _broken(error, wait_s)) from None
    except (BadAnswer, Unreachable) as error:
        raise unsure(method, error) from None
    finally:
        connection.close()


def unsure(method: str, error: SvcError) -> SvcError:
    """The error, which does not deny a change that may have been made."""
    if method not in READING:
        error.message += UNKNOWN
    return error


def receive(connection: _socket.socket, method: str, wait_s: float) -> Answer:
    """The answer to a request that was sent on the connection; raises OSError, Unreachable, BadAnswer."""
    return _receive(connection, method, time.monotonic() + wait_s)


def _receive(connection: _socket.socket, method: str, deadline: float) -> Answer:
    answer = _Reader(connection, deadline).answer(method)
    if answer.ok and method not in READING:
        changes.append(method)
    return answer


class Download:
    """A GET whose body of any size is read in parts; used as a context. Raises the answer's error."""

    __slots__ = ("_connection", "_reader", "_wait_s", "complete", "fields")

    def __init__(self, path: str, wait_s: float = ANSWER_WAIT_S, again: str = "") -> None:
        """Send the request and read the answer's head; `wait_s` is the longest silence.

        `again` is the command to run when the connection breaks.
        """
        self.complete = False
        self._wait_s = wait_s
        self._connection = connect(Settings().socket)
        try:
            _send(self._connection, _message("GET", path, None, ""), wait_s)
            self._reader = _Reader(self._connection, time.monotonic() + wait_s)
            status, self.fields = self._reader.head()
            if not 200 <= status < 300:
                raise Answer(status, self.fields, self._reader.body(self.fields)).error()
        except OSError as error:
            self._connection.close()
            raise _broken(error, wait_s, again) from None
        except SvcError as error:
            self._connection.close()
            if again and isinstance(error, BadAnswer | Unreachable):
                error.hint = again
            raise

    def __enter__(self) -> Download:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def parts(self, size: int | None = None) -> Iterator[bytes]:
        """The body, of so many bytes or in chunks. Raises Unreachable, BadAnswer.

        `complete` tells afterwards whether it was whole.
        """
        left = size
        while left != 0:
            try:
                part = self._part(left)
            except TimeoutError as error:
                raise _broken(error, self._wait_s) from None
            except OSError:
                return
            if not part:
                self.complete = part is not None and left is None
                return
            left = None if left is None else left - len(part)
            yield part
        self.complete = True

    def _part(self, left: int | None) -> bytes | None:
        if left is None:
            return self._reader.part(self.fields, self._wait_s)
        return self._reader.piece(min(left, PIECE), self._wait_s)

    def comes(self, wait_s: float) -> bool:
        """Whether more of an endless body comes within wait_s; raises Unreachable at its end."""
        try:
            part = self._reader.part(self.fields, wait_s)
        except TimeoutError:
            return False
        except OSError:
            part = None
        if not part:
            raise Unreachable("the service has ended the stream", hint=remedy())
        return True


class Upgrade:
    """The handshake of a WebSocket: sent at once, its answer read by finish(); both sides work meanwhile."""

    __slots__ = ("_connection", "_expected", "_wait_s")

    def __init__(self, path: str, protocol: str, wait_s: float = ANSWER_WAIT_S) -> None:
        """Send it."""
        from svc import websocket

        key = websocket.new_key()
        head = [
            f"GET {path} HTTP/1.1", "Host: localhost", "Connection: Upgrade", "Upgrade: websocket",
            f"Sec-WebSocket-Key: {key}", f"Sec-WebSocket-Version: {websocket.VERSION}",
            f"Sec-WebSocket-Protocol: {protocol}", "", "",
        ]  # fmt: skip
        self._wait_s, self._expected = wait_s, websocket.answer_to(key)
        self._connection = connect(Settings().socket)
        try:
            _send(self._connection, "\r\n".join(head).encode("ascii"), wait_s)
        except OSError as error:
            self._connection.close()
            raise _broken(error, wait_s) from None

    def finish(self) -> tuple[_socket.socket, bytes]:
        """The connection, and what the service has sent behind its answer; raises the answer's error."""
        reader = _Reader(self._connection, time.monotonic() + self._wait_s)
        try:
            status, fields = reader.head()
            if status != 101:
                raise Answer(status, fields, reader.body(fields)).error()
            if fields.get("sec-websocket-accept") != self._expected:
                raise BadAnswer("the service's answer is not that to a WebSocket's handshake")
        except OSError as error:
            self._connection.close()
            raise _broken(error, self._wait_s) from None
        except SvcError:
            self._connection.close()
            raise
        self._connection.setblocking(False)
        return self._connection, bytes(reader.buffer)


def _message(method: str, path: str, body: bytes | None, via: str, if_match: str = "") -> bytes:
    head = [f"{method} {path} HTTP/1.1", "Host: localhost", "Accept: application/json", "Connection: close"]
    if via:
        head.append(f"X-Svc-Via: {via}")
    if if_match:
        head.append(f"If-Match: {if_match}")
    if body is not None:
        head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    elif method not in ("GET", "HEAD"):
        head.append("Content-Length: 0")
    return "\r\n".join([*head, "", ""]).encode("ascii") + (body or b"")


def _send(connection: _socket.socket, message: bytes, wait_s: float) -> None:
    connection.settimeout(wait_s)
    try:
        connection.sendall(message)
    except (BrokenPipeError, ConnectionResetError):
        pass  # refused before the whole body was read (413); the answer is there


def _broken(error: OSError, wait_s: float, again: str = "") -> Unreachable:
    hint = again or remedy()
    if isinstance(error, TimeoutError):
        return Unreachable(f"the service did not respond within {wait_s:.0f} seconds", hint=hint)
    return Unreachable(f"the connection to the service broke: {error.strerror}", hint=hint)


# --- the socket ---------------------------------------------------------------------


def connect(path: str, wait_s: float = CONNECT_S) -> _socket.socket:
    """Connect to the socket; raises Unreachable unless a trusted user owns and serves it."""
    try:
        return _connect(path, wait_s)
    except Unreachable as error:
        error.nothing_sent = True
        raise


def _connect(path: str, wait_s: float) -> _socket.socket:
    me = os.geteuid()
    try:
        status = os.lstat(path)
    except OSError as error:
        raise Unreachable(f"cannot connect to the service: {path}: {error.strerror}", hint=remedy()) from None
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid not in (0, me):
        raise Unreachable(
            f"refusing to use {path}: not a socket owned by root", hint="svc env --all  # see SVC_SOCKET"
        )
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    try:
        # A timeout of Python's own would make a full queue of connections an error at once.
        connection.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, _timeval(wait_s))
        connection.connect(path)
        peer = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    except OSError as error:
        connection.close()
        why = "too busy" if isinstance(error, BlockingIOError) else error.strerror
        raise Unreachable(f"cannot connect to the service: {path}: {why}", hint=remedy()) from None
    server = int.from_bytes(peer[4:8], sys.byteorder)  # struct ucred {pid, uid, gid}
    if not _trusted(server, me):
        connection.close()
        raise Unreachable(f"refusing to use {path}: served by user id {server}, not by the service")
    return connection


def wait_to_send(connection: _socket.socket, wait_s: float) -> None:
    """Make each send wait so long in the kernel; it raises BlockingIOError then."""
    connection.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, _timeval(wait_s))


def _timeval(seconds: float) -> bytes:
    """A struct timeval of at least a millisecond: zero is none at all."""
    whole, milliseconds = divmod(max(1, round(seconds * 1000)), 1000)
    return whole.to_bytes(8, sys.byteorder) + (milliseconds * 1000).to_bytes(8, sys.byteorder)


def _trusted(server: int, me: int) -> bool:
    """Whether a server with this uid is trusted: root, the caller (--dev) or the service."""
    return server in (0, me) or server == _app_uid()


def _app_uid() -> int:
    """The uid of the unprivileged app; -1 where there is none."""
    from pwd import getpwnam

    try:
        return getpwnam(APP_USER).pw_uid
    except KeyError:
        return -1


def remedy() -> str:
    """The next command when the service is unreachable."""
    from svc.service_commands import status_command

    return status_command("sudo svc server")


# --- the answer ---------------------------------------------------------------------


class _Reader:
    """Reads one HTTP answer from a connection, within a deadline and size limits."""

    def __init__(self, connection: _socket.socket, deadline: float) -> None:
        self.connection = connection
        self.deadline = deadline
        self.buffer = bytearray()
        self.received = 0
        self.left = 0  # of a chunk, or of a body of known length

    def answer(self, method: str) -> Answer:
        """The answer; raises BadAnswer if it is malformed."""
        status, fields = self.head()
        if method == "HEAD" or status in (204, 304):
            return Answer(status, fields, b"")
        return Answer(status, fields, self.body(fields))

    def head(self) -> tuple[int, dict[str, str]]:
        """The status and the header fields."""
        version, _, rest = self._line().partition(" ")
        code = rest[:3]
        if version not in ("HTTP/1.1", "HTTP/1.0") or not code.isascii() or not code.isdigit():
            raise BadAnswer("the answer on the service's socket is not HTTP")
        fields: dict[str, str] = {}
        while line := self._line():
            name, _, value = line.partition(":")
            fields[name.lower()] = value.strip()
            if self.received - len(self.buffer) > HEAD_MAX:
                raise BadAnswer(f"the service's answer has more than {HEAD_MAX} bytes of header fields")
        return int(code), fields

    def piece(self, most: int, wait_s: float) -> bytes:
        """The next bytes of a body of known length, at most so many: empty where it is cut short."""
        if self.buffer:
            piece = bytes(self.buffer[:most])
            del self.buffer[:most]
            return piece
        self.connection.settimeout(wait_s)
        return self.connection.recv(most)

    def part(self, fields: dict[str, str], wait_s: float) -> bytes | None:
        """The next bytes of a chunked body of any size: empty at its end, None if it is cut short."""
        if fields.get("transfer-encoding", "").lower() != "chunked":
            raise BadAnswer("the service's answer has no chunks")
        self.deadline, self.received = time.monotonic() + wait_s, 0
        if not self.left:
            if not self._receive_line():
                return None
            self.left = self._chunk_length()
            if not self.left:
                return b""
        if not self.buffer and not self._more():
            return None
        part = bytes(self.buffer[: self.left])
        del self.buffer[: len(part)]
        self.left -= len(part)
        if not self.left:
            if not self._receive_line():
                return None
            self._line()
        return part

    def _receive_line(self) -> bool:
        """Receive up to the end of the next line; False at EOF."""
        while b"\n" not in self.buffer and len(self.buffer) < HEAD_MAX:
            if not self._more():
                return False
        return True

    def body(self, fields: dict[str, str]) -> bytes:
        """The whole body, at most ANSWER_MAX."""
        if fields.get("transfer-encoding", "").lower() == "chunked":
            return self._chunks()
        length = fields.get("content-length")
        if length is None:
            while self._more():
                pass
            return bytes(self.buffer)
        if not length.isascii() or not length.isdigit() or len(length) > 18:
            raise BadAnswer("the service's answer has an invalid length")
        if int(length) > ANSWER_MAX:
            raise BadAnswer(f"the service's answer is larger than {ANSWER_MAX} bytes")
        return self._exactly(int(length))

    def _chunks(self) -> bytes:
        body = bytearray()
        while length := self._chunk_length():
            body += self._exactly(length)
            self._line()
        return bytes(body)

    def _chunk_length(self) -> int:
        try:
            length = int(self._line().partition(";")[0], 16)
        except ValueError:
            length = -1
        if not 0 <= length <= ANSWER_MAX:
            raise BadAnswer("the service's answer has a chunk of invalid length")
        return length

    def _line(self) -> str:
        """The next line of the head or between chunks, without its line end."""
        while (end := self.buffer.find(b"\n", 0, HEAD_MAX)) < 0:
            if len(self.buffer) >= HEAD_MAX:
                raise BadAnswer(f"the service's answer has a line of more than {HEAD_MAX} bytes")
            if not self._more():
                self._cut_short()
        line = self.buffer[:end].rstrip(b"\r").decode("latin-1")
        del self.buffer[: end + 1]
        return line

    def _exactly(self, count: int) -> bytes:
        while len(self.buffer) < count:
            if not self._more():
                self._cut_short()
        part = bytes(self.buffer[:count])
        del self.buffer[:count]
        return part

    def _more(self) -> bool:
        """Receive available bytes; False at EOF."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.connection.settimeout(left)
        data = self.connection.recv(CHUNK)
        self.buffer += data
        self.received += len(data)
        if self.received > ANSWER_MAX + HEAD_MAX:
            raise BadAnswer(f"the service's answer is larger than {ANSWER_MAX} bytes")
        return bool(data)

    def _cut_short(self) -> NoReturn:
        if self.received:
            raise BadAnswer("the service's answer was cut short", hint=remedy())
        raise Unreachable("the service closed the connection without an answer", hint=remedy())
