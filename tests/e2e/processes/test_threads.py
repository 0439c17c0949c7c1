"""A slow client, or one with many connections, delays no other client."""

from __future__ import annotations

import pwd
import subprocess
import time
from collections.abc import Iterator

import pytest
from e2e.installation import Call, Service

from svc.limits import READING_S

MANY = 110  # fewer than one client may hold
SLOW = """
import select, socket, sys, time
held = []
for _ in range(int(sys.argv[2])):
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(sys.argv[1])
    try:
        sock.send(b"GET /api/health HT")
    except BrokenPipeError:
        continue  # one too many, while those of an earlier test are still being closed
    held.append(sock)
print("held", flush=True)
began = time.monotonic()
select.select(held[:1], [], [])
print(f"{time.monotonic() - began:.1f}", flush=True)
"""


@pytest.fixture(scope="module")
def slow(service: Service) -> Iterator[subprocess.Popen[str]]:
    """Many connections of one other user, each with a partial request."""
    carol = pwd.getpwnam("tse-carol")
    process = subprocess.Popen(
        ["python3", "-I", "-c", SLOW, service.env["SVC_SOCKET"], str(MANY)],
        user=carol.pw_uid, group=carol.pw_gid, cwd="/", stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "held\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_half_requests_delay_nobody_else(slow: subprocess.Popen[str], alice: Call) -> None:
    began = time.monotonic()
    for _ in range(5):
        assert alice("ws", "list").code == 0
    assert time.monotonic() - began < 5


def test_a_half_request_is_given_up(slow: subprocess.Popen[str]) -> None:
    assert slow.stdout is not None
    assert float(slow.stdout.readline()) < READING_S + 5
