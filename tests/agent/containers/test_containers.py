"""The life of a workspace's container, with real Podman."""

from __future__ import annotations

import base64
import os
import select
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from agent.priv_ns import NO_LIMITS, Agent, User

pytestmark = pytest.mark.root
Make = Callable[..., str]


def output(agent: Agent, workspace_id: str, *command: str) -> str:
    """What a command prints in a workspace."""
    import base64

    done = agent.call("ctr.exec", id=workspace_id, command=list(command), timeout_s=20).data
    assert done["exit_code"] == 0, base64.b64decode(done["stderr"])
    return base64.b64decode(done["stdout"]).decode()


def test_life(agent: Agent, make: Make, image: str) -> None:
    ws = make(start=False)
    created = agent.call("ctr.inspect", id=ws).data
    assert (created["exists"], created["status"], created["pid"]) == (True, "created", None)
    started = agent.call("ctr.start", id=ws).data
    assert agent.call("ctr.start", id=ws).data == started, "a running one is left running"
    seen = agent.call("ctr.inspect", id=ws).data
    assert (seen["status"], seen["pid"]) == ("running", started["pid"])
    assert seen["image_id"] == agent.call("image.inspect", image=image).data["image_id"]
    assert ws in [
        row["id"] for row in agent.call("ctr.list").data["containers"] if row["status"] == "running"
    ]
    stopped = agent.call("ctr.stop", id=ws, grace_s=10).data
    assert stopped == {"exit_code": 143, "oom_killed": False}
    assert agent.call("ctr.stop", id=ws, grace_s=10).data == stopped, "a stopped one is stopped"
    row = next(row for row in agent.call("ctr.list").data["containers"] if row["id"] == ws)
    assert (row["status"], row["exit_code"], row["oom_killed"]) == ("stopped", 143, False)
    assert row["started_at"][:19] == started["started_at"][:19]
    assert started["started_at"].endswith("Z")
    assert agent.call("ctr.start", id=ws).data["container_id"] == started["container_id"]
    for _ in range(2):
        assert agent.call("ctr.remove", id=ws).data == {}
    assert agent.call("ctr.inspect", id=ws).data == {"exists": False}
    assert agent.call("ctr.start", id=ws).code == "not_found"
    assert agent.call("ctr.stop", id=ws, grace_s=1).data == {"exit_code": None, "oom_killed": False}
    assert agent.call("ctr.watch", id=ws).code == "not_found"
    assert agent.logs(ws).content == b""


def test_create_never_pulls_and_may_be_repeated(agent: Agent, make: Make, user: User, image: str) -> None:
    ws = make(start=False)
    container_id = agent.call("ctr.inspect", id=ws).data["container_id"]
    args = {
        "name": "demo",
        "command": None,
        "env": {},
        "run_as": None,
        "mounts": [],
        "resources": NO_LIMITS,
    }
    again = agent.call("ctr.create", id=ws, image=image, **args).data
    assert again["container_id"] == container_id
    absent = agent.call("ctr.create", id="ws-00000000", image=f"{image}0", **args)
    assert absent.code == "image_missing"
    user.podman("create", "--name", "svc-ws-11111111", image)
    assert agent.call("ctr.create", id="ws-11111111", image=image, **args).code == "container_name_taken"
    assert "ws-11111111" not in [row["id"] for row in agent.call("ctr.list").data["containers"]]
    user.podman("rm", "svc-ws-11111111")


def test_a_file_root_is_mounted(user: User, image: str, agent: Agent) -> None:
    """Made as the user when it is not there; read-only where the template says so."""
    roots = {"work": f"{user.home}/work", "data": f"{user.home}/more/data"}
    other = user.start_agent(roots=roots)
    ws = "ws-2222aaaa"
    mounts = [
        {"root": "data", "path": "/data", "read_only": True},
        {"root": "data", "path": "/srv/own data", "read_only": False},
    ]
    args = {"name": "demo", "command": None, "env": {}, "run_as": None, "mounts": mounts}
    try:
        assert other.call("ctr.create", id=ws, image=image, resources=NO_LIMITS, **args).data
        assert other.call("ctr.start", id=ws).data
        script = "touch '/srv/own data/made' && ls /data && ! touch /data/x 2>/dev/null && echo closed"
        ran = other.call("ctr.exec", id=ws, command=["sh", "-c", script], timeout_s=20).data
        assert base64.b64decode(ran["stdout"]) == b"made\nclosed\n"
        found = user.run(
            "stat", "-c", "%U %a", f"{user.home}/more/data", f"{user.home}/more/data/made"
        ).stdout
        assert found.split() == [user.name, "700", user.name, "644"]
    finally:
        other.call("ctr.remove", id=ws)
        other.close()
    refused = agent.call("ctr.create", id=ws, image=image, resources=NO_LIMITS, **args)
    assert (refused.code, refused.message["message"]) == ("failed", "this host has no file root data")


