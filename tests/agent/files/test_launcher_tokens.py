"""Login tokens of real launchers: in the newest run's output, and in a file that nothing leads out of."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent.containers.test_launchers import exited, start, stop
from agent.priv_ns import Agent

pytestmark = pytest.mark.root
SECRET = Path("/run/svc-test-outside")


def find(agent: Agent, ws: str, file: str | None = None, pattern: str | None = None) -> Any:
    """The token."""
    return agent.call("launcher.token", id=ws, name="lab", file=file, pattern=pattern).data["token"]


def until_found(expected: str, look: Callable[[], Any]) -> None:
    """Wait until it is this one: a program needs a moment to print."""
    end = time.monotonic() + 30
    while (found := look()) != expected:
        assert time.monotonic() < end, f"it is {found}"
        time.sleep(0.05)


def test_in_the_output_of_the_newest_run(agent: Agent, make: Callable[..., str]) -> None:
    ws = make()
    assert find(agent, ws, pattern="token={token}") is None  # never started

    def run(line: str) -> None:
        start(agent, ws, "lab", "sh", "-c", f"echo a line; echo '{line}'; echo token=third; exec sleep 4251")

    run("at http://127.0.0.1:8888/lab?token=f1r5t&more")
    until_found("f1r5t", lambda: find(agent, ws, pattern="lab?token={token}"))
    assert find(agent, ws, pattern=".*token={token}") is None  # no regular expression
    assert find(agent, ws, pattern="a {token}") == "line"
    stop(agent, ws, "lab")
    assert find(agent, ws, pattern="lab?token={token}") is None  # of no use any more
    run("at http://127.0.0.1:8888/lab?token=sec-0nd/+=")
    until_found("sec-0nd/+=", lambda: find(agent, ws, pattern="lab?token={token}"))
    for pattern in ("token", "{token}{token}", ""):
        asked = agent.call("launcher.token", id=ws, name="lab", file=None, pattern=pattern)
        assert asked.code == "protocol"
    stop(agent, ws, "lab")
    start(agent, ws, "lab", "sh", "-c", "echo token=fourth; exit 3")
    exited(agent, ws, "lab")
    assert find(agent, ws, pattern="token={token}") is None


def test_in_a_file_inside(agent: Agent, make: Callable[..., str]) -> None:
    ws = make()
    SECRET.write_text("0utside\n")
    os.chmod(SECRET, 0o644)
    script = (
        "mkdir -p /etc/app; printf '\\n  f1le \\n' >/etc/app/token; "
        "printf 'bind: x\\npassword: pa55!word\\n' >/etc/app/config.yaml; "
        f"ln -s /etc/app/token /etc/absolute; ln -s ../../../..{SECRET} /etc/out; mkfifo /etc/pipe; "
        "printf 'two words\\n' >/etc/words; echo ready; exec sleep 4252"
    )
    start(agent, ws, "lab", "sh", "-c", script)
    until_found("ready", lambda: find(agent, ws, pattern="{token}"))
    try:
        assert find(agent, ws, file="/etc/app/token") == "f1le"
        assert find(agent, ws, file="/etc/app/config.yaml", pattern="password: {token}") == "pa55!word"
        assert find(agent, ws, file="/etc/absolute") == "f1le"
        odd = (
            "/etc/out",
            "/etc/pipe",
            "/etc",
            "/dev/zero",
            "/proc/self/root/etc/absolute",
            "/none",
            "/etc/words",
        )
        for path in (*odd, str(SECRET)):
            assert find(agent, ws, file=path) is None, path
    finally:
        SECRET.unlink()
