"""Reads a new service password "interactively or from standard input when piped"."""

from __future__ import annotations

import sys
from getpass import getpass

from svc.admin.command import sudo_command
from svc.errors import Aborted, ValidationFailed

STDIN_MAX = 4096


def read_password(name: str) -> str:
    """The password, typed twice on a terminal, or all of standard input without one final line end.

    A line end is LF or CR LF. Neither can be part of a password, nor can the byte
    order mark with which a file may begin.
    """
    if sys.stdin is None:
        raise _missing()
    password = _typed(name) if sys.stdin.isatty() else _piped()
    if not password:
        raise _missing()
    return password


def read_login(registry: str, username: str) -> str:
    """The password of a registry's account, typed once on a terminal, or from standard input."""
    if sys.stdin is None:
        raise _missing()
    try:
        is_terminal = sys.stdin.isatty()
        password = getpass(f"Password of {username} at {registry}: ") if is_terminal else _piped()
    except (EOFError, KeyboardInterrupt):
        sys.stderr.write("\n")
        raise Aborted("no password was typed; nothing was changed", hint=sudo_command()) from None
    if not password:
        raise _missing()
    return password


def _typed(name: str) -> str:
    try:
        password = getpass(f"New service password of {name}: ")
        if password and getpass("Repeat it: ") != password:
            raise ValidationFailed("the two passwords differ; nothing was changed", hint=sudo_command())
    except (EOFError, KeyboardInterrupt):
        sys.stderr.write("\n")
        raise Aborted("no password was typed; nothing was changed", hint=sudo_command()) from None
    return password


def _piped() -> str:
    content = sys.stdin.buffer.read(STDIN_MAX + 1)
    if len(content) > STDIN_MAX:
        raise ValidationFailed(f"standard input has more than {STDIN_MAX} bytes, too many for a password")
    try:
        password = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValidationFailed("the password on standard input is not UTF-8 text") from None
    if password.endswith("\n"):
        password = password[:-1].removesuffix("\r")
    if "\n" in password:
        raise ValidationFailed("standard input has more than one line; a password is a single line")
    return password


def _missing() -> ValidationFailed:
    return ValidationFailed(
        "no password was given", hint=f"type it when asked, or redirect a file: {sudo_command()} < FILE"
    )
