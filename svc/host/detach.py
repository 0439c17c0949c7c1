"""A process that gives up root leaves what it shares with root's shell. Standard library only.

A process of the app with root's terminal could type into root's shell (TIOCSTI), with root's log it
could forge lines, and with root's session keyring it could read its keys.
"""

from __future__ import annotations

import os

from svc_helper.keyring import leave_keyring


def detach(output: int) -> None:
    """In a forked child, still as root: a session of its own, no terminal, input from /dev/null.

    Standard output and error become `output`, a pipe that is read by whoever forked.
    """
    os.setsid()
    leave_keyring()
    null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(output, 1)
    os.dup2(output, 2)


def escaped(text: str) -> str:
    """The text with control characters escaped, but for line ends: it may be printed on root's terminal."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in text)
