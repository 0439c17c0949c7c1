"""Names and paths below a file root: bytes, as Linux has them, however they are written.

On the wire and in `?path=` a path is percent-encoded (as svc_helper.wire.arguments
has it; a test compares), "" is the root itself. For people it is text in which
bytes that are no UTF-8, and only these, are shown as \\xNN.
"""

from __future__ import annotations

import re
from urllib.parse import quote_from_bytes, unquote_to_bytes

from svc.errors import EngineFailed, InvalidRequest
from svc.limits import FILE_NAME_MAX, FILE_PATH_MAX

_DISGUISED = re.compile(rb"%2e|%2f|%5c|\\", re.IGNORECASE)  # a dot, and what stands between parts
_PLAIN = re.compile(r"[A-Za-z0-9._~/-]*")


def parse(untrusted: bytes, *, root: bool = False) -> bytes:
    """A path that somebody asked for, checked; with `root` it may be "", the root itself.

    Raises InvalidRequest for a path that is absolute, ends with "/", has an empty
    part, "." or "..", also disguised (percent-encoded twice, or with backslashes),
    a NUL, or that is longer than Linux takes.
    """
    if not untrusted and not root:
        raise InvalidRequest("path: it must name something below the file root, not the root itself")
    if b"\0" in untrusted:
        raise InvalidRequest("path: no name has a NUL byte")
    if len(untrusted) > FILE_PATH_MAX:
        raise InvalidRequest(f"path: at most {FILE_PATH_MAX} bytes")
    for part in untrusted.split(b"/") if untrusted else ():
        _require_name(part)
    return untrusted


def _require_name(untrusted: bytes) -> None:
    if not untrusted:
        raise InvalidRequest(
            "path: it is relative to the file root, without an empty part and without / at its end"
        )
    if len(untrusted) > FILE_NAME_MAX:
        raise InvalidRequest(f"path: a name has at most {FILE_NAME_MAX} bytes")
    pieces = _DISGUISED.sub(lambda found: b"." if found[0][-1:] in b"eE" else b"/", untrusted).split(b"/")
    if b".." in pieces or all(piece in (b"", b".") for piece in pieces):
        raise InvalidRequest("path: no part may be . or .., in no disguise either")


def encode(path: bytes) -> str:
    """A path, or a name, as the wire and `?path=` have it: each byte but letters, digits and -._~/ as %XX."""
    return quote_from_bytes(path, safe="/")


def decode_asked(untrusted: str) -> bytes:
    """The bytes of what somebody asked for percent-encoded, to be parsed; what needs none may be as it is."""
    return unquote_to_bytes(untrusted)


def decode(untrusted: str) -> bytes:
    """The bytes of what an agent encoded; raises EngineFailed unless it is the one canonical way."""
    if _PLAIN.fullmatch(untrusted):
        return untrusted.encode("ascii")
    path = unquote_to_bytes(untrusted)
    if encode(path) != untrusted or b"\0" in path:
        raise EngineFailed("the engine's answer has no usable file name")
    return path


def decode_name(untrusted: str) -> bytes:
    """As decode(), of one name in a directory."""
    name = decode(untrusted)
    if not name or b"/" in name or name in (b".", b"..") or len(name) > FILE_NAME_MAX:
        raise EngineFailed("the engine's answer has no usable file name")
    return name


def shown(path: bytes) -> str:
    """A path, or a name, for people."""
    return path.decode("utf-8", "backslashreplace")


def is_text(path: bytes) -> bool:
    """Whether shown() is exactly what it is called."""
    try:
        path.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def name_of(path: bytes) -> bytes:
    """The last part of a path."""
    return path.rpartition(b"/")[2]
