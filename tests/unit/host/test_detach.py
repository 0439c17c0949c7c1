"""A process that gives up root shares neither session nor keyring nor output with root's shell."""

from __future__ import annotations

import ctypes
import json
import os
import platform

import pytest

from svc.host.detach import detach, escaped
from svc.host.owner import Owner, run_as

NOBODY = Owner(65534, 65534)
KEYCTL, SESSION = 250, -3


def look() -> list[object]:
    """The session, the standard descriptors, and the session keyring."""
    links = [os.readlink(f"/proc/self/fd/{number}") for number in range(3)]
    keyring = ctypes.CDLL(None).syscall(KEYCTL, 0, SESSION, 0) if platform.machine() == "x86_64" else 0
    return [os.getsid(0) == os.getpid(), links, keyring]


def test_a_detached_process_has_nothing_of_its_parents() -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            detach(writing)
            os.write(1, json.dumps(look()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        is_leader, links, keyring = json.loads(file.read())
    os.waitpid(pid, 0)
    assert is_leader and links[0] == "/dev/null"
    assert links[1] == links[2] and links[1].startswith("pipe:")
    assert keyring in (0, -1) or keyring != look()[2]


def test_so_has_what_root_does_as_another_account(needs_root: None) -> None:
    is_leader, links, _ = run_as(NOBODY, look)
    assert is_leader and links[0] == "/dev/null" and links[1].startswith("pipe:")


def test_its_output_is_passed_on_escaped(needs_root: None, capfd: pytest.CaptureFixture[str]) -> None:
    run_as(NOBODY, lambda: os.write(2, b"one\n\x1b[2Jtwo\nthree"))
    assert capfd.readouterr().err == "one\n\\x1b[2Jtwo\nthree"


def test_text_keeps_its_lines() -> None:
    assert escaped("a\nb\tc\x00\u202e é") == "a\nb\\tc\\x00\\u202e é"
