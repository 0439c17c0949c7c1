"""Starts that differ from what the container was created with, with real Podman."""

from __future__ import annotations

import base64
import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from agent.priv_ns import NO_LIMITS, Agent, User

from svc_helper.agent.containers import overrides, spec
from svc_helper.agent.containers.cdi import Edits
from svc_helper.agent.containers.overrides import Created, Prepared
from svc_helper.agent.home import Home

Make = Callable[..., str]
KEEP_ID = {"uid": 1234, "gid": 1234}
NO_EDITS = Edits([], [], {}, [], {})
ALL = frozenset({"cpu", "memory", "pids"})


def run(agent: Agent, ws: str, script: str) -> str:
    """What a script prints in a workspace."""
    done = agent.call("ctr.exec", id=ws, command=["sh", "-c", script], timeout_s=20).data
    assert done["exit_code"] == 0, base64.b64decode(done["stderr"])
    return base64.b64decode(done["stdout"]).decode()


def variables(agent: Agent, ws: str) -> tuple[dict[str, str], dict[str, str]]:
    """The variables of the workspace's first process and of a command in it."""
    first = run(agent, ws, "cat /proc/1/environ").rstrip("\0").split("\0")
    command = run(agent, ws, "env").splitlines()
    created_data = tuple(dict(pair.partition("=")[::2] for pair in pairs) for pairs in (first, command))
    return cast(tuple[dict[str, str], dict[str, str]], created_data)


def restart(agent: Agent, ws: str, **changes: Any) -> dict[str, Any]:
    """Stop a workspace and start it with these overrides."""
    assert agent.call("ctr.stop", id=ws, grace_s=5).data
    return agent.call("ctr.start", id=ws, **changes).data


def hooks(user: User) -> set[str]:
    """The names of what lies in the directory of hooks."""
    return set(user.run("ls", f"{user.runtime}/svc/hooks").stdout.split())


@pytest.fixture(params=[None, KEEP_ID], ids=["root", "keep-id"])
def run_as(request: pytest.FixtureRequest) -> dict[str, int] | None:
    """Both ways a container maps its users."""
    return cast("dict[str, int] | None", request.param)


# --- with Podman -----------------------------------------------------------------------------


@pytest.mark.root
def test_an_edited_environment(agent: Agent, make: Make, user: User, run_as: dict[str, int] | None) -> None:
    ws = make(env={"COLOUR": "blue", "PATH": "/opt/bin:/bin", "STAYS": "yes"}, run_as=run_as)
    assert not any(name.startswith(ws) for name in hooks(user)), "a start without differences has no hook"
    run(agent, ws, "echo kept >/work/kept-by-edit")
    before = variables(agent, ws)[0]
    wish = {"STAYS": "yes", "NEW": "a b=c", "EMPTY": ""}
    restart(agent, ws, env=wish)
    for seen in variables(agent, ws):
        assert "COLOUR" not in seen
        assert seen["PATH"] == "/bin", "the image's own again"
        assert {name: seen[name] for name in wish} == wish
        assert seen["HOSTNAME"] == before["HOSTNAME"]
        assert seen["container"] == "podman"
    assert restart(agent, ws, env={"COLOUR": "blue", "PATH": "/opt/bin:/bin", "STAYS": "yes"})
    assert variables(agent, ws)[0] == before, "all as it was created"
    assert not any(name.startswith(ws) for name in hooks(user))


@pytest.mark.root
def test_what_is_installed_stays(agent: Agent, make: Make) -> None:
    ws = make()
    run(agent, ws, "echo mine >/installed")
    created = agent.call("ctr.inspect", id=ws).data["container_id"]
    started = restart(agent, ws, env={"NEW": "1"}, resources=NO_LIMITS | {"shm_bytes": 1 << 20})
    assert started["container_id"] == created
    assert run(agent, ws, "cat /installed") == "mine\n"


