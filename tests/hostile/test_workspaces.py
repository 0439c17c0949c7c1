"""Workspaces asked for what none can be, and by many at once: one effect, and the row tells the truth."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from e2e.installation import Call, Service, processes, processes_of
from e2e.surroundings import in_database, must, podman
from hostile.attackers.raw import Answer, ask, connect, request
from waiting import until

USER = "tsz-mallory"
FIFTY = 50

Post = Callable[..., Answer]


@pytest.fixture
def api(service: Service) -> Callable[..., Answer]:
    """api(method, path, body) -> Answer, as mallory on the host socket."""

    def call(method: str, path: str, body: object = None, user: str = USER) -> Answer:
        data = b"" if body is None else json.dumps(body).encode()
        return ask(connect(service.env["SVC_SOCKET"], user), request(method, f"/api{path}", data))

    return call


@pytest.fixture
def created(mallorys: str, mallory: Call, api: Callable[..., Answer]) -> Iterator[Callable[..., str]]:
    """made(name, **spec) -> a new workspace of mallory's; gone afterwards."""
    names: list[str] = []

    def make(name: str, **spec: Any) -> str:
        answer = api("POST", "/workspaces", {"name": name, "template": "base"} | spec)
        assert answer.status == 201, answer.body
        names.append(name)
        return name

    yield make
    for name in names:
        until(
            lambda name=name: (
                mallory("ws", "stop", name).code == 0 or api("GET", f"/workspaces/{name}").status == 404
            ),
            30,
            0.3,
        )
        mallory("ws", "delete", name, "--yes")


