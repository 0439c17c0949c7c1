from __future__ import annotations

import io
import sys

import pytest

from svc.admin.people.password_input import read_password
from svc.errors import Aborted, ValidationFailed


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def piped(monkeypatch: pytest.MonkeyPatch, content: bytes) -> str:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content), encoding="utf-8"))
    return read_password("demo")


def typed(monkeypatch: pytest.MonkeyPatch, *answers: str) -> str:
    monkeypatch.setattr(sys, "stdin", Terminal())
    left = list(answers)

    def getpass(_prompt: str) -> str:
        if not left:
            raise EOFError
        return left.pop(0)

    monkeypatch.setattr("svc.admin.people.password_input.getpass", getpass)
    return read_password("demo")


@pytest.mark.parametrize(
    ("content", "password"),
    [
        (b"secret", "secret"),
        (b"secret\n", "secret"),
        (b" se cret \n", " se cret "),
        (b"secret\r\n", "secret"),
        (b"secret\r", "secret\r"),
        (b"\xef\xbb\xbfsecret\r\n", "secret"),
        ("geheim-ü\n".encode(), "geheim-ü"),
    ],
)
def test_exactly_one_line_end_goes(monkeypatch: pytest.MonkeyPatch, content: bytes, password: str) -> None:
    assert piped(monkeypatch, content) == password


@pytest.mark.parametrize("content", [b"", b"\n"])
def test_no_password_is_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    with pytest.raises(ValidationFailed, match="no password was given"):
        piped(monkeypatch, content)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ValidationFailed, match="no password was given"):
        read_password("demo")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * 10_000_000, b"secret\n\n", b"secret\nmore\n"])
def test_what_is_no_password_is_refused(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    with pytest.raises(ValidationFailed):
        piped(monkeypatch, content)


def test_what_to_type_next_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["svc", "admin", "create-user", "ada"])
    with pytest.raises(ValidationFailed) as missing:
        piped(monkeypatch, b"")
    assert missing.value.hint.endswith("redirect a file: sudo svc admin create-user ada < FILE")


def test_on_a_terminal_it_is_typed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert typed(monkeypatch, "secret", "secret") == "secret"
    with pytest.raises(ValidationFailed, match="differ"):
        typed(monkeypatch, "secret", "secrat")
    with pytest.raises(ValidationFailed, match="no password was given"):
        typed(monkeypatch, "")
    with pytest.raises(Aborted):
        typed(monkeypatch)
