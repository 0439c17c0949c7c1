"""Reading a new service password: "interactively or from standard input when piped"."""

from __future__ import annotations

import sys

from svc.admin.command import again_with_sudo
from svc.errors import Aborted, ValidationFailed

STDIN_MAX = 4096


def read_password(name: str) -> str:
    """The password typed twice on a terminal, or all of standard input less one line end.

    A line end is LF or, in a file from elsewhere, CR LF; neither can be part of a
    password, nor can the byte order mark that such a file may begin with.
    """
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
            raise ValidationFailed("the two passwords differ; nothing was changed", hint=again_with_sudo())
    except EOFError:
        raise Aborted("no password was typed; nothing was changed", hint=again_with_sudo()) from None
    return password


def _piped() -> str:
    content = sys.stdin.buffer.read(STDIN_MAX + 1)
    if len(content) > STDIN_MAX:
        raise ValidationFailed(f"standard input holds more than {STDIN_MAX} bytes; that is no password")
    try:
        password = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValidationFailed("the password on standard input is not UTF-8 text") from None
    if password.endswith("\n"):
        password = password[:-1].removesuffix("\r")
    if "\n" in password:
        raise ValidationFailed("standard input holds more than one line; a password is one")
    return password


def _missing() -> ValidationFailed:
    return ValidationFailed(
        "no password was given", hint=f"type it when asked, or pipe it in: {again_with_sudo()} < FILE"
    )