def at_once(calls: list[Callable[[], Answer]]) -> list[Answer]:
    """All of them, at the same moment."""
    ready = threading.Barrier(len(calls))
    answers: list[Answer] = []

    def one(call: Callable[[], Answer]) -> None:
        ready.wait(30)
        answers.append(call())

    threads = [threading.Thread(target=one, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(answers) == len(calls)
    assert not [answer for answer in answers if answer.status in (0, 500)], answers
    return answers


def said(answers: list[Answer]) -> Counter[str]:
    """How often each status, with its code."""
    return Counter(f"{answer.status} {answer.code}".strip() for answer in answers)


def inits() -> list[int]:
    """The first processes of mallory's running containers."""
    return [one.pid for one in processes_of(USER) if one.args == "sleep infinity"]


# --- 36: names -------------------------------------------------------------------------------

NAMES = [
    "", "-", "-x", "--privileged", "--help", "a b", "a\nb", "a\0b", "a'b", 'a"b', "$(id)", "`id`", "a;id",
    "a|b", "../x", "a/b", ".", "..", "%2e", "é", "🦊", "A", "a_b", "x" * 64, "x" * 10_000, "a-", "\ud800",
    None, 7, True, ["a"], {"a": 1}, "capacity", "recommend", "setup",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=lambda name: ascii(name)[:24])
def test_a_name_that_is_none(api: Callable[..., Answer], mallorys: str, name: object) -> None:
    answer = api("POST", "/workspaces", {"name": name, "template": "base"})
    assert answer.status in (400, 422), answer
    assert api("PATCH", f"/workspaces/{mallorys}", {"name": name}).status in (400, 422)


def test_a_name_twice(created: Callable[..., str], api: Callable[..., Answer], mallorys: str) -> None:
    name = created("twin")
    answer = api("POST", "/workspaces", {"name": name, "template": "base"})
    assert (answer.status, answer.code) == (409, "name_taken")
    assert api("PATCH", f"/workspaces/{name}", {"name": mallorys}).code == "name_taken"


def test_a_display_name_is_only_shown(created: Callable[..., str], api: Callable[..., Answer]) -> None:
    arguments = "'; rm -rf / #\" $(id) `id` --privileged 🦊 <script>alert(1)</script>"
    name = created("shown", display_name=arguments)
    assert json.loads(api("GET", f"/workspaces/{name}").body)["display_name"] == arguments
    assert api("POST", f"/workspaces/{name}/start", {}).status == 200
    assert not [one.args for one in processes() if "rm -rf / #" in one.args]


# --- 38, 39: exec ----------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", ["0", "-1", "601", "nan", "1.5", "1e2", "", "5s", "+5", "٣"])
def test_a_timeout_that_is_none_is_wrong_usage(mallory: Call, mallorys: str, timeout: str) -> None:
    assert mallory("ws", "exec", mallorys, f"--timeout={timeout}", "--", "true").code == 2


def test_hundreds_of_thousands_of_arguments(api: Callable[..., Answer], mallorys: str) -> None:
    """As many as Linux passes to a program, and no more."""
    path = f"/workspaces/{mallorys}/exec"
    answer = api("POST", path, {"command": ["true", *["x"] * 100_000]})
    assert (answer.status, json.loads(answer.body)["exit_code"]) == (200, 0)
    answer = api("POST", path, {"command": ["x"] * 300_000})
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert api("POST", path, {"command": ["xy" * 8] * 300_000}).status == 413


def test_only_the_owner_runs_commands_and_only_in_a_running_one(
    service: Service, created: Callable[..., str], api: Callable[..., Answer]
) -> None:
    name = created("still")
    workspace = json.loads(api("GET", f"/workspaces/{name}").body)["id"]
    stopped = api("POST", f"/workspaces/{name}/exec", {"command": ["true"]})
    assert (stopped.status, stopped.code) == (409, "workspace_not_running")
    for ref in (name, workspace):
        other = api("POST", f"/workspaces/{ref}/exec", {"command": ["true"]}, user="tsz-alice")
        assert (other.status, other.code) == (404, "not_found")
    root = api("POST", f"/workspaces/{workspace}/exec", {"command": ["true"]}, user="root")
    assert (root.status, root.code) == (403, "owner_only")


# --- 41: an edit and a start -----------------------------------------------------------------


def test_an_edit_that_races_a_start(
    created: Callable[..., str], mallory: Call, api: Callable[..., Answer]
) -> None:
    """ "a stopped workspace only": what runs is what the row says, whoever was first."""
    name = created("racer")
    outcomes: Counter[str] = Counter()
    for number in range(20):
        body = {"env": [{"name": "ROUND", "value": str(number)}]}
        edited, started = None, None

        def edit(body: object = body) -> Answer:
            nonlocal edited
            edited = api("PATCH", f"/workspaces/{name}", body)
            return edited

        def start() -> Answer:
            nonlocal started
            started = api("POST", f"/workspaces/{name}/start", {})
            return started

        at_once([edit, start] if number % 2 else [start, edit])
        assert edited is not None and started is not None
        outcomes[f"edit {edited.status} start {started.status}"] += 1
        assert edited.status == 200 or edited.code in ("workspace_not_stopped", "operation_in_progress"), (
            edited
        )
        assert started.status == 200, started
        env = {one["name"]: one["value"] for one in json.loads(api("GET", f"/workspaces/{name}").body)["env"]}
        inside = mallory("ws", "exec", name, "--", "sh", "-c", "echo ${ROUND:-none}").out.strip()
        assert inside == env.get("ROUND", "none"), outcomes
        running = api("PATCH", f"/workspaces/{name}", body)
        assert (running.status, running.code) == (409, "workspace_not_stopped")
        must(mallory("ws", "stop", name))


# --- 42: fifty at once -----------------------------------------------------------------------


def test_fifty_creates_of_one_name_make_one(
    service: Service, mallory: Call, mallorys: str, api: Callable[..., Answer]
) -> None:
    before = len(containers())
    body = {"name": "once", "template": "base"}
    answers = at_once([lambda: api("POST", "/workspaces", body)] * FIFTY)
    try:
        counted = said(answers)
        assert counted["201"] == 1, counted
        assert set(counted) == {"201", "409 name_taken"}, counted
        assert in_database(service.env, "SELECT count(*) FROM workspaces WHERE name = 'once'") == [[1]]
        assert len(containers()) == before + 1
    finally:
        must(mallory("ws", "delete", "once", "--yes"))
    assert len(containers()) == before


def containers() -> list[str]:
    """Mallory's containers, by Podman's own word."""
    return must(podman(USER, "ps", "--all", "--quiet")).out.split()


def test_fifty_starts_are_one_start(
    service: Service, created: Callable[..., str], mallory: Call, api: Callable[..., Answer]
) -> None:
    name = created("eager")
    before = len(inits())
    answers = at_once([lambda: api("POST", f"/workspaces/{name}/start", {})] * FIFTY)
    counted = said(answers)
    assert counted["200"] >= 1, counted
    assert set(counted) <= {"200", "409 operation_in_progress"}, counted
    assert len(inits()) == before + 1
    assert json.loads(api("GET", f"/workspaces/{name}").body)["status"] == "running"
    first = inits()
    assert api("POST", f"/workspaces/{name}/start", {}).status == 200
    assert inits() == first, "of a running one it changes nothing"


def test_fifty_deletes_are_one_delete(
    service: Service, mallory: Call, mallorys: str, api: Callable[..., Answer]
) -> None:
    must(mallory("ws", "create", "--template", "base", "--name", "doomed"))
    before = len(containers())
    answers = at_once([lambda: api("DELETE", "/workspaces/doomed")] * FIFTY)
    counted = said(answers)
    assert counted["204"] == 1, counted
    assert set(counted) <= {"204", "404 not_found", "409 operation_in_progress"}, counted
    assert len(containers()) == before - 1
    assert api("GET", "/workspaces/doomed").status == 404


def test_everything_at_once_ends_in_the_truth(
    service: Service, created: Callable[..., str], mallory: Call, api: Callable[..., Answer]
) -> None:
    """Start, stop, edit and delete of one, a dozen of each: at the end row and Podman say the same."""
    name = created("torn")
    must(mallory("ws", "start", name))
    before = len(inits())
    path = f"/workspaces/{name}"
    each = [
        lambda: api("POST", f"{path}/start", {}),
        lambda: api("POST", f"{path}/stop", {"grace_s": 0}),
        lambda: api("PATCH", path, {"display_name": "torn"}),
        lambda: api("DELETE", path),
    ]
    at_once([each[number % 4] for number in range(48)])

    def resolved() -> bool:
        row = api("GET", path)
        if row.status == 404:
            return len(inits()) == before - 1
        status = json.loads(row.body)["status"]
        return (status, len(inits())) in (
            ("running", before),
            ("stopped", before - 1),
            ("failed", before - 1),
        )

    until(resolved, 30, 0.3)


# --- 43, 54: ports and GPUs ------------------------------------------------------------------


@pytest.mark.parametrize("port", [0, 65536, -1, 10**30, 80.5, "80", True, [80]])
def test_a_port_that_is_none(api: Callable[..., Answer], mallorys: str, port: object) -> None:
    answer = api("POST", f"/workspaces/{mallorys}/ports", {"name": "web", "container_port": port})
    assert (answer.status, answer.code) == (422, "validation_failed")
    ports = [{"name": "web", "container_port": port}]
    answer = api("POST", "/workspaces", {"name": "ported", "template": "base", "ports": ports})
    assert (answer.status, answer.code) == (422, "validation_failed")


def test_nobody_chooses_a_port_of_the_host(
    service: Service, api: Callable[..., Answer], mallorys: str
) -> None:
    for host_port in (22, int(service.env["SVC_PORT"]), 0):
        body = {"name": "web", "container_port": 80, "host_port": host_port}
        assert api("POST", f"/workspaces/{mallorys}/ports", body).status == 422


def test_ports_of_somebody_else_are_not_there(api: Callable[..., Answer], alices: str, mallorys: str) -> None:
    alice = json.loads(api("GET", f"/workspaces/{alices}", user="tsz-alice").body)["id"]
    for method, path, body in (
        ("GET", f"/workspaces/{alice}/ports", None),
        ("POST", f"/workspaces/{alice}/ports", {"name": "web", "container_port": 80}),
        ("DELETE", f"/workspaces/{alice}/ports/web", None),
    ):
        assert api(method, path, body).status == 404, path


@pytest.mark.parametrize("count", [-1, 65, 999, 10**30, 1.5, "1", True, [0], {"index": 0}])
def test_gpus_that_cannot_be(api: Callable[..., Answer], mallorys: str, count: object) -> None:
    body = {"name": "gpus", "template": "base", "resources": {"gpu_count": count}}
    answer = api("POST", "/workspaces", body)
    assert (answer.status, answer.code) == (422, "validation_failed")


def test_gpus_are_asked_for_by_number_never_by_index(api: Callable[..., Answer], mallorys: str) -> None:
    for key in ("gpus", "gpu", "gpu_index", "devices"):
        body = {"name": "gpus", "template": "base", "resources": {key: [999]}}
        assert api("POST", "/workspaces", body).status == 422
        assert (
            api(
                "POST", "/workspaces", {"name": "gpus", "template": "base", key: ["nvidia.com/gpu=all"]}
            ).status
            == 422
        )
        assert api("POST", f"/workspaces/{mallorys}/start", {key: ["nvidia.com/gpu=all"]}).status == 422


def test_more_gpus_than_there_are(created: Callable[..., str], api: Callable[..., Answer]) -> None:
    """This host has none to lease, whatever anybody asks for; nothing of the start stays."""
    name = created("greedy", resources={"gpu_count": 1})
    answer = api("POST", f"/workspaces/{name}/start", {})
    assert answer.status == 409, answer
    assert answer.code in ("gpu_unavailable", "quota_exceeded")
    record = json.loads(api("GET", f"/workspaces/{name}").body)
    assert (record["status"], record["gpus"]) == ("stopped", [])
