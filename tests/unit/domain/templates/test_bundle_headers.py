"""One tar header: what is taken, and that nothing unusual is."""

from __future__ import annotations

import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.bundling import checksummed, header

from svc.domain.templates import bundle_headers
from svc.domain.templates.bundle_headers import Header
from svc.errors import ValidationFailed

PLAIN = bundle_headers.make("context/a", 5, executable=False)


def refused(block: bytes) -> str:
    """The code with which a header is refused."""
    with pytest.raises(ValidationFailed) as caught:
        bundle_headers.parse(block)
    [field] = caught.value.fields
    assert field["field"].isprintable()
    return field["code"]


def test_what_is_made_is_read_by_us_and_by_others() -> None:
    block = bundle_headers.make("context/run", 8**11 - 1, executable=True)
    assert bundle_headers.parse(block) == Header("context/run", 8**11 - 1, True, False)
    other = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
    assert (other.name, other.size, other.mode, other.mtime) == ("context/run", 8**11 - 1, 0o755, 0)
    assert (other.uid, other.gid, other.uname, other.gname) == (0, 0, "", "")


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_a_plain_header_of_another_program_is_taken(form: int) -> None:
    name = "context/u/x" if form == tarfile.PAX_FORMAT else "context/ü/x"  # for which pax has a header more
    info = tarfile.TarInfo(name)
    info.size, info.uid, info.uname, info.mtime, info.mode = 7, 1000, "someone", 1_700_000_000, 0o700
    block = info.tobuf(form, "utf-8", "surrogateescape")[-512:]
    assert bundle_headers.parse(block) == Header(name, 7, True, False)
    info.type, info.size, info.name = tarfile.DIRTYPE, 0, "context/"
    assert bundle_headers.parse(info.tobuf(form)[-512:]) == Header("context", 0, False, True)


@pytest.mark.parametrize("kind", [bytes([n]) for n in range(256) if n not in b"05\0"])
def test_every_other_kind_is_refused(kind: bytes) -> None:
    assert refused(header("context/a", kind=kind)) == "member_type"


@pytest.mark.parametrize(
    ("block", "why"),
    [
        (bytes(512), "header"),
        (b"\xff" * 512, "header"),
        (header("a", magic=b"\0" * 8), "header"),
        (header("a", magic=b"ustar\x0001"), "header"),
        (header("a", raw_size=b"\x80" + bytes(10) + b"\x05"), "header"),
        (header("a", raw_size=b"\xff" * 12), "header"),
        (header("a", raw_size=b"-0000000005\0"), "header"),
        (header("a", raw_size=b"+0000000005\0"), "header"),
        (header("a", raw_size=b"00000000_05\0"), "header"),
        (header("a", raw_size=b"0x000000005\0"), "header"),
        (header("a", raw_size=b"00000000008\0"), "header"),
        (header("a", raw_size=b"0000\x000000001"), "header"),
        (header("a", raw_size=b" " * 12), "header"),
        (header("a", uid=b"\x80\0\0\0\0\0\x10\0"), "header"),
        (header("a", mtime=b"\xff" * 12), "header"),
        (header("a", mode=b"\0" * 8), "header"),
        (header("a", mode=b"0004755\0"), "member_mode"),
        (header("a", mode=b"0002644\0"), "member_mode"),
        (header("a", mode=b"0001777\0"), "member_mode"),
        (header("a", mode=b"0100644\0"), "member_mode"),
        (header("d/", kind=b"5", mode=b"0002755\0"), "member_mode"),
        (header("a", link=b"/etc/passwd"), "member_type"),
        (header("a", major=b"0000010\0"), "member_type"),
        (header("a", minor=b"\x80\0\0\0\0\0\0\1"), "member_type"),
        (header("a", rest=b"x"), "header"),
        (header("a", magic=b"ustar  \0", prefix=b"14123456712\0"), "header"),
        (header("d", 512, kind=b"5"), "header"),
        (header(b"a\0hidden"), "member_name"),
        (header("a", prefix=b"p\0q"), "member_name"),
        (header("a", prefix=b".."), "member_name"),
        (header("a", prefix=b"/"), "member_name"),
        (header("a", prefix=b"context/"), "member_name"),
        (header("", prefix=b"context"), "member_name"),
        (header("a/"), "member_name"),
        (header("a/", kind=b"\0"), "member_name"),
        (header("a//", kind=b"5"), "member_name"),
        (header("/", kind=b"5"), "member_name"),
        (header("./", kind=b"5"), "member_name"),
        (header(b"\xff\xfe"), "member_name"),
        (header(b"\xc0\xaf"), "member_name"),
        (header(b"\xed\xa0\x80"), "member_name"),
        (header("a" * 100, prefix=b"p" * 155), "member_name"),
    ],
)  # fmt: skip
def test_an_unusual_header_is_refused(block: bytes, why: str) -> None:
    assert refused(block) == why


@pytest.mark.parametrize("at", range(512))
def test_a_flipped_bit_is_noticed(at: int) -> None:
    for bit in (1, 0x80):
        block = PLAIN[:at] + bytes([PLAIN[at] ^ bit]) + PLAIN[at + 1 :]
        try:
            assert bundle_headers.parse(block) == bundle_headers.parse(PLAIN)
        except ValidationFailed:
            continue
        assert 148 <= at < 156  # only how the checksum is closed off: a NUL or a space


@given(block=st.binary(min_size=512, max_size=512), magic=st.booleans(), sums=st.booleans())
def test_any_block_is_read_or_refused(block: bytes, magic: bool, sums: bool) -> None:
    if magic:
        block = block[:257] + b"ustar\x0000" + block[265:]
    try:
        bundle_headers.parse(checksummed(block) if sums else block)
    except ValidationFailed as error:
        assert error.message.isprintable()


def test_a_first_block_is_known() -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("x"))
    assert bundle_headers.is_tar(file.getvalue()[:512])
    assert not bundle_headers.is_tar(b"") and not bundle_headers.is_tar(b"ustar" * 40)
