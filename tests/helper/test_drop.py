"""What an agent is given: its user's rights, one descriptor, an environment made from scratch."""

from __future__ import annotations

import json
import os
import signal

from helper.stage import Stage


def test_the_drop_is_complete(stage: Stage, uid: dict[str, int]) -> None:
    told = stage.client("worker").call("ctr.inspect", "tsh-ada", {"id": "ws-self0000"}, rid="r")
    ada = uid["tsh-ada"]
    status = dict(line.split(":\t", 1) for line in told["status"].splitlines() if ":\t" in line)
    assert status["Uid"].split() == status["Gid"].split() == [str(ada)] * 4
    assert status["Groups"].split() == [str(ada)]
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {0}
    assert status["NoNewPrivs"] == "0"  # rootless Podman needs newuidmap
    assert int(status["SigBlk"], 16) == 0
    assert not int(status["SigIgn"], 16) & (1 << signal.SIGINT - 1)
    fds = {int(fd): target for fd, target in told["fds"].items()}
    assert fds[0] == "/dev/null"
    assert fds[1] == fds[2] == f"/run/user/{ada}/svc/agent.log"
    assert [target.split(":")[0] for fd, target in fds.items() if fd > 2] == ["socket", "socket"]
    assert told["environment"] == {
        "HOME": "/home/tsh-ada",
        "USER": "tsh-ada",
        "LOGNAME": "tsh-ada",
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
        "LANG": "C.UTF-8",
        "XDG_RUNTIME_DIR": f"/run/user/{ada}",
    }
    assert (told["cwd"], told["umask"], told["core"]) == ("/home/tsh-ada", 0o077, [0, 0])
    assert told["sid_is_pid"]
    assert told["nofile"][0] == 4096
    assert json.loads(told["argv"][-1]) == {
        "user": "tsh-ada",
        "uid": ada,
        "home": "/home/tsh-ada",
        "roots": {"work": "/home/tsh-ada/work"},
        "systemd": False,
        "registries": f"{stage.directory}/registries.json",
        "registries_conf": f"{stage.directory}/registries.conf",
    }
    found = os.stat(f"/run/user/{ada}")
    assert (found.st_uid, found.st_mode & 0o7777) == (ada, 0o700)