@pytest.mark.root
def test_shared_memory_and_limits(agent: Agent, make: Make, run_as: dict[str, int] | None) -> None:
    """Without controllers a limit is said to be missing; /dev/shm needs none."""
    size = "df -k /dev/shm | tail -n 1 | awk '{print $2}'"
    wish = {"cpu_limit": 500, "memory_bytes": 64 << 20, "shm_bytes": 2 << 20, "pids_limit": 10}
    ws = make(run_as=run_as)
    assert run(agent, ws, size) == "64000\n"
    started = restart(agent, ws, resources=wish)
    assert started["limits_applied"] == ["shm_bytes"]
    assert sorted(started["limits_missing"]) == ["cpu_limit", "memory_bytes", "pids_limit"]
    assert run(agent, ws, size) == "2048\n"
    run(agent, ws, "echo x >/dev/shm/writable; test -c /dev/null; test -w /dev/null")
    started = restart(agent, ws, resources=NO_LIMITS)
    assert (started["limits_applied"], started["limits_missing"]) == ([], [])
    assert run(agent, ws, size) == "64000\n", "a limit that was taken out is gone"


@pytest.mark.root
def test_a_limit_of_its_creation_is_taken_away(agent: Agent, make: Make) -> None:
    ws = make(resources=NO_LIMITS | {"shm_bytes": 1 << 20})
    size = "df -k /dev/shm | tail -n 1 | awk '{print $2}'"
    assert run(agent, ws, size) == "1024\n"
    assert restart(agent, ws)["limits_applied"] == ["shm_bytes"], "not given: as it was created"
    restart(agent, ws, resources=NO_LIMITS)
    assert run(agent, ws, size) == "65536\n"


@pytest.mark.root
def test_a_running_one_is_left_as_it_is(agent: Agent, make: Make) -> None:
    ws = make()
    started = agent.call("ctr.start", id=ws).data
    again = agent.call("ctr.start", id=ws, env={"COLOUR": "red"}).data
    assert again == started
    assert variables(agent, ws)[0]["COLOUR"] == "blue"
    restart(agent, ws)
    assert variables(agent, ws)[0]["COLOUR"] == "blue", "what was left for that start is not for this one"


@pytest.mark.root
def test_limits_that_a_running_one_lacks_are_missing(
    agent: Agent, make: Make, run_as: dict[str, int] | None
) -> None:
    """One that somebody started by hand runs as it was created, whatever the workspace says by now."""
    ws = make(run_as=run_as)
    wish = NO_LIMITS | {"shm_bytes": 1 << 20}
    found = agent.call("ctr.start", id=ws, resources=wish).data
    assert (found["limits_applied"], found["limits_missing"]) == ([], ["shm_bytes"])
    usual = agent.call("ctr.start", id=ws, resources=NO_LIMITS | {"shm_bytes": 64 << 20}).data
    assert (usual["limits_applied"], usual["limits_missing"]) == (["shm_bytes"], []), "Podman's own size"
    restart(agent, ws, resources=wish)
    again = agent.call("ctr.start", id=ws, resources=wish).data
    assert (again["limits_applied"], again["limits_missing"]) == (["shm_bytes"], [])


@pytest.mark.root
def test_starts_of_one_workspace_take_turns(agent: Agent, make: Make, user: User) -> None:
    """Each with overrides of its own: the first holds, the others find it running."""
    ws = make(start=False)
    other = user.start_agent()
    askers = [agent, other, agent, other]
    begun = [
        asker.begin("ctr.start", id=ws, env={"COLOUR": str(number)}) for number, asker in enumerate(askers)
    ]
    pids = {pending.answer().data["pid"] for pending in begun}
    assert len(pids) == 1
    assert variables(agent, ws)[0]["COLOUR"] in "0123"
    assert not any(name.startswith(ws) for name in hooks(user))
    other.close()


@pytest.mark.root
def test_what_an_interrupted_start_left_is_harmless(agent: Agent, make: Make, user: User) -> None:
    """It is for one workspace, and its next start writes anew or clears away."""
    ws, other = make(start=False), make(start=False)
    hook = {
        "version": "1.0.0",
        "hook": {"path": "/bin/false"},
        "when": {"annotations": {"^svc[.]workspace$": f"^{ws}$"}},
        "stages": ["precreate"],
    }
    for name, content in ((f"{ws}.json", json.dumps(hook)), (f"{ws}.json.1-a", "{half a fi")):
        user.run("sh", "-c", 'printf %s "$1" >"$2"', "sh", content, f"{user.runtime}/svc/hooks/{name}")
    assert agent.call("ctr.start", id=other).data
    assert agent.call("ctr.start", id=ws).data
    restart(agent, ws, env={"NEW": "1"})
    assert variables(agent, ws)[0]["NEW"] == "1"


