"""GPUs on a host of four fake ones: leased, seen inside, avoided, shared, lost, raced for with crashes."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from depths import rounds
from e2e.fake_gpus import UUIDS, Gpus, Observer, held, installed
from e2e.installation import Call, Outcome, Process, Service, processes_of, run
from e2e.surroundings import in_database, must, podman, template_of
from waiting import until

ROUNDS = rounds(5, 25, 100)
USERS = ("tse-alice", "tse-bob")
# What a start may be refused with while others hold the GPUs or somebody kills svc.
EXPECTED = {
    "gpu_unavailable", "engine_unavailable", "engine_timeout", "engine_failed", "operation_in_progress",
    "maintenance", "unreachable", "bad_answer", "internal_error",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def gpus(service: Service) -> Iterator[Gpus]:
    """The host has four GPUs for as long as these tests run."""
    with installed(service, USERS) as four:
        yield four


@pytest.fixture(autouse=True)
def all_there(gpus: Gpus) -> None:
    """Each test finds all of them, and none in use."""
    assert len(gpus.fakes) == 4
    for number in range(4):
        gpus.used(number)


@pytest.fixture(scope="module")
def templates(service: Service, registry: str) -> None:
    """A template `gpus` of either user, whose GPUs may be shared."""
    for user in USERS:
        template_of(user, registry, service.env, "gpus", gpu={"allow_shared": True})


Make = Callable[..., str]


@pytest.fixture
def make(svc: Call, templates: None) -> Iterator[Make]:
    """make(user, gpu_count, *options) -> the name of a new workspace, which is taken away afterwards."""
    created: list[tuple[str, str]] = []

    def create(user: str, count: int, *options: str) -> str:
        name = f"g{len(created)}-{os.urandom(3).hex()}"
        requested = ("--template", "gpus", "--name", name, "--gpu-count", str(count), *options)
        must(svc(user, "ws", "setup", *requested))
        created.append((user, name))
        return name

    yield create
    for user, name in created:
        must(svc(user, "ws", "stop", name))
        must(svc(user, "ws", "delete", name, "--yes"))


def record(svc: Call, user: str, name: str) -> dict[str, Any]:
    return dict(must(svc(user, "api", "GET", f"/api/workspaces/{name}")).json())


def numbers(svc: Call, user: str, name: str) -> list[int]:
    """The numbers of the GPUs that a workspace holds."""
    return sorted(UUIDS.index(gpu["uuid"]) for gpu in record(svc, user, name)["gpus"])


def refusal(outcome: Outcome) -> dict[str, Any]:
    """The error of an API call that was refused."""
    assert outcome.code == 1, outcome.out
    return dict(outcome.json()["error"])


def begin(svc: Call, user: str, name: str) -> Outcome:
    return svc(user, "api", "POST", f"/api/workspaces/{name}/start", "--body", "{}")


SEES = "ls /dev | grep '^nvidia'; env | grep -E '^(FAKE_GPU|NVIDIA)' | sort"


def test_a_container_sees_its_own_gpus_and_no_other(svc: Call, make: Make) -> None:
    mine, other = make("tse-alice", 1), make("tse-bob", 2)
    must(svc("tse-alice", "ws", "start", mine))
    must(svc("tse-bob", "ws", "start", other))
    assert (numbers(svc, "tse-alice", mine), numbers(svc, "tse-bob", other)) == ([0], [1, 2])
    assert record(svc, "tse-alice", mine)["health"] == "ok"
    seen = must(svc("tse-alice", "ws", "exec", mine, "--", "sh", "-c", SEES)).out.split()
    assert seen == ["nvidia0", "FAKE_GPU_0=1", "NVIDIA_VISIBLE_DEVICES=void"]
    seen = must(svc("tse-bob", "ws", "exec", other, "--", "sh", "-c", SEES)).out.split()
    assert seen == ["nvidia1", "nvidia2", "FAKE_GPU_1=1", "FAKE_GPU_2=1", "NVIDIA_VISIBLE_DEVICES=void"]
    assert sorted(one.gpu for one in held()) == [0, 1, 2]


def test_a_stop_releases_and_the_next_start_takes_what_is_free(
    svc: Call, make: Make, service: Service
) -> None:
    mine, other = make("tse-alice", 3), make("tse-bob", 2)
    must(svc("tse-alice", "ws", "start", mine))
    refused = refusal(begin(svc, "tse-bob", other))
    assert (refused["code"], refused["retryable"]) == ("gpu_unavailable", True)
    assert (refused["details"]["requested"], refused["details"]["free"]) == (2, 1)
    assert {row["owner"] for row in refused["details"]["holders"]} == {"tse-alice"}
    assert record(svc, "tse-bob", other)["status"] == "stopped"
    must(svc("tse-alice", "ws", "stop", mine))
    assert in_database(service.env, "SELECT * FROM gpu_leases") == []
    must(svc("tse-bob", "ws", "start", other))
    assert numbers(svc, "tse-bob", other) == [0, 1]
    must(svc("tse-bob", "ws", "stop", other))
    must(svc("tse-alice", "ws", "start", mine))
    assert numbers(svc, "tse-alice", mine) == [0, 1, 2]


def test_a_restore_leaves_gpus_with_what_runs_on_them(
    svc: Call, make: Make, service: Service, tmp_path: Path
) -> None:
    """ "releases leases", but not of what holds its devices still: nobody gets them a second time."""
    sets = tmp_path / "sets"
    sets.mkdir(mode=0o700)
    tmp_path.chmod(0o700)
    env = service.env | {"SVC_RECOVERY_DIR": str(sets)}
    runs, ended, other = make("tse-alice", 2), make("tse-alice", 1), make("tse-bob", 3)
    for name in (runs, ended):
        must(svc("tse-alice", "ws", "start", name))
    must(run("root", "admin", "backup", "--out", f"{tmp_path}/x.db", env=env))
    with service.stopped():
        must(podman("tse-alice", "stop", "-t", "0", f"svc-{record_id(service, ended)}"))
        must(run("root", "admin", "restore", f"{tmp_path}/x.db", "--yes", env=env))
    until(lambda: record(svc, "tse-alice", runs)["status"] == "running")
    until(lambda: record(svc, "tse-alice", ended)["status"] == "stopped")
    assert numbers(svc, "tse-alice", runs) == [0, 1]
    # The reconciler's first look at it may be under way.
    until(lambda: refusal(begin(svc, "tse-bob", other))["code"] != "operation_in_progress")
    refused = refusal(begin(svc, "tse-bob", other))
    assert (refused["code"], refused["details"]["free"]) == ("gpu_unavailable", 2)


def record_id(service: Service, name: str) -> str:
    (row,) = in_database(service.env, f"SELECT id FROM workspaces WHERE name = '{name}'")
    return str(row[0])


def test_use_outside_svc_is_avoided_and_ones_own_is_not(svc: Call, make: Make, gpus: Gpus) -> None:
    mine = make("tse-alice", 1)
    gpus.used(0, os.getpid())
    until(lambda: not svc("root", "api", "GET", "/api/health").code)
    must(svc("tse-alice", "ws", "start", mine))
    assert numbers(svc, "tse-alice", mine) == [1]
    container = f"svc-{record(svc, 'tse-alice', mine)['id']}"
    gpus.used(1, int(must(podman("tse-alice", "inspect", "-f", "{{.State.Pid}}", container)).out))
    other = make("tse-bob", 3)
    refused = refusal(begin(svc, "tse-bob", other))
    holders = {
        (UUIDS.index(row["gpu"]), row["owner"], row["outside"]) for row in refused["details"]["holders"]
    }
    assert holders == {(0, "root", True), (1, "tse-alice", False)}


def test_sharing_is_said(svc: Call, make: Make) -> None:
    names = [(user, make(user, 3, "--gpu-mode", "shared")) for user in USERS]
    for user, name in names:
        must(svc(user, "ws", "start", name))
    printed = [record(svc, user, name)["gpus"] for user, name in names]
    assert all(gpu["mode"] == "shared" for gpus in printed for gpu in gpus)
    assert len({gpu["uuid"] for gpus in printed for gpu in gpus}) == 4, "the emptiest come first"
    alone = make("tse-alice", 1)
    assert refusal(begin(svc, "tse-alice", alone))["code"] == "gpu_unavailable"


def test_a_lost_gpu_is_said_and_one_that_is_back_too(svc: Call, make: Make, gpus: Gpus) -> None:
    mine = make("tse-alice", 2)
    must(svc("tse-alice", "ws", "start", mine))
    lost = gpus.fakes.pop(0)
    gpus.write()
    try:
        until(lambda: record(svc, "tse-alice", mine)["health"] == "gpu_lost", 40, 0.5)
        assert record(svc, "tse-alice", mine)["status"] == "running", "the workspace itself goes on"
    finally:
        gpus.fakes = {0: lost} | gpus.fakes
        gpus.write()
    until(lambda: record(svc, "tse-alice", mine)["health"] == "ok", 40, 0.5)


def test_no_edit_loses_what_was_installed(svc: Call, make: Make) -> None:
    mine = make("tse-alice", 0, "--env", "BEFORE=1")
    must(svc("tse-alice", "ws", "start", mine))
    must(svc("tse-alice", "ws", "exec", mine, "--", "sh", "-c", "echo mine >/installed"))
    must(svc("tse-alice", "ws", "stop", mine))
    patch = {"env": [{"name": "AFTER", "value": "2"}], "resources": {"shm_bytes": 1 << 20, "gpu_count": 1}}
    must(svc("tse-alice", "ws", "edit", mine, "--file", "-", stdin=json.dumps(patch)))
    must(svc("tse-alice", "ws", "start", mine))
    shm = "df -k /dev/shm | tail -n 1 | awk '{print $2}'"
    inspect = "cat /installed; echo ${BEFORE-gone} $AFTER; " + f"{shm}; {SEES}"
    seen = must(svc("tse-alice", "ws", "exec", mine, "--", "sh", "-c", inspect)).out.split()
    assert seen[:4] == ["mine", "gone", "2", "1024"]
    assert seen[4:] == ["nvidia0", "FAKE_GPU_0=1", "NVIDIA_VISIBLE_DEVICES=void"]


def test_a_start_by_the_users_own_hand_has_no_gpu(svc: Call, make: Make, service: Service) -> None:
    mine = make("tse-alice", 1)
    must(svc("tse-alice", "ws", "start", mine))
    must(svc("tse-alice", "ws", "stop", mine))
    container = f"svc-{record(svc, 'tse-alice', mine)['id']}"
    must(podman("tse-alice", "start", container))
    until(lambda: record(svc, "tse-alice", mine)["status"] == "running" or _inspect(svc, mine), 40, 0.5)
    assert held() == []
    assert record(svc, "tse-alice", mine)["gpus"] == []


def _inspect(svc: Call, name: str) -> bool:
    """An exec finds that it runs; the next look at its row says so too."""
    svc("tse-alice", "ws", "exec", name, "--", "true")
    return False


# --- the race ---------------------------------------------------------------------------------


def victims(service: Service, kind: str) -> list[Process]:
    """The processes that a crash of this kind ends."""
    if kind == "agents":
        return [one for user in USERS for one in processes_of(user) if "svc_helper.agent" in one.args]
    members = [one for one in service.members() if one.pid != service.pid]
    helper = [one for one in members if "svc_helper" in one.args]
    if kind == "helper":
        return helper
    app = [one for one in members if one not in helper]
    return [one for one in app if one.status["Name"] == "svc-worker"] if kind == "worker" else app


def crash(service: Service, kind: str, after_s: float) -> None:
    """kill -9 of them, all at once, a moment after the starts were sent."""
    threading.Event().wait(after_s)
    for one in victims(service, kind) if kind else []:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.pid, signal.SIGKILL)


def steady(service: Service, names: list[str]) -> bool:
    """None of these workspaces is in a transition."""
    marks = ", ".join("?" * len(names))
    rows = in_database(service.env, f"SELECT status FROM workspaces WHERE name IN ({marks})", *names)
    return all(row[0] in ("running", "stopped", "failed") for row in rows)


def stopped(service: Service, svc: Call, user: str, name: str) -> bool:
    svc(user, "ws", "stop", name)
    rows = in_database(service.env, "SELECT status FROM workspaces WHERE name = ?", name)
    return rows == [["stopped"]]


def race(
    service: Service, svc: Call, places: list[tuple[str, str]], kind: str, dice: random.Random
) -> list[str]:
    """Start them all at once with a crash among it; how each ended, after everything has settled."""
    ended: list[str] = []

    def start(place: tuple[str, str]) -> None:
        result = begin(svc, *place)
        ended.append("started" if result.code == 0 else refused_with(result))

    racers = [threading.Thread(target=start, args=(place,)) for place in dice.sample(places, len(places))]
    racers.append(threading.Thread(target=crash, args=(service, kind, dice.uniform(0.05, 0.8))))
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(120)
    until(service.answers, 30, 0.2)
    until(lambda: steady(service, [name for _, name in places]), 150, 0.3)
    return ended


@pytest.mark.timeout(120 + 30 * ROUNDS)
def test_two_users_race_with_crashes_between(svc: Call, make: Make, service: Service) -> None:
    """At no moment has one GPU two exclusive holders, and no lease is left behind."""
    dice = random.Random(5)
    places = [(user, make(user, count)) for user in USERS for count in (2, 3)]
    observer = Observer(service)
    ended: Counter[str] = Counter()
    try:
        for number in range(ROUNDS):
            kind = ("", "app", "helper", "worker", "agents")[number % 5]
            ended.update(race(service, svc, places, kind, dice))
            with ThreadPoolExecutor(len(places)) as pool:
                ends = [
                    pool.submit(until, partial(stopped, service, svc, *place), 60, 0.3) for place in places
                ]
            for end in ends:
                end.result()
            left = in_database(service.env, "SELECT * FROM gpu_leases")
            assert left == [], f"round {number} ({kind or 'no crash'})"
    finally:
        seen = observer.end()
        print(f"{ROUNDS} rounds: {dict(ended)}; {seen}")
    assert (seen["doubles"], seen["lease_doubles"]) == ([], [])
    assert min(seen["looks"], seen["lease_looks"]) > ROUNDS
    assert min(seen["most"], seen["most_leases"]) >= 2, "there was something to see"
    assert ended["started"] >= ROUNDS // 2
    assert set(ended) - {"started"} <= EXPECTED
    until(lambda: held() == [], 10)


def refused_with(outcome: Outcome) -> str:
    """The code of a refusal, in whatever form it came."""
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return str(outcome.json()["error"]["code"])
    return "unreachable"