def test_limits_that_nothing_enforces_are_said(agent: Agent, make: Make, image: str) -> None:
    ws = make(start=False)
    resources = {"cpu_limit": 500, "memory_bytes": 64 << 20, "shm_bytes": 1 << 20, "pids_limit": 10}
    args = {"name": "demo", "command": None, "env": {}, "run_as": None, "mounts": []}
    agent.call("ctr.remove", id=ws)
    created_data = agent.call("ctr.create", id=ws, image=image, resources=resources, **args).data
    assert created_data["limits_applied"] == ["shm_bytes"]
    assert sorted(created_data["limits_missing"]) == ["cpu_limit", "memory_bytes", "pids_limit"]
    agent.call("ctr.start", id=ws)
    assert " 1024 " in output(agent, ws, "df", "-k", "/dev/shm").replace("  ", " ")


def test_work_belongs_to_the_user_on_both_sides(agent: Agent, make: Make, user: User) -> None:
    ws = make()
    assert output(agent, ws, "sh", "-c", "echo hi > /work/from-container; stat -c %u /work") == "0\n"
    written = Path(user.home, "work", "from-container")
    assert (written.stat().st_uid, written.read_text()) == (user.uid, "hi\n")
    assert oct(Path(user.home, "work").stat().st_mode & 0o777) == "0o700"


def test_run_as_maps_that_id_to_the_user(agent: Agent, make: Make, user: User) -> None:
    ws = make(run_as={"uid": 1234, "gid": 1234})
    assert output(agent, ws, "sh", "-c", "id -u; id -g; touch /work/by-1234; stat -c %u /work/by-1234") == (
        "1234\n1234\n1234\n"
    )
    assert Path(user.home, "work", "by-1234").stat().st_uid == user.uid
    assert agent.logs(ws).content == b""
    assert agent.call("ctr.stop", id=ws, grace_s=10).data["exit_code"] == 143


def test_the_work_root_is_made_again(agent: Agent, make: Make, user: User) -> None:
    ws = make()
    agent.call("ctr.stop", id=ws, grace_s=5)
    user.run("rm", "-rf", f"{user.home}/work")
    assert agent.call("ctr.start", id=ws).data
    assert Path(user.home, "work").is_dir()


def test_environment_hostname_and_command(agent: Agent, make: Make) -> None:
    ws = make(command=["sh", "-c", "echo $COLOUR on $HOSTNAME; exec sleep 1000"], env={"COLOUR": "two words"})
    assert output(agent, ws, "hostname") == "demo\n"
    assert agent.logs(ws).text == "two words on demo\n"


def test_a_watch_tells_the_end(agent: Agent, make: Make) -> None:
    ws = make()
    watch = agent.call("ctr.watch", id=ws)
    assert watch.data["pid"] == agent.call("ctr.inspect", id=ws).data["pid"]
    (pidfd,) = watch.fds
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    assert not poller.poll(0)
    agent.call("ctr.stop", id=ws, grace_s=5)
    assert poller.poll(1000)
    os.close(pidfd)
    assert agent.call("ctr.watch", id=ws).code == "not_running"


def test_stop_kills_what_ignores_term(agent: Agent, make: Make) -> None:
    ws = make(command=["sh", "-c", "trap '' TERM; while true; do sleep 1; done"])
    began = time.monotonic()
    assert agent.call("ctr.stop", id=ws, grace_s=1).data["exit_code"] == 137
    assert 1 <= time.monotonic() - began < 5


