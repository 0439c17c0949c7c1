"""WebSocket frames (RFC 6455), without extensions, for both ends: `svc ws shell` and the listeners.

Strict: every rule of the framing that the other end breaks ends the connection, and no message is longer
than the receiver allows, however it is cut into frames. Only C parts of the standard library are
imported, since a command's start waits for it.
"""

from __future__ import annotations

import os
from _sha1 import sha1  # hashlib loads OpenSSL
from binascii import a2b_base64, b2a_base64

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Iterator

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA
NORMAL, PROTOCOL_ERROR, NO_CODE, NOT_TEXT, TOO_BIG, RESTART = 1000, 1002, 1005, 1007, 1009, 1012
CONTROL_MAX = 125  # bytes of a control frame
REASON_MAX = CONTROL_MAX - 2
KEY_BYTES = 16
VERSION = "13"
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_FIN, _RESERVED, _MASKED, _LONG, _LONGER = 0x80, 0x70, 0x80, 126, 127
_MOST_SHORT, _MOST_LONG = 125, 0xFFFF


class Broken(Exception):
    """The other end broke the protocol; `code` is the one to close with."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


# --- the handshake ----------------------------------------------------------------------


def new_key() -> str:
    """A client's random key."""
    return b2a_base64(os.urandom(KEY_BYTES), newline=False).decode("ascii")


def is_key(untrusted: str) -> bool:
    """Whether a header field is a client's key."""
    try:
        return len(a2b_base64(untrusted.encode("ascii"), strict_mode=True)) == KEY_BYTES
    except ValueError:
        return False


def answer_to(key: str) -> str:
    """What the server answers to a client's key."""
    return b2a_base64(sha1(key.encode("ascii") + _GUID).digest(), newline=False).decode("ascii")


# --- sending ----------------------------------------------------------------------------


def frame(kind: int, data: bytes, *, mask: bool = False) -> bytes:
    """One unfragmented frame; clients mask theirs."""
    size, bit = len(data), _MASKED if mask else 0
    if size <= _MOST_SHORT:
        head = bytes((_FIN | kind, bit | size))
    elif size <= _MOST_LONG:
        head = bytes((_FIN | kind, bit | _LONG)) + size.to_bytes(2, "big")
    else:
        head = bytes((_FIN | kind, bit | _LONGER)) + size.to_bytes(8, "big")
    if not mask:
        return head + data
    key = os.urandom(4)
    return head + key + _masked(data, key)


def closing(code: int, reason: str = "") -> bytes:
    """The content of a close frame, its reason cut to what fits."""
    return code.to_bytes(2, "big") + reason.encode()[:REASON_MAX].decode(errors="ignore").encode()


def _masked(data: bytes, key: bytes) -> bytes:
    size = len(data)
    pattern = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "big") ^ int.from_bytes(pattern, "big")).to_bytes(size, "big")


# --- receiving --------------------------------------------------------------------------


class Receiver:
    """Makes messages of the bytes that arrive: (kind, data), data messages whole, control frames between."""

    def __init__(self, most: int, *, masked: bool) -> None:
        """`most` is the most bytes of a message; `masked` whether the other end is a client."""
        self.most = most
        self.masked = masked
        self.has_more = False  # after feed() with a number of frames: whether that was too few
        self._buffer = bytearray()
        self._kind = 0  # of the message whose frames are arriving; 0: none
        self._message = bytearray()

    def feed(self, data: bytes, frames_max: int = 0) -> Iterator[tuple[int, bytes]]:
        """The messages that these bytes complete, of at most so many frames (0: all); raises Broken."""
        self._buffer += data
        self.has_more = False
        count = 0
        while (found := self._next_frame()) is not None:
            message = self._completed(*found)
            if message is not None:
                yield message
            count += 1
            if count == frames_max:
                self.has_more = True
                return

    def _completed(self, is_last: bool, kind: int, content: bytes) -> tuple[int, bytes] | None:
        """The message that a frame completes."""
        if kind & 0x8:
            if kind == CLOSE:
                close_code(content)  # raises Broken for an invalid one
            return kind, content
        if kind != CONTINUATION:
            self._kind = kind
        self._message += content
        if not is_last:
            return None
        message, kind = bytes(self._message), self._kind
        self._message.clear()
        self._kind = 0
        if kind == TEXT:
            _require_text(message)
        return kind, message

    def _next_frame(self) -> tuple[bool, int, bytes] | None:
        """The next whole frame; None if it is not there yet."""
        buffer = self._buffer
        if len(buffer) < 2:
            return None
        is_last, kind = bool(buffer[0] & _FIN), buffer[0] & 0x0F
        self._require_frame(buffer[0], buffer[1], is_last=is_last, kind=kind)
        size, start = buffer[1] & 0x7F, 2
        if size >= _LONG:
            width = 2 if size == _LONG else 8
            if len(buffer) < start + width:
                return None
            size, start = int.from_bytes(buffer[2 : 2 + width], "big"), start + width
            if size <= (_MOST_SHORT if width == 2 else _MOST_LONG):
                raise Broken(PROTOCOL_ERROR, "the length of a frame is longer than needed")
        if not kind & 0x8 and len(self._message) + size > self.most:
            raise Broken(TOO_BIG, f"a message has at most {self.most} bytes")
        end = start + 4 * self.masked + size
        if len(buffer) < end:
            return None
        content = bytes(buffer[end - size : end])
        if self.masked:
            content = _masked(content, bytes(buffer[start : start + 4]))
        del buffer[:end]
        return is_last, kind, content

    def _require_frame(self, first: int, second: int, *, is_last: bool, kind: int) -> None:
        """Raise Broken for the first two bytes of a frame that may not come now."""
        if first & _RESERVED or kind not in (CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG):
            raise Broken(PROTOCOL_ERROR, "a frame of an unknown kind")
        if bool(second & _MASKED) != self.masked:
            raise Broken(PROTOCOL_ERROR, "only a client masks its frames, and all of them")
        if kind & 0x8 and (not is_last or second & 0x7F > CONTROL_MAX):
            raise Broken(PROTOCOL_ERROR, "a control frame is short and whole")
        if not kind & 0x8 and (kind == CONTINUATION) != bool(self._kind):
            raise Broken(PROTOCOL_ERROR, "the frames of a message follow each other")


def close_code(content: bytes) -> int:
    """The code of a close frame, NO_CODE if it has none; raises Broken."""
    if not content:
        return NO_CODE
    code = int.from_bytes(content[:2], "big")
    may_be_sent = 1000 <= code <= 1014 and code not in (1004, 1005, 1006)
    if len(content) < 2 or not (may_be_sent or 3000 <= code <= 4999):
        raise Broken(PROTOCOL_ERROR, "no such close code")
    _require_text(content[2:])
    return code


def close_reason(content: bytes) -> str:
    """The reason in a close frame."""
    return content[2:].decode(errors="replace")


def _require_text(content: bytes) -> None:
    try:
        content.decode()
    except UnicodeDecodeError:
        raise Broken(NOT_TEXT, "text is UTF-8") from None
