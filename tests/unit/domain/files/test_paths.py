"""Paths of files: bytes in, bytes out, and nothing that leads elsewhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.domain.files import paths as fs_paths
from svc.errors import EngineFailed, InvalidRequest
from svc_helper.wire import arguments

NAMES = st.binary(min_size=1, max_size=20).filter(
    lambda name: not set(name) & {0, 0x2F, 0x5C} and b"." not in name
)
GOOD = [b"a", b"a/b/c", b"-rf", b"...", b"a..b", b"\xff\xfe", b" ", b"a\nb", b"\x1b[31m", b"~", b"%2e%2fx",
        b"a%2e%2eb", b"a\\b", "ä/\u202e".encode(), b"x" * 255, b"/".join([b"a" * 100] * 40)]  # fmt: skip
BAD = [b"/", b"/etc/passwd", b"a/", b"a//b", b"//a", b".", b"..", b"../a", b"a/..", b"a/../b", b"./a", b"a/.",
       b"%2e%2e", b"%2E%2e/a", b".%2e", b"%2e", b"a/%2E", b"\\", b"\\\\",
       b"..\\..\\etc", b"a\\..\\b", b".\\",
       b"%2e%2e\\a", b"..%2fetc", b"a%5C..%5cb", b"a\0b",
       b"\0", b"sub/f\0/../x", b"x" * 256, b"/".join([b"a" * 100] * 41)]  # fmt: skip


@pytest.mark.parametrize("path", GOOD)
def test_a_path_is_taken_as_it_is(path: bytes) -> None:
    assert fs_paths.parse(path) == path
    assert fs_paths.decode(fs_paths.encode(path)) == path
    assert arguments.path_bytes(arguments.file_path(fs_paths.encode(path))) == path


@pytest.mark.parametrize("path", BAD)
def test_a_path_that_leads_elsewhere_is_refused(path: bytes) -> None:
    with pytest.raises(InvalidRequest, match=r"^path: "):
        fs_paths.parse(path, root=True)


def test_the_root_is_a_place_but_no_file() -> None:
    assert fs_paths.parse(b"", root=True) == b""
    with pytest.raises(InvalidRequest):
        fs_paths.parse(b"")


@given(st.lists(NAMES, min_size=1, max_size=5))
def test_the_helper_takes_what_is_let_through(names: list[bytes]) -> None:
    path = fs_paths.parse(b"/".join(names))
    encoded = fs_paths.encode(path)
    assert encoded == arguments.path_text(path) == arguments.file_path(encoded)
    assert fs_paths.decode(encoded) == path


@given(st.text(max_size=30))
def test_what_an_agent_says_is_a_name_or_refused(untrusted: str) -> None:
    try:
        name = fs_paths.decode_name(untrusted)
    except EngineFailed:
        return
    assert name
    assert not set(name) & {0, 0x2F}
    assert fs_paths.encode(name) == untrusted


@pytest.mark.parametrize(
    "untrusted", ["", "a/b", ".", "..", "%2e", "%61", "%ff", "%00", "%", "ä", " ", "%GG", "a" * 4097]
)
def test_a_name_has_one_spelling(untrusted: str) -> None:
    with pytest.raises(EngineFailed):
        fs_paths.decode_name(untrusted)


def test_a_name_for_people() -> None:
    assert (fs_paths.format_path(b"a\xff\xc3\xa4"), fs_paths.is_text(b"a\xff\xc3\xa4")) == ("a\\xffä", False)
    assert (fs_paths.format_path(b"\\xff"), fs_paths.is_text(b"\\xff")) == ("\\xff", True)
    assert fs_paths.format_path(b"\xed\xa0\x80") == "\\xed\\xa0\\x80"  # half a surrogate pair is no UTF-8
    assert fs_paths.name_of(b"a/b") == b"b"
    assert fs_paths.name_of(b"") == b""
    assert fs_paths.decode_asked("a%20b/c d") == b"a b/c d"