def test_logs(agent: Agent, make: Make) -> None:
    script = "seq 1 5000; printf '%020000d\\n' 7; echo oops >&2; printf unfinished; exec sleep 1000"
    ws = make(command=["sh", "-c", script])
    until = time.monotonic() + 10
    while not ("oops\n" in (everything := agent.logs(ws)).text and "unfinished" in everything.text):
        assert time.monotonic() < until
        time.sleep(0.05)
    lines = everything.text.replace("oops\n", "").splitlines()  # anywhere: it came through another pipe
    assert lines[:5000] == [str(number) for number in range(1, 5001)]
    assert lines[5000:] == ["0" * 19_999 + "7", "unfinished"], "long lines come in parts and go out whole"
    assert (everything.start, everything.truncated, everything.older_gone) == ([0, 0], False, False)
    last = agent.logs(ws, tail=4)
    assert last.text.splitlines() == everything.text.splitlines()[-4:]
    rest = agent.logs(ws, start={"number": last.start[0], "offset": last.start[1]}, skip=7)
    assert rest.content == last.content[7:]
    agent.call("ctr.stop", id=ws, grace_s=5)
    assert agent.logs(ws, tail=4).text == last.text, "they outlive the stop"
    gone = agent.begin(
        "ctr.logs", stream=True, id=ws, launcher=None, tail=None, most=None, skip=0,
        start={"number": 7, "offset": 0},
    )  # fmt: skip
    with gone.stream:
        assert gone.answer().code == "conflict"


def test_long_logs_are_cut_at_the_old_end(agent: Agent, make: Make) -> None:
    ws = make(
        command=[
            "sh",
            "-c",
            "i=0; while [ $i -lt 300 ]; do printf '%010000d\\n' $i; i=$((i+1)); done; sleep 99",
        ]
    )
    until = time.monotonic() + 20
    while not (found := agent.logs(ws, most=1024 * 1024)).text.endswith("299\n"):
        assert time.monotonic() < until
    assert found.truncated
    assert 1024 * 1024 - 64 * 1024 < len(found.content) <= 1024 * 1024
    assert not agent.logs(ws, tail=3, most=1024 * 1024).truncated


def test_logs_of_a_container_with_ids_of_its_own(agent: Agent, make: Make) -> None:
    ws = make(run_as={"uid": 1234, "gid": 1234}, command=["sh", "-c", "seq 1 100; exec sleep 1000"])
    time.sleep(0.2)
    assert agent.logs(ws, tail=2).text == "99\n100\n"


KILLED_WHILE_IT_REMOVES = """
index=~/.local/share/containers/storage/overlay-$2/$2.json
setsid podman rm --force "$1" >/dev/null 2>&1 &
while [[ $(<$index) == *"$3"* ]]; do :; done
kill -KILL -- -$!
wait
podman ps --all --filter "id=$1" --format '{{.State}}'
"""


@pytest.mark.parametrize("index", ["containers", "layers"])
def test_a_removal_that_was_killed_half_way(agent: Agent, make: Make, user: User, index: str) -> None:
    """One such container kept all others of its user from being listed, for ever.

    Podman deletes its container and its layer at the same time, either may be left, and a service
    that has them in its memory finds both.
    """
    other = make(start=False)
    for _ in range(20):
        ws = make(start=False)
        container_id = agent.call("ctr.inspect", id=ws).data["container_id"]
        layer = user.podman(
            "inspect", "--format", "{{.GraphDriver.Data.UpperDir}}", container_id
        ).stdout.split("/")[-2]
        gone = container_id if index == "containers" else layer
        killed = user.run("bash", "-c", KILLED_WHILE_IT_REMOVES, "bash", container_id, index, gone)
        if killed.stdout.lower() == "removing\n":  # in small letters by Podman 5
            break
    else:
        pytest.fail("it was always too late")
    rows = agent.call("ctr.list").data["containers"]
    assert other in [row["id"] for row in rows]
    assert ws not in [row["id"] for row in rows]
    assert agent.call("ctr.inspect", id=ws).data == {"exists": False}
    assert container_id not in user.podman("ps", "--all", "--quiet", "--no-trunc").stdout
