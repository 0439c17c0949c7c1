"""`svc ws exec -i` through the installed program: any bytes, both ways at once, and every end of it."""

from __future__ import annotations

import hashlib
import os
import pwd
import subprocess
from collections.abc import Callable

import pytest
from e2e.installation import SVC, Call, Service, processes_of
from e2e.surroundings import must
from waiting import until

Pipe = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def piped(service: Service, workspace: str) -> Pipe:
    """piped(argv, input, *options) -> what `svc ws exec -i` of Alice's workspace left."""

    def call(argv: list[str], content: bytes, *options: str) -> subprocess.CompletedProcess[bytes]:
        account = pwd.getpwnam("tse-alice")
        return subprocess.run(
            [SVC, "ws", "exec", "-i", *options, workspace, "--", *argv],
            input=content, capture_output=True, timeout=90, check=False, cwd=account.pw_dir,
            env=service.env | {"HOME": account.pw_dir}, user=account.pw_uid, group=account.pw_gid,
            extra_groups=[],
        )  # fmt: skip

    return call


def test_ten_megabytes_are_the_same_afterwards(piped: Pipe) -> None:
    content = os.urandom(10 << 20)
    back = piped(["cat"], content)
    assert (back.returncode, back.stderr) == (0, b"")
    assert back.stdout == content
    digest = piped(["sha256sum"], content)
    assert digest.stdout.split()[0].decode() == hashlib.sha256(content).hexdigest()


def test_both_outputs_and_the_code(piped: Pipe) -> None:
    script = "read x; echo got $x; echo err >&2; exit 7"
    done = piped(["sh", "-c", script], b"hello\n", "--exit-status")
    assert (done.returncode, done.stdout, done.stderr) == (7, b"got hello\n", b"err\n")
    done = piped(["sh", "-c", script], b"hello\n")
    assert (done.returncode, done.stderr) == (1, b"err\nsvc: the command exited with code 7\n")


def test_a_command_that_does_not_read(piped: Pipe) -> None:
    """It ends when it likes; what was left of the input is nobody's."""
    content = bytes(8 << 20)
    assert piped(["true"], content).returncode == 0
    assert piped(["head", "-c", "5"], content).stdout == bytes(5)


def test_a_timeout(piped: Pipe) -> None:
    done = piped(["sleep", "4717"], b"", "--timeout", "1")
    assert (done.returncode, done.stderr) == (1, b"svc: the command was killed after 1 second\n")
    until(lambda: not sleepers("4717"), 30)


def test_a_client_that_goes_takes_the_command_with_it(service: Service, workspace: str) -> None:
    account = pwd.getpwnam("tse-alice")
    client = subprocess.Popen(
        [SVC, "ws", "exec", "-i", workspace, "--", "sleep", "4718"],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=account.pw_dir,
        env=service.env | {"HOME": account.pw_dir}, user=account.pw_uid, group=account.pw_gid,
        extra_groups=[],
    )  # fmt: skip
    until(lambda: sleepers("4718"), 30)
    client.kill()
    client.communicate(timeout=30)
    until(lambda: not sleepers("4718"), 30)


def sleepers(seconds: str) -> list[object]:
    return [one for one in processes_of("tse-alice") if one.args == f"sleep {seconds}"]


def test_what_it_refuses(alice: Call, workspace: str) -> None:
    refused = alice("ws", "exec", "-i", "nothing", "--", "true")
    assert refused.code == 1 and "no workspace nothing" in refused.err
    refused = alice("ws", "exec", "-i", workspace, "--", "nosuchprogram")
    assert refused.code == 1 and "nosuchprogram" in refused.err
    assert alice("ws", "exec", "-i", "--json", workspace, "--", "true").code == 2
    dropped = alice("ws", "exec", workspace, "--", "cat", stdin="lost")
    assert dropped.out == "" and "standard input is not passed on" in dropped.err
    assert f"svc ws exec -i {workspace}" in dropped.err
    must(alice("ws", "stop", workspace))
    refused = alice("ws", "exec", "-i", workspace, "--", "true")
    assert refused.code == 1 and "is not running" in refused.err
