"""Reading a new service password: "interactively or from standard input when piped"."""

from __future__ import annotations

import sys

from svc.errors import Aborted, ValidationFailed

STDIN_MAX = 4096


def read_password(name: str) -> str:
    """The password typed twice on a terminal, or all of standard input less one trailing newline."""
    if sys.stdin is None:
        raise _missing()
    password = _typed(name) if sys.stdin.isatty() else _piped()
    if not password:
        raise _missing()
    return password


def _typed(name: str) -> str:
    from getpass import getpass

    try:
        password = getpass(f"New service password of {name}: ")
        if password and getpass("The same again: ") != password:
            raise ValidationFailed("the two passwords differ; nothing was changed")
    except EOFError:
        raise Aborted("no password was typed; nothing was changed") from None
    return password


def _piped() -> str:
    content = sys.stdin.buffer.read(STDIN_MAX + 1)
    if len(content) > STDIN_MAX:
        raise ValidationFailed(f"standard input holds more than {STDIN_MAX} bytes; that is no password")
    try:
        return content.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise ValidationFailed("the password on standard input is not UTF-8 text") from None


def _missing() -> ValidationFailed:
    return ValidationFailed(
        "no password was given", hint="type it when asked, or pipe it in: svc admin set-password NAME < FILE"
    )
