"""What an agent is given: its user's rights, one descriptor, an environment made from scratch."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import pwd
import signal

import pytest
from helper.stage import Stage

from svc_helper.keyring import leave_keyring
from svc_helper.provision.linux_account import failure_as_user
from svc_helper.root.check import resolve


def test_the_drop_is_complete(stage: Stage, uid: dict[str, int]) -> None:
    result = stage.client("worker").call("ctr.inspect", "tsh-ada", {"id": "ws-self0000"}, rid="r")
    ada = uid["tsh-ada"]
    status = dict(line.split(":\t", 1) for line in result["status"].splitlines() if ":\t" in line)
    gid = str(pwd.getpwnam("tsh-ada").pw_gid)
    assert (status["Uid"].split(), status["Gid"].split()) == ([str(ada)] * 4, [gid] * 4)
    assert status["Groups"].split() == [gid]
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
    assert status["NoNewPrivs"] == "0"  # rootless Podman needs newuidmap
    assert int(status["SigBlk"], 16) == 0
    assert not int(status["SigIgn"], 16) & (1 << signal.SIGINT - 1)
    fds = {int(fd): target for fd, target in result["fds"].items()}
    assert fds[0] == "/dev/null"
    assert fds[1] == fds[2] == f"/run/user/{ada}/svc/agent.log"
    assert [target.split(":")[0] for fd, target in fds.items() if fd > 2] == ["socket", "socket"]
    assert result["environment"] == {
        "HOME": "/home/tsh-ada",
        "USER": "tsh-ada",
        "LOGNAME": "tsh-ada",
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
        "LANG": "C.UTF-8",
        "XDG_RUNTIME_DIR": f"/run/user/{ada}",
        "MALLOC_ARENA_MAX": "1",
        "MALLOC_MMAP_THRESHOLD_": "65536",
    }
    assert (result["cwd"], result["umask"], result["core"][0]) == ("/home/tsh-ada", 0o077, 0)
    assert result["sid_is_pid"]
    assert json.loads(result["argv"][-1]) == {
        "user": "tsh-ada",
        "uid": ada,
        "home": "/home/tsh-ada",
        "roots": {"work": "/home/tsh-ada/work"},
        "read_only": [],
        "systemd": False,
        "registries": f"{stage.directory}/registries.json",
        "registries_conf": f"{stage.directory}/registries.conf",
        "store": "",
    }
    found = os.stat(f"/run/user/{ada}")
    assert (found.st_uid, found.st_mode & 0o7777) == (ada, 0o700)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the calls' numbers are another machine's")
def test_the_keys_of_whoever_started_the_helper_stay_behind(uid: dict[str, int]) -> None:
    libc, account = ctypes.CDLL(None), resolve("tsh-ada")
    assert account is not None
    add_key, request_key, session = 248, 249, -3

    def finds_the_key() -> bool:
        return libc.syscall(request_key, b"user", b"tsh-key", None, 0) > 0

    def require_nothing() -> None:
        assert not finds_the_key()

    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            leave_keyring()
            libc.syscall(add_key, b"user", b"tsh-key", b"secret", 6, session)
            code = 0 if finds_the_key() and not failure_as_user(account, require_nothing) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
