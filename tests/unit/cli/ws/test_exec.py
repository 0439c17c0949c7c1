"""`svc ws exec`: the command's bytes, its code, and what the parser refuses."""

from __future__ import annotations

import base64
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from fake_service import Service, Svc

POST = "POST /api/workspaces/demo/exec"


def done(out: bytes = b"", err: bytes = b"", **more: Any) -> dict[str, Any]:
    streams = {"stdout": base64.b64encode(out).decode(), "stderr": base64.b64encode(err).decode()}
    return {"exit_code": 0, **streams, "truncated": False, "timed_out": False, "duration_ms": 5, **more}


def test_the_command_and_its_output(service: Service, svc: Svc) -> None:
    service.answer(POST, done(b"\x1b[1mout\xff\n", b"err\n"))
    assert svc("ws", "exec", "demo", "--", "ls", "--all", "--", "-h") == (0, "\x1b[1mout\\xff\n", "err\n")
    assert service.last.json == {"command": ["ls", "--all", "--", "-h"], "timeout_s": 300}


def test_options_before_the_command_are_svc_s(service: Service, svc: Svc) -> None:
    service.answer(POST, done())
    assert svc("ws", "exec", "demo", "--timeout", "5", "--", "cmd", "--timeout", "9", "--json").code == 0
    assert service.last.json == {"command": ["cmd", "--timeout", "9", "--json"], "timeout_s": 5}
    assert svc("ws", "exec", "--timeout=600", "demo", "--", "cmd").code == 0
    assert service.last.json["timeout_s"] == 600


def test_a_command_that_fails(service: Service, svc: Svc) -> None:
    service.answer(POST, done(b"x\n", exit_code=7))
    assert svc("ws", "exec", "demo", "--", "false") == (1, "x\n", "svc: the command exited with code 7\n")
    assert svc("ws", "exec", "demo", "--exit-status", "--", "false") == (7, "x\n", "")


def test_a_command_that_was_ended(service: Service, svc: Svc) -> None:
    service.answer(POST, done(b"x\n", exit_code=None, timed_out=True))
    outcome = (1, "x\n", "svc: the command was killed after 2 seconds\n")
    assert svc("ws", "exec", "demo", "--timeout", "2", "--", "sleep", "9") == outcome
    assert svc("ws", "exec", "demo", "--timeout", "2", "--exit-status", "--", "sleep", "9") == (
        124,
        *outcome[1:],
    )


def test_output_that_was_cut(service: Service, svc: Svc) -> None:
    service.answer(POST, done(b"x" * 1000, truncated=True))
    outcome = svc("ws", "exec", "demo", "--", "yes")
    assert (outcome.code, len(outcome.out)) == (0, 1000)
    assert "256 KiB" in outcome.err


def test_json_is_the_answer_and_the_code_stays(service: Service, svc: Svc) -> None:
    service.answer(POST, done(b"x", exit_code=3))
    outcome = svc("ws", "exec", "demo", "--json", "--", "false")
    assert outcome.code == 1
    assert json.loads(outcome.out) == done(b"x", exit_code=3)


@pytest.mark.parametrize("code", [None, "7", -1, 256, 10**30, True, [], 1.5])
def test_an_odd_code_is_a_failure(service: Service, svc: Svc, code: object) -> None:
    service.answer(POST, done(exit_code=code))
    assert svc("ws", "exec", "demo", "--exit-status", "--", "x").code == 1


@pytest.mark.parametrize("stdout", ["!!", "YQ", 5, ["a"], "ü"])
def test_output_that_is_no_base64_is_refused(service: Service, svc: Svc, stdout: object) -> None:
    service.answer(POST, done() | {"stdout": stdout})
    outcome = svc("ws", "exec", "demo", "--", "x")
    assert outcome.code == 1
    assert "output" in outcome.err