@pytest.mark.root
def test_a_hook_that_fails_starts_nothing(agent: Agent, make: Make, directory: Path) -> None:
    ws = make(start=False)
    program = directory / "site" / "svc_helper" / "agent" / "containers" / "hook.py"
    kept = program.read_text()
    broken = kept.replace("def apply(config", "def apply(*_):\n    raise OSError(0)\n\n\ndef _no(config")
    try:
        program.write_text(broken)
        failed = agent.call("ctr.start", id=ws, env={"NEW": "1"})
    finally:
        program.write_text(kept)
    assert failed.code == "failed"
    assert "could not be set" in failed.message["message"]
    assert "OSError(0)" in agent.log.read_text()
    assert agent.call("ctr.inspect", id=ws).data["status"] != "running"
    assert agent.call("ctr.start", id=ws, env={"NEW": "1"}).data
    assert variables(agent, ws)[0]["NEW"] == "1"


@pytest.mark.root
def test_a_hook_that_did_not_run_leaves_nothing_running(agent: Agent, make: Make, user: User) -> None:
    """Podman only warns of a directory of hooks that it cannot find; whoever owns the agent may remove it."""
    ws = make(start=False)
    config = f"{user.runtime}/svc/containers.conf"
    kept = user.run("cat", config).stdout
    others = set(user.processes())  # a Podman that is killed while it works may leave its work half done
    other = user.start_agent()

    def end_its_podman() -> None:
        for pid, line in user.processes().items():
            if pid not in others and "podman system service" in line:
                user.run("kill", str(pid))

    try:
        other.call("ctr.inspect", id=ws)
        away = kept.replace("/svc/hooks", "/svc/nowhere")
        user.run("sh", "-c", 'printf %s "$1" >"$2"', "sh", away, config)
        end_its_podman()
        failed = other.call("ctr.start", id=ws, env={"NEW": "1"})
        assert failed.code == "failed"
        assert other.call("ctr.inspect", id=ws).data["status"] == "stopped"
    finally:
        user.run("sh", "-c", 'printf %s "$1" >"$2"', "sh", kept, config)
        end_its_podman()
        other.close()


@pytest.mark.root
def test_without_its_note_podman_is_asked(agent: Agent, make: Make, user: User) -> None:
    state = Path(user.home, ".local/state/svc/workspaces")
    ws = make(env={"COLOUR": "blue", "PATH": "/opt/bin:/bin"}, resources=NO_LIMITS | {"shm_bytes": 1 << 20})
    assert state.joinpath(ws).stat().st_mode & 0o777 == 0o700
    shutil.rmtree(state / ws)
    for _ in range(2):
        restart(agent, ws, env={"NEW": "1"}, resources=NO_LIMITS)
        seen = variables(agent, ws)[0]
        assert "COLOUR" not in seen
        assert seen["NEW"] == "1"
        assert run(agent, ws, "df -k /dev/shm | tail -n 1 | awk '{print $2}'") == "65536\n"
    restart(agent, ws)
    assert variables(agent, ws)[0]["COLOUR"] == "blue"


@pytest.mark.root
def test_a_start_by_the_users_own_hand_has_no_overrides(agent: Agent, make: Make, user: User) -> None:
    """Its GPUs are leased to somebody else by then."""
    ws = make(start=False)
    agent.call("ctr.start", id=ws, env={"NEW": "1"})
    assert "COLOUR" not in variables(agent, ws)[0]
    assert not any(name.startswith(ws) for name in hooks(user))
    user.podman("stop", "-t", "0", f"svc-{ws}")
    user.podman("start", f"svc-{ws}")
    assert variables(agent, ws)[0]["COLOUR"] == "blue"


