"""One range or the whole: what a request's headers ask of a file."""

from __future__ import annotations

import pytest
from flask import Flask

from svc.errors import RangeUnsatisfiable
from svc.web import ranges

ETAG = "0123abc"


def asked(size: int, **headers: str) -> tuple[int, int] | None:
    supplied = {name.replace("_", "-"): value for name, value in headers.items()}
    with Flask("x").test_request_context(headers=supplied):
        return ranges.requested(size, ETAG)


@pytest.mark.parametrize(
    ("header", "part"),
    [
        ("bytes=0-0", (0, 1)), ("bytes=5-", (5, 5)), ("bytes=-3", (7, 3)), ("bytes=-30", (0, 10)),
        ("bytes=9-99", (9, 1)), ("bytes=0-9", (0, 10)), ("bytes=0-1,3-4", None), ("lines=0-1", None),
        ("bytes=a-b", None), ("bytes=3-1", None), ("", None), ("bytes=--1", None),
    ],
)  # fmt: skip
def test_a_range(header: str, part: tuple[int, int] | None) -> None:
    assert asked(10, Range=header) == part


@pytest.mark.parametrize(("size", "header"), [(10, "bytes=10-"), (10, "bytes=11-12"), (0, "bytes=0-")])
def test_a_range_behind_the_end(size: int, header: str) -> None:
    with pytest.raises(RangeUnsatisfiable) as caught:
        asked(size, Range=header)
    assert caught.value.details == {"size": size}


def test_a_range_only_of_the_same_file() -> None:
    assert asked(10, Range="bytes=1-", If_Range=f'"{ETAG}"') == (1, 9)
    for other in ('"other"', ETAG, f'W/"{ETAG}"', "Tue, 14 Nov 2023 22:13:20 GMT", ""):
        assert asked(10, Range="bytes=1-", If_Range=other) is None


def test_what_a_client_has() -> None:
    for header, known in (
        (f'"{ETAG}"', True),
        (f'"x", W/"{ETAG}"', True),
        ("*", True),
        ('"x"', False),
        ("", False),
    ):
        with Flask("x").test_request_context(headers={"If-None-Match": header}):
            assert ranges.is_known(ETAG) is known
    with Flask("x").test_request_context():
        assert not ranges.is_known(ETAG)


def test_dates() -> None:
    assert ranges.http_date(0) == "Thu, 01 Jan 1970 00:00:00 GMT"
    assert ranges.http_date(10**30) == ""
    assert ranges.content_range(5, 3, 10) == "bytes 5-7/10"