def test_the_owner_alone(service: Service, svc: Svc) -> None:
    service.refuse(POST, 403, "owner_only", "only its owner may")
    assert svc("ws", "exec", "demo", "--", "id") == (1, "", "svc: only its owner may\n")


@pytest.mark.parametrize(
    "line",
    [
        "demo",
        "demo ls",
        "demo --",
        "-- ls",
        "demo x -- ls",
        "demo --timeout 0 -- ls",
        "demo --timeout -1 -- ls",
        "demo --timeout 601 -- ls",
        "demo --timeout nan -- ls",
        "demo --timeout -- ls",
    ],
)
def test_wrong_usage(service: Service, svc: Svc, line: str) -> None:
    outcome = svc("ws", "exec", *line.split())
    assert (outcome.code, service.sent) == (2, [])
    assert "hint: svc ws exec" in outcome.err


def test_an_address_in_the_command_is_the_command_s(service: Service, svc: Svc) -> None:
    service.answer(POST, done())
    assert svc("ws", "exec", "demo", "--", "curl", "http://x", "--token", "y").code == 0
    assert "after --" in svc("ws", "exec", "demo", "curl", "http://x").err


def test_a_word_that_is_no_text_is_named(service: Service, svc: Svc) -> None:
    """ "pass words that are not UTF-8 through or refuse them by name": JSON and Podman have text only."""
    said = svc("ws", "exec", "demo", "--", "cat", os.fsdecode(b"caf\xe9.txt"))
    assert (said.code, service.sent) == (1, [])
    assert said.err == (
        "svc: word 2 of the command is not UTF-8, which Podman cannot pass: caf\\xe9.txt\n"
        "hint: svc ws exec demo -- sh -c 'COMMAND /work/*'  # the shell inside finds the name\n"
    )


def test_a_long_command_is_sent_as_it_is(service: Service, svc: Svc) -> None:
    service.answer(POST, done())
    command = ["ls", *(f"ü-{number}" for number in range(4000))]
    assert svc("ws", "exec", "demo", "--", *command).code == 0
    assert service.last.json["command"] == command


UNREAD = (
    "svc: standard input is not passed on: the command's own is empty\nhint: svc ws exec -i demo -- COMMAND\n"
)


@pytest.fixture
def standard_input() -> Iterator[Callable[[int], None]]:
    """standard_input(fd) makes that descriptor 0 for this test."""
    kept = os.dup(0)
    yield lambda fd: void(os.dup2(fd, 0))
    os.dup2(kept, 0)
    os.close(kept)


def void(_: object) -> None:
    """Nothing."""


def test_standard_input_that_goes_nowhere_is_reported(
    service: Service, svc: Svc, standard_input: Callable[[int], None], tmp_path: Path
) -> None:
    """Unless it is a terminal, /dev/null, or empty; and none of it is read."""
    service.answer(POST, done(b"x\n"))
    full, empty = tmp_path / "full", tmp_path / "empty"
    full.write_bytes(b"data")
    empty.write_bytes(b"")
    reading, writing = os.pipe()
    near, far = socket.socketpair()
    master, slave = os.openpty()
    os.write(master, b"typed ahead\n")
    with ExitStack() as opened:
        for fd in (reading, writing, master, slave):
            opened.callback(os.close, fd)
        opened.enter_context(near)
        opened.enter_context(far)
        null, zero, one, two = (
            opened.enter_context(open(path, "rb")) for path in (os.devnull, "/dev/zero", full, empty)
        )
        for fd in (reading, near.fileno(), slave, null.fileno(), two.fileno()):
            standard_input(fd)
            assert svc("ws", "exec", "demo", "--", "true") == (0, "x\n", "")
        os.write(writing, b"data")
        far.send(b"data")
        for fd in (reading, near.fileno(), zero.fileno(), one.fileno()):
            standard_input(fd)
            assert svc("ws", "exec", "demo", "--", "true") == (0, "x\n", UNREAD)
        assert (os.read(reading, 9), near.recv(9), one.read()) == (b"data",) * 3
