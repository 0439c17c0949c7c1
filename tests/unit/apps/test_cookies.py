"""Cookies of the service in every spelling: none goes to a program, none comes from one."""

from __future__ import annotations

import itertools
from http.cookies import CookieError, SimpleCookie

import pytest

from svc.apps.cookies import to_browser, to_program

SECRET = b"k3strel"
NAMES = [b"__Host-svc", b"__Host-svc-app", b"__Host-svc-app-24700", b"__Secure-svc-x"]


def spellings() -> list[bytes]:
    """Pairs that a browser might send, or that a program might understand as one of ours."""
    found = []
    for name, before, between, after in itertools.product(
        NAMES,
        [b"", b" ", b"  ", b"\t", b'"', b"=", b" =", b"$", b'="'],
        [b"=", b" = ", b'="', b"=a=", b"=\t"],
        [b"", b'"', b" ", b"=", b"; "],
    ):
        for spelled in (name, name.upper(), name.lower(), name.swapcase()):
            found.append(before + spelled + between + SECRET + after)
    return found


def test_none_reaches_a_program() -> None:
    """Alone, at the beginning, in the middle and at the end of others, once and twice."""
    pairs = spellings()
    assert len(pairs) > 1000
    for pair in pairs:
        for header in (
            pair,
            pair + b"; a=1",
            b"a=1; " + pair,
            b"a=1;" + pair + b";b=2",
            b'a="x; ' + pair + b'"; b=2',
            pair + b"; " + pair,
            b";;" + pair + b";;",
        ):
            assert SECRET not in to_program(header), header


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"", b""),
        (b"__Host-svc-app=x", b""),
        (b"a=1", b"a=1"),
        (b"a=1; b=2; a=3", b"a=1; b=2; a=3"),
        (b"a=1; __Host-svc-app=x; b=2", b"a=1; b=2"),
        (b"__Host-other=1; __Secure-other=2", b"__Host-other=1; __Secure-other=2"),
        (b"svc=1; host-svc=2; __Hostsvc=3", b"svc=1; host-svc=2; __Hostsvc=3"),
        (b"a=__Host-svc-app", b"a=__Host-svc-app"),  # a value is nobody's cookie
        (b"nameless; =also", b"nameless; =also"),
        (b'q="a b"; e=', b'q="a b"; e='),
    ],
)
def test_the_others_are_as_they_were(header: bytes, expected: bytes) -> None:
    assert to_program(header) == expected


def test_a_program_sets_none() -> None:
    for pair in spellings():
        for attributes in (b"", b"; Path=/; Secure", b"; Path=/; Secure; HttpOnly; SameSite=None"):
            assert to_browser(pair + attributes) is None


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"a=1", b"a=1; Secure"),
        (b"a=1; Path=/; HttpOnly", b"a=1; Path=/; HttpOnly; Secure"),
        (b"a=1; Secure; secure", b"a=1; Secure"),
        (b"a=1; Domain=example.org; Path=/", b"a=1; Path=/; Secure"),
        (b"a=1;domain=.localhost;DOMAIN=b; dOmAiN ; \tDomain\t=\tc", b"a=1; Secure"),
        (b"a=1; Domain", b"a=1; Secure"),
        (b"a=1;;; Path=/x;", b"a=1; Path=/x; Secure"),
        (b"a=Domain=b; Max-Age=9", b"a=Domain=b; Max-Age=9; Secure"),
        (b"__Host-other=1; Path=/; Secure", b"__Host-other=1; Path=/; Secure"),
        (b"_xsrf=2|ab; expires=Wed, 30 Dec 2026", b"_xsrf=2|ab; expires=Wed, 30 Dec 2026; Secure"),
    ],
)  # fmt: skip
def test_what_a_program_sets_stays_at_its_address(header: bytes, expected: bytes) -> None:
    assert to_browser(header) == expected


def test_the_standard_library_finds_none_in_it() -> None:
    """What a program of Python would read of it."""
    for pair in spellings():
        read: SimpleCookie = SimpleCookie()
        try:
            read.load(to_program(b"a=1; " + pair + b"; b=2").decode("latin-1"))
        except CookieError:
            continue
        assert not [name for name in read if name.lower().startswith(("__host-svc", "__secure-svc"))]
