"""`svc server --dev` of an ordinary user: no root anywhere, one account, the agent is its owner."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from helper.stage import WS

from svc import errors
from svc.helper.helper import Helper
from svc_helper import interpreter


@pytest.fixture
def directory(uid: dict[str, int]) -> Iterator[Path]:
    """A directory of ada's own."""
    created = Path(tempfile.mkdtemp(prefix="tsh-", dir="/run"))
    os.chown(created, uid["tsh-ada"], uid["tsh-ada"])
    yield created
    shutil.rmtree(created)


def as_user(uid: int, function: Callable[[], Any]) -> Any:
    """What the function returns in a process that is that user and nothing else."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.write(write, json.dumps(function()).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with open(read, "rb") as file:
        return json.loads(file.read())


def session(directory: Path, calls: list[tuple[str, str, str | None, dict[str, Any]]], uid: int) -> list[Any]:
    """Start a helper as ourselves, make the calls (pair, verb, user, arguments), end it."""
    path = str(directory / "svc.sock")
    ends = {
        pair_name: socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for pair_name in ("unix", "worker", "admin")
    }
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind(path)
        listener.listen()
        client.connect(path)
        accepted, _ = listener.accept()
        fds = {pair_name: far.fileno() for pair_name, (_, far) in ends.items()}
        config = {
            "socket": path,
            "state_dir": str(directory),
            "file_roots": {"work": "%h/work"},
            "fds": fds,
            "uids": dict.fromkeys(fds, uid),
            "systemd": None,
            "single_user": True,
            "agent_command": [sys.executable, "-I", "-S", str(Path(__file__).parents[1] / "fake_agent.py")],
        }
        command = interpreter.command("svc_helper.root.__main__", "--config", json.dumps(config))
        process = subprocess.Popen(
            command, pass_fds=list(fds.values()), env={"XDG_RUNTIME_DIR": str(directory)}
        )
        outcomes: list[Any] = []
        for pair_name, verb, user, args in calls:
            try:
                outcomes.append(
                    Helper(ends[pair_name][0], pair_name).call(verb, user, args, rid="r", peer=accepted)
                )
            except errors.SvcError as error:
                outcomes.append(error.code)
        for pair in ends.values():
            for end in pair:
                end.close()
        outcomes.append(process.wait(10))
        return outcomes


def test_the_one_account_and_no_other(directory: Path, uid: dict[str, int]) -> None:
    ada = uid["tsh-ada"]
    mark = {"administrator": True}
    calls: list[tuple[str, str, str | None, dict[str, Any]]] = [
        ("worker", "ctr.inspect", "tsh-ada", {"id": "ws-self0000"}),
        ("unix", "ctr.inspect", "tsh-ada", WS),
        ("worker", "ctr.inspect", "tsh-ben", WS),
        ("unix", "ctr.inspect", "root", WS),
        ("admin", "account.ensure", "tsh-new", mark),
        ("admin", "account.mark", "tsh-ada", mark),
        ("admin", "account.forget", "tsh-ada", {}),
        ("unix", "ctr.inspect", "root", WS),
        ("unix", "account.check", "tsh-ben", {}),
        ("unix", "account.check", "root", {}),
        ("worker", "account.check", "tsh-ada", {}),
        ("unix", "account.check", "tsh-ada", {}),
        ("worker", "helper.ping", None, {}),
    ]
    result, mine, *rest, check, ping, exit_code = as_user(ada, lambda: session(directory, calls, ada))
    assert result["environment"]["XDG_RUNTIME_DIR"] == str(directory)
    assert f"Uid:\t{ada}\t{ada}\t{ada}\t{ada}\n" in result["status"]
    assert mine["pid"] == result["pid"]
    assert rest[:5] == ["not_found", "not_found", "host_refused", "host_refused", "host_refused"]
    assert rest[5:] == ["not_found", "account_incomplete", "account_incomplete", "internal_error"]
    assert check == {"good_for_ms": 5000}  # the host is not asked about the one who started it all
    assert ping["violations"] == 1  # the pair "worker" has no account.check
    assert exit_code == 0
    with pytest.raises(KeyError):
        pwd.getpwnam("tsh-new")
