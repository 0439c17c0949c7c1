"""The 512-byte header of a tar archive: deterministic writer, strict reader (decision 27).

A header is a regular file or a directory with a plain name and plain octal
numbers. The GNU and POSIX forms are accepted unless a field is used in which they
differ. Owner and time are ignored. Permissions beyond rwx are refused rather than
dropped: whoever set them expects them to be kept.
"""

from __future__ import annotations

import re
import struct
from typing import NamedTuple

from svc.domain.templates import bundle_paths
from svc.domain.templates.bundle_paths import refused

BLOCK = 512
MAGIC_AT = 257

# name mode uid gid size mtime checksum type link magic user group major minor prefix unused
_FIELDS = struct.Struct("100s8s8s8s12s12s8s1s100s8s32s32s8s8s155s12s")
_CHECKSUM = slice(148, 156)
_POSIX, _GNU = b"ustar\x0000", b"ustar  \x00"
_OCTAL = re.compile(rb"([0-7]+)[ \0]*")
_UNSET = re.compile(rb"0*[ \0]*")
_FILE, _DIRECTORY = (b"0", b"\0"), b"5"
_KINDS = {
    b"1": "a hard link", b"2": "a symbolic link", b"3": "a device", b"4": "a device", b"6": "a pipe",
    b"g": "an extended (pax) header", b"x": "an extended (pax) header", b"S": "a sparse file",
    b"K": "an extended (GNU long link) header", b"L": "an extended (GNU long name) header",
}  # fmt: skip


class Header(NamedTuple):
    """One checked member."""

    path: str
    size: int
    executable: bool
    directory: bool


def make(path: str, size: int, executable: bool) -> bytes:
    """The header of a regular file, equal for equal files; raises ValidationFailed for a bad name."""
    prefix, name = bundle_paths.split(path)
    mode = b"0000755\0" if executable else b"0000644\0"
    zero, epoch = b"0000000\0", b"00000000000\0"
    fields = [name, mode, zero, zero, b"%011o\0" % size, epoch, b" " * 8, b"0", b""]
    block = _FIELDS.pack(*fields, _POSIX, b"", b"", zero, zero, prefix, b"")
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def is_tar(untrusted: bytes) -> bool:
    """Check a file's first block for the magic of POSIX and GNU tar."""
    return untrusted[MAGIC_AT : MAGIC_AT + 5] == b"ustar"


def parse(untrusted: bytes) -> Header:
    """Parse a block; raises ValidationFailed for anything unusual."""
    fields = _FIELDS.unpack(untrusted)
    raw_name, mode, uid, gid, size, mtime, checksum, kind, link, magic, _, _, major, minor, prefix, rest = (
        fields
    )
    member = raw_name.partition(b"\0")[0]
    if magic not in (_POSIX, _GNU):
        raise refused(member, "header", "not the header of a tar member")
    if _octal(member, checksum, "checksum") != sum(untrusted) - sum(untrusted[_CHECKSUM]) + 8 * ord(" "):
        raise refused(member, "header", "the header's checksum is wrong")
    _require_plain_kind(member, kind, link, major + minor)
    if rest.strip(b"\0") or (magic == _GNU and prefix.strip(b"\0")):
        raise refused(member, "header", "fields that only some programs know")
    for number, what in ((uid, "owner"), (gid, "group"), (mtime, "time")):
        _octal(member, number, what)
    bits = _octal(member, mode, "mode")
    if bits > 0o777:
        raise refused(member, "member_mode", "setuid, setgid, sticky or unknown permission bits")
    directory = kind == _DIRECTORY
    path = _path(raw_name, prefix, directory)
    length = _octal(member, size, "size")
    if directory and length:
        raise refused(member, "header", "a directory with content")
    return Header(path, length, bool(bits & 0o111) and not directory, directory)


def _require_plain_kind(member: bytes, kind: bytes, link: bytes, device: bytes) -> None:
    """Raise ValidationFailed unless the member is a plain file or directory."""
    if kind != _DIRECTORY and kind not in _FILE:
        name = _KINDS.get(kind, "of an unknown kind")
        raise refused(member, "member_type", f"{name}; only regular files and directories are accepted")
    if link.strip(b"\0"):
        raise refused(member, "member_type", "a file or directory that names a link's target")
    if not (_UNSET.fullmatch(device[:8]) and _UNSET.fullmatch(device[8:])):
        raise refused(member, "member_type", "a file or directory with a device number")


def _path(raw_name: bytes, raw_prefix: bytes, directory: bool) -> str:
    """The checked path; a directory's may end with a slash."""
    name, prefix = _text(raw_name), _text(raw_prefix)
    whole = prefix + b"/" + name if prefix else name
    try:
        path = whole.decode("utf-8")
    except UnicodeDecodeError:
        raise refused(whole, "member_name", "the name is not UTF-8") from None
    return bundle_paths.check(path.removesuffix("/") if directory else path)


def _text(field: bytes) -> bytes:
    """A field up to its NUL; only NULs may follow."""
    text, _, hidden = field.partition(b"\0")
    if hidden.strip(b"\0"):
        raise refused(text, "member_name", "there are bytes behind the end of the name")
    return text


def _octal(member: bytes, field: bytes, what: str) -> int:
    """A number in octal digits; refuses base-256, signs and empty fields."""
    found = _OCTAL.fullmatch(field)
    if not found:
        raise refused(member, "header", f"the {what} is not an octal number")
    return int(found[1], 8)
