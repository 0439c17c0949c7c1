"""Operations watched and joined by real clients; what a pull will load; one image that goes."""

from __future__ import annotations

import itertools
import os
import pwd
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e import operations
from e2e.installation import SVC, Call, Service, run
from e2e.registries import REPOSITORY, Gate, Shelf
from e2e.surroundings import must, new_template, podman
from waiting import until

MIB = 1 << 20
BIG = 6 * MIB
NUMBERS = itertools.count(1)
USER = "tse-kim"


@pytest.fixture(scope="module", autouse=True)
def allowed(policy: list[str], fetchers: None) -> None:
    """All the registries that the tests name."""


@pytest.fixture
def template(service: Service) -> Iterator[Callable[[str], str]]:
    """template(reference) -> the name of a new template of tse-kim's."""
    created: list[str] = []

    def create(reference: str) -> str:
        name = f"operation-{next(NUMBERS)}"
        new_template(USER, service.env, name, {"type": "registry", "image_ref": reference})
        created.append(name)
        return name

    yield create
    for name in created:
        run(USER, "api", "DELETE", f"/api/templates/{name}/image", env=service.env)
        run(USER, "template", "delete", name, "--yes", env=service.env)


@pytest.fixture
def big(shelf: Shelf, gate: Gate, template: Callable[[str], str]) -> str:
    """A template of a new image behind the gate, with a layer of some megabytes."""
    tag = f"operation-{next(NUMBERS)}"
    shelf.put(tag, {"big": os.urandom(BIG)})
    return template(f"{gate.address}/{REPOSITORY}:{tag}")


