"""The headers of a tar archive, as bytes that GNU tar, bsdtar and Python's tarfile read.

The plain (ustar) header with two GNU extensions: names of any length, and numbers of
any size in base 256. archive.py fills in the members.
"""

from __future__ import annotations

from functools import lru_cache

from svc_helper.wire.quick_typing import NamedTuple

BLOCK = 512
FILE, HARD_LINK, SYMLINK, DIRECTORY = b"0", b"1", b"2", b"5"
END = bytes(2 * BLOCK)  # of every archive
_NAME_MAX = 100  # bytes of a name, or a link's target, in a header itself
_OWNER_MAX = 31  # and a NUL
_LONG_NAME, _LONG_LINK = b"L", b"K"
_LONG = b"././@LongLink"
_MAGIC = b"ustar  \0"  # GNU's
_REST_AT = _NAME_MAX + 3 * 8 + 2 * 12 + 8  # of the fields behind the checksum


class Member(NamedTuple):
    """The header fields of one member."""

    kind: bytes
    name: bytes  # without a trailing slash, for a directory too
    mode: int = 0o644
    uid: int = 0
    gid: int = 0
    size: int = 0  # bytes of content that follow, for FILE only
    mtime: int = 0  # whole seconds since 1970, or before
    link: bytes = b""  # a symbolic link's target, or for HARD_LINK the name of the first member
    owner: bytes = b""  # the name of uid, if known


def header(member: Member) -> bytes:
    """The blocks before a member's content: one, and more for long names."""
    name = _name(member)
    if len(name) <= _NAME_MAX and len(member.link) <= _NAME_MAX:
        return _block(member, name)
    blocks = _long(_LONG_LINK, member.link) + _long(_LONG_NAME, name)
    return blocks + _block(member, name[:_NAME_MAX])


def header_size(kind: bytes, name: bytes, link: bytes = b"") -> int:
    """The length of the header() of such a member."""
    size = len(name) + (kind == DIRECTORY)
    if size <= _NAME_MAX and len(link) <= _NAME_MAX:
        return BLOCK
    return BLOCK + _long_size(len(link)) + _long_size(size)


def padding(size: int) -> int:
    """The number of zeros that follow `size` bytes of content."""
    return -size % BLOCK


def _name(member: Member) -> bytes:
    return member.name + b"/" if member.kind == DIRECTORY else member.name


def _long_size(length: int) -> int:
    size = length + 1
    return BLOCK + size + padding(size) if size > _NAME_MAX + 1 else 0


def _long(kind: bytes, name: bytes) -> bytes:
    """The member that holds a name too long for the next header; empty for a short name."""
    if len(name) <= _NAME_MAX:
        return b""
    size = len(name) + 1
    return _block(Member(kind, _LONG, size=size), _LONG) + name + bytes(1 + padding(size))


def _block(member: Member, name: bytes) -> bytes:
    """One header. The fields that many members share, and their sums, are kept from one to the next."""
    kind, _, mode, uid, gid, size, mtime, link, owner = member
    rights, rights_sum = _rights(mode, uid, gid)
    rest, rest_sum = _rest(kind, link[:_NAME_MAX], owner)
    if 0 <= size < 8**11 and 0 <= mtime < 8**11:
        numbers = b"%011o\0%011o\0" % (size, mtime)
    else:
        numbers = _number(size, 12) + _number(mtime, 12)
    checksum = sum(name) + rights_sum + sum(numbers) + rest_sum
    return b"%b%b%b%06o\0 %b" % (name.ljust(_NAME_MAX, b"\0"), rights, numbers, checksum, rest)


@lru_cache(maxsize=64)
def _rights(mode: int, uid: int, gid: int) -> tuple[bytes, int]:
    """The fields between name and size, and the sum of their bytes."""
    fields = _number(mode, 8) + _number(uid, 8) + _number(gid, 8)
    return fields, sum(fields)


@lru_cache(maxsize=8)
def _rest(kind: bytes, link: bytes, owner: bytes) -> tuple[bytes, int]:
    """The fields behind the checksum, and their sum with that of the checksum field as blanks."""
    fields = b"".join((
        kind,
        link.ljust(_NAME_MAX, b"\0"),
        _MAGIC,
        owner[:_OWNER_MAX].ljust(_OWNER_MAX + 1, b"\0"),
    ))  # fmt: skip
    return fields.ljust(BLOCK - _REST_AT, b"\0"), sum(fields) + 8 * ord(" ")


def _number(value: int, width: int) -> bytes:
    """Octal digits and a NUL, or base 256 for other numbers, as GNU tar writes them."""
    if 0 <= value < 8 ** (width - 1):
        return b"%0*o\0" % (width - 1, value)
    mark = b"\x80" if value >= 0 else b"\xff"
    return mark + value.to_bytes(width - 1, "big", signed=True)
