"""Root's log cannot be silenced: after any number of refused calls the record of a real one is there."""

from __future__ import annotations

import pwd
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helper.stage import WS, Stage, call, remove_user
from waiting import until

from svc_helper.root.log import WINDOW_S
from svc_helper.wire.protocol import send

PAM = Path("/etc/pam.d/tsz-log")
VICTIM, EXPIRED, HOMELESS = "tsz-ada", "tsz-exp", "tsz-hob"
CALLS = 150_000
BYTES_MAX = 200_000


@pytest.fixture
def stage() -> Iterator[Stage]:
    """A helper of the test's own, for three accounts: one in order, one expired, one without a home."""
    names = (VICTIM, EXPIRED, HOMELESS)
    for name in names:
        remove_user(name)
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", name], check=True)
    subprocess.run(["usermod", "--expiredate", "1", EXPIRED], check=True)
    shutil.rmtree(f"/home/{HOMELESS}")
    shutil.copy(Path(__file__).parents[2] / "packaging/pam.d/svc", PAM)
    stage = Stage(pam_service=PAM.name)
    stage.enrol(*(f"{name} {pwd.getpwnam(name).pw_uid} user" for name in names))
    yield stage
    stage.close()
    for name in names:
        remove_user(name)
    PAM.unlink()


def refused(rng: random.Random) -> tuple[str, dict[str, Any]]:
    """A call that nobody makes for the app, and the pair that it goes to."""
    name = "u" + format(rng.getrandbits(64), "x")  # each another, so that none is the same source twice
    return rng.choice(
        [
            ("worker", call("ctr.inspect", name, WS)),
            ("worker", call("ctr.inspect", EXPIRED, WS)),
            ("tls", call("account.check", VICTIM, {})),  # answered, but nothing is done for anybody
            ("tls", call("account.check", EXPIRED, {})),
            ("tls", call("account.mark", VICTIM, {"administrator": True})),
            ("worker", call("helper.ping", None, {})),
            ("worker", call(name, name, {})),
        ]
    )


@pytest.mark.depth("merge", "150,000 calls")
def test_a_real_call_is_recorded_after_150000_refused_ones(stage: Stage) -> None:
    rng, began = random.Random(6), time.monotonic()
    stage.ask("worker", call("ctr.inspect", VICTIM, WS, rid="before"), wait_s=15)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ours.shutdown(socket.SHUT_RD)  # no answer is read: none may wait for that
        for _ in range(CALLS):
            pair, message = refused(rng)
            send(stage.pairs[pair], message, [theirs.fileno()])
    for _ in range(300):  # agents that cannot start: each is a process
        stage.ask("worker", call("ctr.inspect", HOMELESS, WS), wait_s=15)
    answer = stage.ask("worker", call("ctr.inspect", VICTIM, WS, rid="real"), wait_s=15)
    assert answer is not None
    assert answer["ok"]
    until(lambda: any(line["message"] == "lines left out" for line in stage.log()), 2 * WINDOW_S)
    lines, took = stage.log(), time.monotonic() - began
    print(f"{CALLS} refused calls in {took:.0f} s: {len(lines)} lines")
    assert [(line["user"], line["outcome"]) for line in lines if line.get("rid") == "real"] == [
        (VICTIM, "sent")
    ]
    others = [line for line in lines if line.get("outcome") != "sent"]
    assert len(others) < 60 * (took // 10 + 2)
    counted = sum(line["count"] for line in lines if line["message"] == "lines left out")
    assert counted > CALLS // 2
    assert sum(len(str(line)) for line in others) < BYTES_MAX