@pytest.mark.root
def test_a_start_that_nobody_waits_for_is_never_without_them(agent: Agent, make: Make) -> None:
    """Podman goes on with what it was asked for; what is late finds its overrides gone, and fails."""
    ws = make(start=False)
    for pause in (0, 0.02, 0.04, 0.06, 0.1, 0.2):
        call = agent.begin("ctr.start", id=ws, env={"NEW": "1"})
        time.sleep(pause)
        with suppress(BrokenPipeError, ConnectionResetError):  # it was quicker than the pause
            call.cancel()
            call.answer()
        time.sleep(0.3)
        if agent.call("ctr.inspect", id=ws).data["status"] == "running":
            assert variables(agent, ws)[0]["NEW"] == "1"
        agent.call("ctr.stop", id=ws, grace_s=0)
    assert agent.call("ctr.start", id=ws).data
    assert variables(agent, ws)[0]["COLOUR"] == "blue"


@pytest.mark.root
def test_a_start_whose_overrides_were_revoked_fails(agent: Agent, make: Make, user: User) -> None:
    ws = make(start=False)
    spy = f"{user.runtime}/svc/hooks/{ws}"
    script = f"until test -e {spy}.json; do :; done; rm {spy}.overrides"
    for _ in range(20):  # whoever is first
        rival = threading.Thread(target=user.run, args=("sh", "-c", script), kwargs={"check": False})
        rival.start()
        answer = agent.call("ctr.start", id=ws, env={"NEW": "1"})
        user.run("sh", "-c", f"touch {spy}.json {spy}.overrides")
        rival.join()
        if answer.message["ok"]:
            assert variables(agent, ws)[0]["NEW"] == "1"
            agent.call("ctr.stop", id=ws, grace_s=0)
            continue
        assert answer.code == "failed"
        assert agent.call("ctr.inspect", id=ws).data["status"] != "running"
        return


@pytest.mark.root
def test_a_stop_withdraws_what_a_start_has_not_had_yet(agent: Agent, make: Make, user: User) -> None:
    """Of an agent that died while Podman was at it."""
    ws = make()
    user.run("touch", *(f"{user.runtime}/svc/hooks/{ws}{end}" for end in (".json", ".overrides")))
    agent.call("ctr.stop", id=ws, grace_s=0)
    assert not any(name.startswith(ws) for name in hooks(user))


@pytest.mark.root
def test_removal_takes_the_state_away(agent: Agent, make: Make, user: User) -> None:
    state = Path(user.home, ".local/state/svc/workspaces")
    ws = make(start=False)
    agent.call("ctr.start", id=ws, env={"NEW": "1"})
    user.run("touch", *(f"{user.runtime}/svc/hooks/{ws}{end}" for end in (".json", ".overrides")))
    assert agent.call("ctr.remove", id=ws).data == {}
    assert not state.joinpath(ws).exists()
    assert not any(name.startswith(ws) for name in hooks(user))


@pytest.mark.root
def test_what_cannot_be_started(agent: Agent, make: Make) -> None:
    assert agent.call("ctr.start", id="ws-00000000", env={"A": "1"}).code == "not_found"
    ws = make(start=False)
    assert agent.call("ctr.start", id=ws, devices=["nvidia.com/gpu=all"]).code == "protocol"
    absent = agent.call("ctr.start", id=ws, devices=["nvidia.com/gpu=77"])
    assert (absent.code, absent.message["message"]) == (
        "conflict",
        "this host has no CDI device nvidia.com/gpu=77",
    )


# --- what differs, where limits are enforced --------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """An account whose cgroups have controllers."""
    yield cast(Home, SimpleNamespace(own=str(tmp_path), home=str(tmp_path), controllers=ALL))


def prepared(home: Home, created: Created, **args: Any) -> dict[str, Any]:
    """The overrides that a start leaves."""
    value = {"id": "ws-00000000", "env": None, "resources": None, "devices": None} | args
    created_data = overrides.prepare(home, created, value, NO_EDITS)
    path = Path(home.own, "hooks", "ws-00000000.overrides")
    assert path.exists() == bool(created_data.token)
    return json.loads(path.read_text()) if created_data.token else {}


