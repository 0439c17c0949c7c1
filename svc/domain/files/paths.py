"""Names and paths below a file root, which are bytes as on Linux.

On the wire and in `?path=` a path is percent-encoded (as in svc_helper.wire.arguments;
a test compares both), and "" is the root itself. As text, bytes that are not UTF-8,
and only these, are written as \\xNN.
"""

from __future__ import annotations

import re
from urllib.parse import quote_from_bytes, unquote_to_bytes

from svc.errors import EngineFailed, InvalidRequest
from svc_helper.wire.limits import FILE_NAME_MAX, FILE_PATH_MAX

_DISGUISED = re.compile(rb"%2e|%2f|%5c|\\", re.IGNORECASE)  # a dot or a separator
_PLAIN = re.compile(r"[A-Za-z0-9._~/-]*")


def parse(untrusted: bytes, *, root: bool = False) -> bytes:
    """Check a requested path; with `root` it may be "", the root itself.

    Raises InvalidRequest for a path that is absolute, ends with "/", has an empty
    part, "." or "..", also disguised (percent-encoded twice, or with backslashes),
    or a NUL, or that is longer than Linux allows.
    """
    if not untrusted and not root:
        raise InvalidRequest("path: must name a file or directory below the file root, not the root itself")
    if b"\0" in untrusted:
        raise InvalidRequest("path: must not contain a NUL byte")
    if len(untrusted) > FILE_PATH_MAX:
        raise InvalidRequest(f"path: at most {FILE_PATH_MAX} bytes")
    for part in untrusted.split(b"/") if untrusted else ():
        _require_name(part)
    return untrusted


def _require_name(untrusted: bytes) -> None:
    if not untrusted:
        raise InvalidRequest(
            "path: must be relative to the file root, without empty parts and without a trailing /"
        )
    if len(untrusted) > FILE_NAME_MAX:
        raise InvalidRequest(f"path: a name has at most {FILE_NAME_MAX} bytes")
    pieces = _DISGUISED.sub(lambda found: b"." if found[0][-1:] in b"eE" else b"/", untrusted).split(b"/")
    if b".." in pieces or all(piece in (b"", b".") for piece in pieces):
        raise InvalidRequest("path: no part may be . or .., also not encoded or with backslashes")


def encode(path: bytes) -> str:
    """Percent-encode a path or a name: each byte except letters, digits and -._~/ becomes %XX."""
    return quote_from_bytes(path, safe="/")


def decode_asked(untrusted: str) -> bytes:
    """Decode a requested path, which is not checked; encoding is optional where it is not needed."""
    return unquote_to_bytes(untrusted)


def decode(untrusted: str) -> bytes:
    """Decode an agent's path; raises EngineFailed unless its encoding is canonical."""
    if _PLAIN.fullmatch(untrusted):
        return untrusted.encode("ascii")
    path = unquote_to_bytes(untrusted)
    if encode(path) != untrusted or b"\0" in path:
        raise EngineFailed("the engine's reply has an invalid file name")
    return path


def decode_name(untrusted: str) -> bytes:
    """decode() for a single name; some file systems (FUSE, NTFS) have longer ones than FILE_NAME_MAX."""
    name = decode(untrusted)
    if not name or b"/" in name or name in (b".", b"..") or len(name) > FILE_PATH_MAX:
        raise EngineFailed("the engine's reply has an invalid file name")
    return name


def format_path(path: bytes) -> str:
    """A path or a name as text."""
    return path.decode("utf-8", "backslashreplace")


def is_text(path: bytes) -> bool:
    """Whether format_path() is exact."""
    try:
        path.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def name_of(path: bytes) -> bytes:
    """The last part of a path."""
    return path.rpartition(b"/")[2]
