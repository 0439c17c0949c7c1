"""Send a file, or a stream of unknown length, over the host-local socket.

No HTTP library is used: its import takes longer than the upload of a small file. A file goes
from the disk to the socket by sendfile(2); svc.client.transport reads the answer.
"""

from __future__ import annotations

import _socket
import errno
import os

from svc.client import transport
from svc.errors import BadAnswer, FileRefused, Unreachable
from svc.limits import ANSWER_WAIT_S, FILE_SOCKET
from svc.settings import Settings

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from svc.client.transport import Answer

TAR, BYTES = "application/x-tar", "application/octet-stream"
PART = 256 * 1024
PIECE = 4 * 1024 * 1024  # bytes of a file between two updates of the progress
_NO_SENDFILE = (errno.EINVAL, errno.ENOSYS)  # from a file system without sendfile


def send(
    path: str,
    file: Any,  # a FileIO, or any readable binary stream when the size is None
    size: int | None,
    media_type: str,
    *,
    method: str = "POST",
    moved: Callable[[int], object] = lambda _: None,
    again: str = "",
) -> Answer:
    """Send `size` bytes of a file, or all until EOF, and return the answer, whatever its status.

    `moved` is called with the size of each piece sent; `again` is the command to
    run when the connection breaks. Raises FileRefused, Unreachable, BadAnswer.
    """
    connection = transport.connect(Settings().socket)
    try:
        transport.wait_to_send(connection, ANSWER_WAIT_S)
        # Both sides wake less often.
        connection.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, FILE_SOCKET)
        try:
            connection.sendall(_head(method, path, media_type, size))
            if size is None:
                _send_chunks(connection, file, moved)
            else:
                _send_file(connection, file.fileno(), size, moved)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before the whole body was read: the answer is there
        return transport.receive(connection, method, ANSWER_WAIT_S)
    except OSError as error:
        raise transport.unsure(method, _broken(error, again)) from None
    except (BadAnswer, Unreachable) as error:
        error.hint = again or error.hint
        raise transport.unsure(method, error) from None
    finally:
        connection.close()


def _head(method: str, path: str, media_type: str, size: int | None) -> bytes:
    framing = "Transfer-Encoding: chunked" if size is None else f"Content-Length: {size}"
    head = [
        f"{method} {path} HTTP/1.1", "Host: localhost", "Accept: application/json", "User-Agent: svc",
        "Connection: close", f"Content-Type: {media_type}", framing, "", "",
    ]  # fmt: skip
    return "\r\n".join(head).encode("ascii")


def _send_file(connection: _socket.socket, file: int, size: int, moved: Callable[[int], object]) -> None:
    offset = 0
    while offset < size:
        sent = _send_piece(connection, file, offset, min(PIECE, size - offset))
        if not sent:
            raise FileRefused("the file was truncated while it was read; nothing was stored")
        offset += sent
        moved(sent)


def _send_piece(connection: _socket.socket, file: int, offset: int, count: int) -> int:
    """Send up to `count` bytes; returns how many, 0 at the end of the file."""
    try:
        return os.sendfile(connection.fileno(), file, offset, count)
    except OSError as error:
        part = _read(file, offset)  # raises for a file that cannot be read
        if error.errno not in _NO_SENDFILE:
            raise
    part = part[:count]
    connection.sendall(part)
    return len(part)


def _read(file: int, offset: int) -> bytes:
    try:
        return os.pread(file, PART, offset)
    except OSError as error:
        raise _unreadable(error) from None


def _send_chunks(connection: _socket.socket, file: Any, moved: Callable[[int], object]) -> None:
    """Send each part as soon as it is available, up to EOF."""
    read = getattr(file, "readinto1", file.readinto)  # returns as soon as some bytes are available
    buffer = memoryview(bytearray(PART))
    while True:
        try:
            count = read(buffer)
        except OSError as error:
            raise _unreadable(error) from None
        if count is None:  # nothing yet: shared with a program that made it non-blocking
            import select

            select.select([file], [], [])
            continue
        connection.sendall(b"%X\r\n%b\r\n" % (count, bytes(buffer[:count])))
        if not count:
            return
        moved(count)


def _unreadable(error: OSError) -> FileRefused:
    return FileRefused(f"cannot read the data to send: {error.strerror}")


def _broken(error: OSError, again: str) -> Unreachable:
    hint = again or transport.remedy()
    if isinstance(error, TimeoutError | BlockingIOError):
        return Unreachable(f"the service did not respond within {ANSWER_WAIT_S:.0f} seconds", hint=hint)
    return Unreachable("the connection to the service broke", hint=hint)