def test_limits_that_differ(home: Home) -> None:
    wish = NO_LIMITS | {"memory_bytes": 1 << 30, "pids_limit": 100}
    created = Created({}, {}, wish, {"memory_bytes": 1 << 30, "pids_limit": 100})
    assert prepared(home, created) == {}
    assert prepared(home, created, resources=wish) == {}
    more = prepared(home, created, resources=wish | {"cpu_limit": 500, "pids_limit": 200})
    assert more["limits"] == {"cpu": {"period": 100_000, "quota": 50_000}, "pids": {"limit": 200}}
    gone = prepared(home, created, resources=NO_LIMITS)
    assert gone["limits"] == {"memory": None, "pids": {"limit": 2048}}, "Podman's own default comes back"
    assert "shm_bytes" not in gone


def test_controllers_that_came_and_went(home: Home) -> None:
    wish = NO_LIMITS | {"memory_bytes": 1 << 30}
    came = Created({}, {}, wish, {})
    assert prepared(home, came)["limits"] == {"memory": {"limit": 1 << 30, "swap": 1 << 30}}
    home.controllers = frozenset()
    went = Created({}, {}, wish, {"memory_bytes": 1 << 30})
    assert prepared(home, went)["limits"] == {"memory": None}
    assert prepared(home, came) == {}


def test_the_environment_that_differs(home: Home) -> None:
    created = Created({"A": "1", "LANG": "x"}, {"LANG": "C"}, {}, {})
    assert prepared(home, created, env={"A": "1", "LANG": "x"}) == {}
    created_data = prepared(home, created, env={"A": "2"})
    assert (created_data["without"], created_data["env"]) == (["LANG"], {"LANG": "C", "A": "2"})
    bare = Created({"PATH": "/x"}, {}, {}, {})
    assert prepared(home, bare, env={})["env"]["PATH"].startswith("/usr/local/sbin:")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "\x00",
        '{"env": 1, "hidden": {}, "resources": {}, "limits": {}}',
        '{"env": {"A": 1}, "hidden": {}, "resources": {}, "limits": {}}',
        '{"env": {}, "hidden": {}, "resources": {"cpu_limit": "1"}, "limits": {}}',
        '{"env": {}, "hidden": {}, "resources": {}, "limits": [1]}',
    ],
)
def test_a_note_that_is_none(home: Home, content: str) -> None:
    created = Created({"A": "1"}, {}, NO_LIMITS, None)
    overrides.note(home, "ws-00000000", created)
    assert overrides.recall(home, "ws-00000000") == created
    path = Path(home.home, ".local/state/svc/workspaces/ws-00000000/created.json")
    path.write_text(content)
    assert overrides.recall(home, "ws-00000000") is None
    path.unlink()
    os.mkfifo(path)
    assert overrides.recall(home, "ws-00000000") is None, "and nothing waits for it"


def test_the_limits_of_one_that_runs() -> None:
    wish = {"cpu_limit": 500, "memory_bytes": 1 << 30, "pids_limit": 10, "shm_bytes": 1 << 20}
    prepared = Prepared("", wish, [])
    mount = {"destination": "/dev/shm", "type": "tmpfs", "options": ["nosuid", f"size={1 << 20}"]}
    config: dict[str, Any] = {"linux": {"resources": spec.oci_limits(wish)}, "mounts": [mount]}
    same = overrides.found_running(prepared, overrides.UNKNOWN, config)
    assert (list(same.limits), same.missing) == (list(wish), [])
    config["linux"]["resources"]["memory"]["limit"] = 1 << 40
    config["linux"]["resources"]["cpu"] = None
    mount["type"] = "bind"
    other = overrides.found_running(prepared, overrides.UNKNOWN, config)
    assert (list(other.limits), other.missing) == (["pids_limit"], ["cpu_limit", "memory_bytes", "shm_bytes"])
    hostile: Any
    for hostile in (
        {},
        {"linux": 1, "mounts": 1},
        {"linux": {"resources": []}, "mounts": [1, mount | {"options": [5]}]},
    ):
        assert overrides.found_running(prepared, overrides.UNKNOWN, hostile).limits == {}
