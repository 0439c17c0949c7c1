"""What a child gets: its descriptors at fixed numbers, a clean environment, an identity it cannot leave."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from svc.helper import start
from svc.host.accounts import PARENT_CAPABILITIES, Accounts, Identity
from svc.server import children
from svc_helper import interpreter

pytestmark = pytest.mark.allow_commands("setpriv", "python3")

PROGRAM = """
import json, os, sys
status = dict(line.rstrip("\\n").split(":\\t", 1) for line in open("/proc/self/status") if ":\\t" in line)
open(sys.argv[1], "w").write(json.dumps({
    "fds": sorted(int(name) for name in os.listdir("/proc/self/fd")), "env": dict(os.environ),
    "uids": os.getresuid(), "groups": os.getgroups(), "bounding": status["CapBnd"],
    "effective": status["CapEff"], "no_new_privs": status["NoNewPrivs"],
    "inheritable": status["CapInh"], "ambient": status["CapAmb"]}))
"""


def run(tmp_path: Path, command: list[str], descriptors: list[int]) -> dict:
    out = tmp_path / "out.json"
    out.touch()
    out.chmod(0o666)
    for directory in (tmp_path, *tmp_path.parents):
        if directory.stat().st_mode & 0o055 != 0o055:
            directory.chmod(0o755)
    pid = children.spawn([*command, str(out)], descriptors, start.environment())
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return json.loads(out.read_text())


def test_descriptors_come_at_fixed_numbers_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "must not be inherited")
    children.set_close_on_exec()
    read, write = os.pipe()
    high = children.move_high(os.dup(read))
    found = run(tmp_path, ["/usr/bin/python3", "-I", "-c", PROGRAM], [high, write])
    for descriptor in (read, write, high):
        os.close(descriptor)
    assert found["fds"][:5] == [0, 1, 2, 3, 4]
    assert len(found["fds"]) == 7  # and the program's own: its output and the listing
    assert "SECRET" not in found["env"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up being root")
def test_the_app_has_two_capabilities_for_its_roles(tmp_path: Path) -> None:
    accounts = Accounts(65534, 65534, {"unix": 65531, "tls": 65532, "worker": 65533}, Identity(65530, 65530))
    found = run(tmp_path, children.as_app(accounts, ["/usr/bin/python3", "-I", "-c", PROGRAM]), [])
    assert found["uids"] == [65534] * 3 and found["groups"] in ([], [65534])
    assert int(found["bounding"], 16) == 0 and int(found["effective"], 16) == PARENT_CAPABILITIES
    assert found["no_new_privs"] == "1"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a capability")
def test_the_app_of_one_user_gives_up_what_the_session_has(tmp_path: Path) -> None:
    """pam_systemd of Debian 13 gives CAP_WAKE_ALARM at a seat; the app refuses to start with any."""
    accounts = Accounts(65534, 65534, dict.fromkeys(("unix", "tls", "worker"), 65534), Identity(65534, 65534))
    session = [
        children.SETPRIV, "--reuid=65534", "--regid=65534", "--clear-groups",
        "--inh-caps=+wake_alarm", "--ambient-caps=+wake_alarm", "--",
    ]  # fmt: skip
    found = run(
        tmp_path, [*session, *children.as_app(accounts, ["/usr/bin/python3", "-I", "-c", PROGRAM])], []
    )
    assert [int(found[name], 16) for name in ("effective", "inheritable", "ambient")] == [0, 0, 0]
    assert found["no_new_privs"] == "1"


def test_high_numbers_are_closed_at_exec() -> None:
    read, write = os.pipe()
    moved = children.move_high(read)
    assert moved >= children.HIGH_FD and not os.get_inheritable(moved)
    os.close(moved)
    os.close(write)


def test_our_own_modules_start_without_site(tmp_path: Path) -> None:
    command = interpreter.command("svc.log")
    assert command[0] == sys.executable and command[1:3] == ["-I", "-S"]
