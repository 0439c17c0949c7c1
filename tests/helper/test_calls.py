"""A call's way through the helper: to the right agent, with the right rights, also past a helper's death."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from helper.stage import WS, Stage, call

from svc import errors
from svc_helper.protocol import send


def test_a_call_reaches_the_users_own_agent(stage: Stage, uid: dict[str, int]) -> None:
    data = stage.client("worker").call("ctr.inspect", "tsh-ada", WS, rid="r-7", timeout_s=3)
    assert data["message"] == {"verb": "ctr.inspect", "args": WS, "rid": "r-7", "timeout_s": 3}
    assert data["fds"] == 1  # the reply path alone
    other = stage.client("tcp").call("ctr.inspect", "tsh-ben", WS, rid="r-8")
    assert os.stat(f"/proc/{data['pid']}").st_uid == uid["tsh-ada"]
    assert os.stat(f"/proc/{other['pid']}").st_uid == uid["tsh-ben"]


def test_the_same_agent_serves_the_next_call(stage: Stage) -> None:
    helper = stage.client("worker")
    pids = {helper.call("ctr.inspect", "tsh-ada", WS, rid="r")["pid"] for _ in range(5)}
    assert len(pids) == 1


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


def test_a_runtime_directory_of_somebody_else_is_not_taken(stage: Stage, uid: dict[str, int]) -> None:
    path = f"/run/user/{uid['tsh-ada']}"
    os.makedirs(path, exist_ok=True)
    os.chown(path, 12345, 12345)
    with pytest.raises(errors.EngineUnavailable):
        stage.client("worker").call("ctr.inspect", "tsh-ada", WS, rid="r")
    assert os.stat(path).st_uid == 12345
    os.chown(path, uid["tsh-ada"], uid["tsh-ada"])
    stage.client("worker").call("ctr.inspect", "tsh-ada", WS, rid="r")


def test_an_agent_has_its_own_cgroup_where_there_is_cgroup2(uid: dict[str, int]) -> None:
    script = 'umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$@"'
    stage = Stage(doors=("worker",), inside=("unshare", "--mount", "sh", "-c", script, "sh"))
    stage.enrol(f"tsh-ada {uid['tsh-ada']} user")
    try:
        told = stage.client("worker").call("ctr.inspect", "tsh-ada", {"id": "ws-self0000"}, rid="r")
    finally:
        stage.close()
    ours = f"/user-{uid['tsh-ada']}"
    assert f"0::{ours}/svc-agent" in told["cgroup"]
    assert told["own_group"] == ""  # made, entered and left again by the user, and ended by cgroup.kill


def test_an_ending_agent_loses_no_call(stage: Stage) -> None:
    helper = stage.client("worker")
    pids = set()
    for _ in range(8):
        pids.add(helper.call("ctr.inspect", "tsh-ada", {"id": "ws-ends0000"}, rid="r")["pid"])
        pids.add(helper.call("ctr.inspect", "tsh-ada", WS, rid="r")["pid"])
    assert len(pids) > 4


def test_a_dead_agent_costs_its_call_and_the_next_one_works(stage: Stage) -> None:
    helper = stage.client("worker")
    with pytest.raises(errors.EngineUnavailable):
        helper.call("ctr.inspect", "tsh-ada", {"id": "ws-dies0000"}, rid="r")
    helper.call("ctr.inspect", "tsh-ada", WS, rid="r")
    pid = helper.call("ctr.inspect", "tsh-ada", WS, rid="r")["pid"]
    os.kill(pid, signal.SIGKILL)
    time.sleep(0.1)
    assert helper.call("ctr.inspect", "tsh-ada", WS, rid="r")["pid"] != pid


def test_a_stopped_agent_does_not_stop_the_helper(stage: Stage) -> None:
    helper = stage.client("worker")
    pid = helper.call("ctr.inspect", "tsh-ada", WS, rid="r")["pid"]
    os.kill(pid, signal.SIGSTOP)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        for _ in range(2000):  # far beyond what the channel holds
            send(stage.pairs["worker"], call("ctr.inspect", "tsh-ada", WS), [theirs.fileno()])
        assert helper.call("ctr.inspect", "tsh-ben", WS, rid="r")["pid"] != pid
        with pytest.raises(errors.EngineUnavailable):
            helper.call("ctr.inspect", "tsh-ada", WS, rid="r")
        os.kill(pid, signal.SIGKILL)


def test_a_killed_helper_costs_nothing_but_what_it_held(stage: Stage) -> None:
    helper = stage.client("worker")
    helper.call("ctr.inspect", "tsh-ada", WS, rid="r")
    with ThreadPoolExecutor(8) as pool:
        held = pool.submit(helper.call, "ctr.inspect", "tsh-ada", {"id": "ws-hold0000"}, rid="held")
        time.sleep(0.3)
        stage.process.kill()
        stage.process.wait()
        queued = [pool.submit(helper.call, "ctr.inspect", "tsh-ben", WS, rid="queued") for _ in range(5)]
        time.sleep(0.2)
        stage.start()
        assert held.result(5)["message"]["rid"] == "held"  # "calls already with an agent finish"
        assert {future.result(5)["message"]["rid"] for future in queued} == {"queued"}


def test_agents_end_with_the_helper(stage: Stage) -> None:
    pid = stage.client("worker").call("ctr.inspect", "tsh-ada", WS, rid="r")["pid"]
    stage.process.kill()
    stage.process.wait()
    until = time.monotonic() + 5
    while os.path.exists(f"/proc/{pid}"):
        assert time.monotonic() < until
        time.sleep(0.02)
    stage.start()


def test_many_calls_at_once_are_not_mixed_up(stage: Stage) -> None:
    helper = stage.client("worker")

    def one(number: int) -> bool:
        user = ("tsh-ada", "tsh-ben")[number % 2]
        data = helper.call("ctr.inspect", user, WS, rid=f"r-{number}")
        return data["message"]["rid"] == f"r-{number}"

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(one, range(400)))


def test_descriptors_and_long_answers_come_through(stage: Stage) -> None:
    helper = stage.client("worker")
    long = helper.call("ctr.inspect", "tsh-ada", {"id": "ws-long0000"}, rid="r")
    assert long["text"] == "\u00fc[" * 100_000
    data, pidfd = helper.call_fd("ctr.watch", "tsh-ada", {"id": "ws-give0000"}, rid="r")
    os.close(pidfd)
    assert data["fds"] == 1
    with pytest.raises(errors.EngineFailed):
        helper.call_fd("ctr.watch", "tsh-ada", WS, rid="r")


def test_the_helper_keeps_nothing_of_a_call(stage: Stage) -> None:
    helper = stage.client("worker")
    helper.call("ctr.inspect", "tsh-ada", WS, rid="r")
    before = stage.descriptors()
    for _ in range(200):
        helper.call("ctr.inspect", "tsh-ada", WS, rid="r")
    assert stage.descriptors() == before


def test_who_hangs_up_is_not_waited_for(stage: Stage) -> None:
    helper = stage.client("worker")
    client, ours = socket.socketpair()
    with ours:
        threading.Timer(0.2, client.close).start()
        started = time.monotonic()
        with pytest.raises(errors.Conflict):
            helper.call("ctr.inspect", "tsh-ada", {"id": "ws-mute0000"}, rid="r", hangup_fd=ours.fileno())
        assert time.monotonic() - started < 2


def test_each_call_is_one_line_in_roots_log(stage: Stage) -> None:
    stage.client("worker").call("ctr.inspect", "tsh-ada", WS, rid="r-log")
    (line,) = [line for line in stage.log() if line.get("rid") == "r-log"]
    assert (line["verb"], line["user"], line["outcome"]) == ("ctr.inspect", "tsh-ada", "sent")
    assert line["ms"] >= 0