class Client:
    """One `svc` command of tse-kim's, under way."""

    def __init__(self, env: dict[str, str], out: Path, *arguments: str) -> None:
        account = pwd.getpwnam(USER)
        self.path = out
        with open(out, "wb") as file, open(f"{out}.err", "wb") as errors:
            self.process = subprocess.Popen(
                [SVC, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=errors,
                cwd="/",
                env=env | {"HOME": account.pw_dir, "USER": USER},
                user=account.pw_uid,
                group=account.pw_gid,
                extra_groups=[],
            )

    def err(self) -> str:
        """What it has said on standard error."""
        return Path(f"{self.path}.err").read_text()

    def code(self) -> int:
        """Its exit code, once it has ended."""
        return self.process.wait(60)


@pytest.fixture
def client(service: Service, tmp_path: Path) -> Iterator[Callable[..., Client]]:
    """client(*argv) -> Client."""
    begun: list[Client] = []

    def begin(*arguments: str) -> Client:
        begun.append(Client(service.env, tmp_path / str(len(begun)), *arguments))
        return begun[-1]

    yield begin
    for one in begun:
        if one.process.poll() is None:
            one.process.kill()
        one.process.wait(20)


def test_a_wait_is_left_and_joined_again(
    kim: Call, lou: Call, gate: Gate, big: str, client: Callable[..., Client]
) -> None:
    """Ctrl-C leaves the pull running; `watch`, `pull --wait` and another `pull --wait` see the same end."""
    gate.hold_after(BIG // 2)
    first = client("image", "pull", big, "--wait")
    until(lambda: "pulling" in first.err(), 30)
    first.process.send_signal(signal.SIGINT)
    assert first.code() == 130
    (left,) = must(kim("operation", "list", "--open", "--subject", big, "--json")).json()["items"]
    assert f"hint: svc operation watch {left['id']}\n" in first.err()
    assert (left["kind"], left["status"], left["template"]["name"]) == ("pull", "running", big)

    joined = [
        client("operation", "watch", left["id"]),
        *(client("image", "pull", big, "--wait") for _ in "ab"),
    ]
    until(lambda: all("pulling" in one.err() for one in joined), 30)
    assert len(must(kim("operation", "list", "--open", "--json")).json()["items"]) == 1
    for refused in (
        lou("operation", "watch", left["id"]), lou("operation", "cancel", left["id"]),
        lou("operation", "log", left["id"]),
    ):  # fmt: skip
        assert (refused.code, "there is no operation" in refused.err) == (1, True), refused
    assert left["id"] not in must(lou("operation", "list")).out

    gate.go_on()
    assert [one.code() for one in joined] == [0, 0, 0], [one.err() for one in joined]
    log = must(kim("operation", "log", left["id"], "--follow")).out.splitlines()
    assert log[:2] == ["checking", "pulling"]
    part = must(kim("operation", "log", left["id"], "--after", "1", "--json")).json()
    assert [line["text"] for line in part["lines"]] == log[1:]
    assert (part["lines"][0]["line"], part["next"], part["ended"]) == (2, len(log), True)
    assert left["id"] in must(kim("operation", "list", "--status", "succeeded")).out


def test_a_download_has_a_rate_and_a_time_left(kim: Call, gate: Gate, big: str) -> None:
    """Both from the service; a download that stalls has none."""
    gate.hold_after(BIG * 3 // 4, pace=BIG // 12)
    operation = operations.begin(kim, "image", "pull", big)
    moving = until(
        lambda: (found := operations.record(kim, operation)["progress"]).get("seconds_left") and found, 60
    )
    assert 0 < moving["rate"] < BIG
    assert moving["seconds_left"] >= 1
    until(lambda: operations.record(kim, operation)["progress"].get("rate") == 0, 60)
    assert operations.record(kim, operation)["progress"]["seconds_left"] is None
    cancelled = operations.cancel(kim, operation)
    assert cancelled["status"] == "cancelled"
    assert kim("operation", "watch", operation).code == 1


def test_the_same_set_up_is_joined(kim: Call, gate: Gate, big: str, client: Callable[..., Client]) -> None:
    gate.hold_after(BIG // 2)
    arguments = ("ws", "setup", "--template", big, "--name", "twice")
    both = [client(*arguments)]
    until(lambda: "pulling" in both[0].err(), 30)
    both.append(client(*arguments))
    until(lambda: "already in progress" in both[1].err(), 30)
    other = kim(*arguments, "--memory", "64m", "--json")
    assert (other.code, other.json()["error"]["code"]) == (1, "name_taken")
    record = must(kim("operation", "list", "--kind", "setup", "--open", "--json")).json()["items"][0]
    assert record["subject"]["name"] == "twice"
    gate.go_on()
    try:
        assert [one.code() for one in both] == [0, 0], both[1].err()
    finally:
        must(kim("ws", "delete", "twice", "--yes"))


def test_a_dry_run_tells_what_a_pull_loads(kim: Call, gate: Gate, big: str, image_quota: int) -> None:
    """The numbers of the pull itself, and its refusal, without a byte of a layer."""
    full = kim("image", "pull", big, "--dry-run", "--json")
    assert full.code == 1
    found = full.json()
    assert (found["fits"], found["blocked_by"], found["quota_bytes"]) == (
        False,
        "quota_exceeded",
        image_quota,
    )
    assert found["download_bytes"] >= BIG
    assert "hint: svc image prune\n" in full.err
    assert gate.passed < MIB // 8, "a manifest, and no layer"


def test_a_dry_run_of_what_is_there_already(kim: Call, gate: Gate, big: str) -> None:
    before = must(kim("image", "pull", big, "--dry-run", "--json")).json()
    assert (before["fits"], before["verb"]) == (True, "pull")
    assert gate.passed < MIB // 8
    must(kim("image", "pull", big, "--wait"))
    after = must(kim("image", "pull", big, "--dry-run", "--json")).json()
    assert after["download_bytes"] == 0
    assert after["present_bytes"] >= BIG
    assert after["used_bytes"] - before["used_bytes"] >= BIG
    missing = kim("image", "build", big, "--dry-run")
    assert (missing.code, f"hint: svc image pull {big} --dry-run" in missing.err) == (1, True)


def test_one_image_goes_and_one_in_use_stays(
    kim: Call, lou: Call, shelf: Shelf, template: Callable[[str], str]
) -> None:
    """Named by its reason each time; others' images are not there."""
    tag = f"single-{next(NUMBERS)}"
    shelf.put(tag, {"one": os.urandom(MIB)})
    reference = f"{shelf.address}/{REPOSITORY}:{tag}"
    name = template(reference)
    must(kim("image", "pull", name, "--wait"))
    (image_id,) = (
        image["image_id"]
        for image in must(kim("image", "overview", "--json")).json()["items"]
        if reference in image["names"]
    )
    of_template = kim("image", "remove", reference, "--yes")
    assert (of_template.code, f"hint: svc image delete {name}\n" in of_template.err) == (1, True), of_template
    must(kim("ws", "create", "--template", name, "--name", "holder"))
    try:
        needed = kim("image", "remove", image_id[:12], "--yes")
        assert (needed.code, "hint: svc ws delete holder\n" in needed.err) == (1, True), needed
    finally:
        must(kim("ws", "delete", "holder", "--yes"))
    must(kim("template", "delete", name, "--yes"))
    must(podman(USER, "create", "--name", "by-hand", reference, "true"))
    try:
        held = kim("image", "remove", reference, "--yes")
        assert (held.code, "hint: podman ps --all --filter ancestor=" in held.err) == (1, True), held
    finally:
        must(podman(USER, "rm", "by-hand"))
    assert "there is no image" in lou("api", "DELETE", f"/api/images/{image_id}").err
    must(podman(USER, "build", "-t", "localhost/child:1", "-", stdin=f"FROM {reference}\nENV A=1\n"))
    must(kim("image", "remove", reference, "--yes"))
    assert podman(USER, "image", "exists", reference).code == 1
    must(podman(USER, "run", "--rm", "localhost/child:1", "true"))
    must(kim("image", "remove", "localhost/child:1", "--yes"))
    again = kim("image", "remove", image_id, "--yes")
    assert (again.code, "there is no image" in again.err) == (1, True)
    assert must(kim("image", "prune", "--yes", "--json")).json()["removed"] == []
