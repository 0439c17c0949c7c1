"""A body that is a file: whole or refused, and its sender is asked once more when it was slow."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, g
from unit.serving import caller_of, make_user

from svc.domain.places import long_calls
from svc.errors import AccountDisabled, InvalidRequest, SvcError, TooLarge, TooManyRequests
from svc.limits import LONG_CALLS_PER_USER
from svc.web import access, uploads

MOST = 200_000


class Body(io.BytesIO):
    """A body that comes in pieces of so many bytes, with something done before each."""

    def __init__(self, content: bytes, size: int = 1 << 20, before: Any = lambda: None) -> None:
        super().__init__(content)
        self.size, self.before = size, before

    def read(self, count: int | None = -1) -> bytes:
        self.before()
        return super().read(min(self.size, count if count and count > 0 else self.size))


@pytest.fixture
def caller(db: str) -> Any:
    """Ada; no call of hers reaches a helper."""

    class Far:
        helper = None

    return caller_of(make_user("ada", 2001), Far)  # type: ignore[arg-type]  # of a far end only this is asked


@pytest.fixture
def staged(db: str) -> Iterator[Path]:
    """The directory in which nothing may appear."""
    before = set(os.listdir(Path(db).parent))
    yield Path(db).parent
    assert set(os.listdir(Path(db).parent)) - before <= {f"{Path(db).name}-wal", f"{Path(db).name}-shm"}


def receive(
    caller: Any, content: Any, length: int | None, media: str = uploads.TAR, again: Any = None
) -> Any:
    """What was received: the caller and the bytes; chunked without a length."""
    environ: dict[str, Any] = {"wsgi.input": content if isinstance(content, Body) else Body(content)}
    environ |= {"wsgi.input_terminated": True, "CONTENT_TYPE": media, "REQUEST_METHOD": "POST"}
    environ |= {} if length is None else {"CONTENT_LENGTH": str(length)}
    with Flask("x").test_request_context("/", environ_overrides=environ):
        g.caller, g.require = caller, again
        with uploads.received(uploads.TAR, MOST) as (who, file):
            return who, file.read()


@pytest.mark.parametrize("size", [0, 1, uploads.PART, uploads.PART + 1, MOST])
@pytest.mark.parametrize("chunked", [False, True])
def test_a_whole_body(caller: Any, staged: Path, size: int, chunked: bool) -> None:
    content = os.urandom(size)
    assert receive(caller, content, None if chunked else size) == (caller, content)
    assert receive(caller, Body(content, 1000), None if chunked else size) == (caller, content)


def refused(kind: type[SvcError], *args: Any, **options: Any) -> SvcError:
    with pytest.raises(kind) as caught:
        receive(*args, **options)
    return caught.value


@pytest.mark.parametrize("length", [None, MOST + 1])
def test_a_body_over_the_limit(caller: Any, staged: Path, length: int | None) -> None:
    assert refused(TooLarge, caller, bytes(MOST + 1), length).details == {"limit": MOST}
    endless = Body(bytes(100 * MOST))
    refused(TooLarge, caller, endless, None)
    assert endless.tell() <= MOST + uploads.PART


def test_a_length_over_the_limit_is_refused_unread(caller: Any, staged: Path) -> None:
    def never() -> None:
        raise AssertionError("read")

    refused(TooLarge, caller, Body(b"x", before=never), 10**15)


def test_a_body_shorter_than_it_said(caller: Any, staged: Path) -> None:
    assert "99 of 100" in refused(InvalidRequest, caller, bytes(99), 100).message


def test_a_body_that_breaks_off(caller: Any, staged: Path) -> None:
    def broken() -> None:
        raise OSError("no more")

    assert "cut short" in refused(InvalidRequest, caller, Body(b"", before=broken), None).message


@pytest.mark.parametrize("media", ["", "application/json", "application/gzip", "multipart/form-data"])
def test_another_type(caller: Any, staged: Path, media: str) -> None:
    refused(InvalidRequest, caller, b"x", 1, media=media)


def test_a_sender_who_may_no_more_once_it_is_there(caller: Any, staged: Path) -> None:
    """ "rights asked again after a slow body": a quick one is not asked twice."""

    def disabled() -> Any:
        raise AccountDisabled("the account is disabled")

    assert receive(caller, b"x", 1, again=disabled)[1] == b"x"
    slow = Body(b"xy", 1, before=lambda: time.sleep(access.SLOW_BODY_S / 2))
    refused(AccountDisabled, caller, slow, 2, again=disabled)
    slow = Body(b"xy", 1, before=lambda: time.sleep(access.SLOW_BODY_S / 2))
    assert receive(caller, slow, 2, again=lambda: "anew") == ("anew", b"xy")


def test_a_body_that_takes_too_long(caller: Any, staged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "TRANSFER_S", -1)
    assert "longer" in refused(InvalidRequest, caller, b"x", 1).message


def test_it_takes_a_place_among_the_long_calls(caller: Any, staged: Path) -> None:
    places = [long_calls.counted(caller) for _ in range(LONG_CALLS_PER_USER)]
    for place in places:
        place.__enter__()
    try:
        refused(TooManyRequests, caller, b"x", 1)
    finally:
        for place in places:
            place.__exit__(None, None, None)
    refused(InvalidRequest, caller, bytes(99), 100)
    assert receive(caller, b"x", 1)[1] == b"x"  # a refused one gave its place back
