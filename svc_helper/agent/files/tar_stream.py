"""The headers of a tar archive, as bytes that GNU tar, bsdtar and Python's tarfile read.

The plain (ustar) header with two GNU extensions: names of any length, and numbers of
any size in base 256. archive.py fills in the members.
"""

from __future__ import annotations

from typing import NamedTuple

BLOCK = 512
FILE, HARD_LINK, SYMLINK, DIRECTORY = b"0", b"1", b"2", b"5"
END = bytes(2 * BLOCK)  # of every archive
_NAME_MAX = 100  # bytes of a name, or a link's target, in a header itself
_OWNER_MAX = 31  # and a NUL
_LONG_NAME, _LONG_LINK = b"L", b"K"
_LONG = b"././@LongLink"
_MAGIC = b"ustar  \0"  # GNU's


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
    blocks = _long(_LONG_LINK, member.link) + _long(_LONG_NAME, name)
    return blocks + _block(member, name[:_NAME_MAX])


def header_size(member: Member) -> int:
    """The length of header(), which does not depend on the content's size."""
    return BLOCK + _long_size(member.link) + _long_size(_name(member))


def padding(size: int) -> int:
    """The number of zeros that follow `size` bytes of content."""
    return -size % BLOCK


def _name(member: Member) -> bytes:
    return member.name + b"/" if member.kind == DIRECTORY else member.name


def _long_size(name: bytes) -> int:
    size = len(name) + 1
    return BLOCK + size + padding(size) if size > _NAME_MAX + 1 else 0


def _long(kind: bytes, name: bytes) -> bytes:
    """The member that holds a name too long for the next header; empty for a short name."""
    if len(name) <= _NAME_MAX:
        return b""
    size = len(name) + 1
    return _block(Member(kind, _LONG, size=size), _LONG) + name + bytes(1 + padding(size))


def _block(member: Member, name: bytes) -> bytes:
    before = b"".join((
        name.ljust(_NAME_MAX, b"\0"),
        _number(member.mode, 8),
        _number(member.uid, 8),
        _number(member.gid, 8),
        _number(member.size, 12),
        _number(member.mtime, 12),
    ))  # fmt: skip
    after = b"".join((
        member.kind,
        member.link[:_NAME_MAX].ljust(_NAME_MAX, b"\0"),
        _MAGIC,
        member.owner[:_OWNER_MAX].ljust(_OWNER_MAX + 1, b"\0"),
    ))  # fmt: skip
    checksum = sum(before) + sum(after) + 8 * ord(" ")  # the checksum field itself counts as blanks
    return (before + b"%06o\0 " % checksum + after).ljust(BLOCK, b"\0")


def _number(value: int, width: int) -> bytes:
    """Octal digits and a NUL, or base 256 for other numbers, as GNU tar writes them."""
    if 0 <= value < 8 ** (width - 1):
        return b"%0*o\0" % (width - 1, value)
    mark = b"\x80" if value >= 0 else b"\xff"
    return mark + value.to_bytes(width - 1, "big", signed=True)
