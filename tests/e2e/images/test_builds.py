"""Images built from Dockerfiles in their user's own store, with the tools and the limits that builds have."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from e2e import operations
from e2e.installation import Call, Outcome, Service, run
from e2e.registries import REPOSITORY, Gate, Shelf
from e2e.surroundings import must, new_template, podman
from waiting import until

MIB = 1 << 20
NUMBERS = itertools.count(1)

Make = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def allowed(policy: list[str], fetchers: None) -> None:
    """All the registries that the tests name."""


@pytest.fixture
def recipe(service: Service) -> Iterator[Make]:
    """recipe(user, dockerfile, ...) -> the record of a new template with that Dockerfile."""
    created: list[tuple[str, str]] = []

    def create(user: str, dockerfile: str, image_ref: str = "", **spec: Any) -> dict[str, Any]:
        kind = {"type": "registry", "image_ref": image_ref} if image_ref else {"type": "dockerfile"}
        local = {"local_only": spec.pop("local_only")} if "local_only" in spec else {}
        source = kind | {"dockerfile": dockerfile} | local
        record = new_template(user, service.env, f"recipe-{next(NUMBERS)}", source, **spec)
        created.append((user, record["id"]))
        return record

    yield create
    for user, name in created:
        for one in ("tse-kim", "tse-lou"):
            run(one, "api", "DELETE", f"/api/templates/{name}/image", env=service.env)
        run(user, "template", "delete", name, "--yes", env=service.env)


def refused(outcome: Outcome, code: str) -> dict[str, Any]:
    """The error of a command with --json, which has to be that one."""
    assert outcome.code == 1, outcome.out
    error = dict(outcome.json()["error"])
    assert error["code"] == code, error
    return error


def test_built_enabled_and_worked_in(kim: Call, registry: str, recipe: Make) -> None:
    """ "Can be backed by a registry image or by a Dockerfile"; "Image builds are listed"; "Builds a
    Dockerfile-backed template in the caller's own store".
    """
    text = f"FROM {registry}/{REPOSITORY}:1\nENV GREETING=hello\nRUN echo $GREETING there | tee /greeting\n"
    template = recipe("tse-kim", text)
    name = template["name"]
    assert template["status"] == "disabled"
    assert kim("template", "dockerfile", name).out == text
    hint = refused(kim("template", "enable", name, "--json"), "build_required")["hint"]
    assert hint == f"svc image build {name} --wait"
    assert refused(kim("ws", "setup", "--template", name, "--name", "hut", "--json"), "template_disabled")

    built = must(kim("image", "build", name, "--wait"))
    assert "building" in built.err
    assert "\n  hello there\n" in built.err, "the output of a step"
    assert must(kim("image", "status", name, "--json")).json()["status"] == "ready"
    latest = must(kim("image", "builds", "--json")).json()["items"][0]
    assert (latest["kind"], latest["status"]) == ("build", "succeeded")
    assert latest["template"] == {"id": template["id"], "name": name}
    said = operations.log(kim, latest["id"])
    assert "STEP 3/3: RUN echo $GREETING there" in said
    assert must(kim("image", "log", name)).out.splitlines() == said.splitlines()
    assert podman("tse-kim", "image", "exists", template["source"]["image_ref"]).code == 0

    must(kim("template", "enable", name))
    must(kim("ws", "setup", "--template", name, "--name", "hut"))
    try:
        must(kim("ws", "start", "hut"))
        assert must(kim("ws", "exec", "hut", "--", "cat", "/greeting")).out == "hello there\n"
        kept = must(kim("image", "prune", "--yes", "--json")).json()
        assert template["source"]["image_ref"] not in [n for item in kept["removed"] for n in item["names"]]
    finally:
        kim("ws", "stop", "hut")
        kim("ws", "delete", "hut", "--yes")


def test_progress_counts_the_base_images_bytes_then_the_steps(
    kim: Call, shelf: Shelf, gate: Gate, recipe: Make
) -> None:
    shelf.put("broad", {"broad": os.urandom(6 * MIB)})
    text = f"FROM {gate.address}/{REPOSITORY}:broad\nRUN sleep 3\nRUN true\n"
    name = recipe("tse-kim", text)["name"]
    gate.hold_after(6 * MIB, pace=3 * MIB // 2)
    operation = operations.begin(kim, "image", "build", name)

    def seen(unit: str, least: int = 0) -> Any:
        progress = operations.record(kim, operation)["progress"]
        result = progress.get("unit") == unit and progress.get("current") and progress["total"] >= least
        return progress if result else None

    until(lambda: seen("bytes", 6 * MIB), 20)
    gate.go_on()
    in_steps = until(lambda: seen("steps"), 20)
    assert (in_steps["current"], in_steps["total"]) in ((1, 3), (2, 3))
    assert operations.record(kim, operation)["phase"] == "building"
    assert "STEP 3/3: RUN true" in must(kim("image", "log", name, "--follow")).out, "to the end"
    assert operations.record(kim, operation)["status"] == "succeeded"


def test_a_step_that_fails_is_named(kim: Call, registry: str, recipe: Make) -> None:
    text = f"FROM {registry}/{REPOSITORY}:1\nRUN echo the reason is here && exit 7\nRUN true\n"
    name = recipe("tse-kim", text)["name"]
    failed = kim("image", "build", name, "--wait")
    assert failed.code == 1
    assert "step 2 of 3" in failed.err
    assert "7" in failed.err
    latest = must(kim("image", "builds", "--json")).json()["items"][0]
    assert (latest["status"], latest["error"]["code"]) == ("failed", "build_failed")
    assert "the reason is here" in operations.log(kim, latest["id"])
    assert must(kim("image", "status", name, "--json")).json()["status"] == "failed"
    refused(kim("template", "enable", name, "--json"), "build_required")
    assert not podman("tse-kim", "ps", "--all", "--external", "--quiet").out, "a working container is left"

    changed = text.replace("exit 7", "exit 0")
    must(kim("template", "dockerfile", name, "--set", "--file", "-", stdin=changed))
    assert must(kim("image", "build", name, "--wait", "--quiet")).err == ""
    must(kim("template", "enable", name))


def test_a_base_that_is_not_there(kim: Call, registry: str, absent_registry: str, recipe: Make) -> None:
    for base, arguments in (
        (f"{registry}/tests/none:1", "no such image"),
        (f"{absent_registry}/a:1", "answer"),
    ):
        failed = kim("image", "build", recipe("tse-kim", f"FROM {base}\nRUN true\n")["name"], "--wait")
        assert failed.code == 1
        assert arguments in failed.err


def test_a_quota_refuses_a_build_before_its_base_is_downloaded(
    kim: Call, shelf: Shelf, gate: Gate, recipe: Make, image_quota: int
) -> None:
    shelf.put("large", {"large": os.urandom(6 * MIB)})
    name = recipe("tse-kim", f"FROM {gate.address}/{REPOSITORY}:large\nRUN true\n")["name"]
    error = operations.ended(kim, operations.begin(kim, "image", "build", name))["error"]
    assert (error["code"], error["details"]["limit"]) == ("quota_exceeded", image_quota)
    assert error["details"]["requested"] >= 6 * MIB
    assert gate.passed < MIB // 8, "a manifest, and no layer"


def test_triggers_of_a_base_image_run_in_ones_own_builds_only(
    kim: Call, svc: Call, shelf: Shelf, registry: str, recipe: Make
) -> None:
    """What ONBUILD brings along stands in no file that was reviewed."""
    shelf.put("triggers", OnBuild=["RUN echo sprung > /trap"])
    text = f"FROM {registry}/{REPOSITORY}:triggers\nRUN cat /trap\n"
    must(kim("image", "build", recipe("tse-kim", text)["name"], "--wait"))
    shared = recipe("root", text, scope="global", local_only=True)
    must(svc("root", "template", "enable", shared["id"]))
    failed = operations.ended(kim, operations.begin(kim, "image", "build", shared["id"]))
    assert (failed["status"], failed["error"]["code"]) == ("failed", "build_failed")
    assert f"{registry}/{REPOSITORY}:triggers" in failed["error"]["message"]
    assert "ONBUILD" in failed["error"]["message"]


def test_a_local_only_recipe_is_built_by_each_user(
    kim: Call, lou: Call, svc: Call, registry: str, recipe: Make
) -> None:
    """ "Local-only managed recipes are built this way by each user after the administrator enables" them."""
    text = f"FROM {registry}/{REPOSITORY}:1\nRUN echo local > /origin\n"
    template = recipe("root", text, scope="global", local_only=True)
    assert kim("template", "get", template["id"]).code == 1
    must(svc("root", "template", "enable", template["id"]))
    for user, call in (("tse-kim", kim), ("tse-lou", lou)):
        assert (
            "svc image build" in refused(call("image", "pull", template["id"], "--json"), "conflict")["hint"]
        )
        must(call("image", "build", template["id"], "--wait"))
        assert podman(user, "image", "exists", template["source"]["image_ref"]).code == 0
    changed = kim("template", "dockerfile", template["id"], "--set", "--file", "-", "--json", stdin=text)
    refused(changed, "read_only")


def test_a_published_recipe_is_built_when_its_download_failed(
    kim: Call, lou: Call, svc: Call, registry: str, absent_registry: str, recipe: Make
) -> None:
    """ "a private fallback for a published managed recipe whose download failed (builds the unchanged
    embedded Dockerfile under the same image reference)" """
    reference = f"{absent_registry}/tests/published:3"
    text = f"FROM {registry}/{REPOSITORY}:1\nRUN echo fallback > /origin\n"
    template = recipe("root", text, image_ref=reference, scope="global")
    must(svc("root", "template", "enable", template["id"]))
    early = refused(kim("image", "build", template["id"], "--json"), "conflict")
    assert early["hint"] == f"svc image pull {template['name']} --wait"
    down = kim("image", "pull", template["id"], "--wait")
    assert down.code == 1
    assert "does not answer" in down.err
    must(kim("image", "build", template["id"], "--wait"))
    assert podman("tse-kim", "image", "exists", reference).code == 0
    refused(lou("image", "build", template["id"], "--json"), "conflict")  # it was not lou's download
    for call in (kim, lou):  # lou's set-up tries the download, and builds
        must(call("ws", "setup", "--template", template["id"], "--name", "published"))
        try:
            must(call("ws", "start", "published"))
            assert must(call("ws", "exec", "published", "--", "cat", "/origin")).out == "fallback\n"
        finally:
            call("ws", "stop", "published")
            call("ws", "delete", "published", "--yes")


def test_setup_builds_what_is_missing(kim: Call, registry: str, recipe: Make) -> None:
    """ "Downloads or builds a missing image and creates the workspace as one operation": "Missing image is
    downloaded or built first. No start, no app launch."
    """
    text = f"ARG TAG=none\nFROM {registry}/{REPOSITORY}:$TAG\nARG WORD=never\nRUN echo $WORD again\n"
    template = recipe("tse-kim", text)
    refused(kim("image", "build", template["id"], "--build-arg", "OTHER=1", "--json"), "validation_failed")
    given = ("--build-arg", "TAG=1", "--build-arg", "WORD=and")
    assert "\n  and again\n" in must(kim("image", "build", template["id"], *given, "--wait")).err
    must(kim("template", "enable", template["id"]))
    must(kim("image", "delete", template["id"], "--yes"))
    created = must(kim("ws", "setup", "--template", template["id"], "--name", "anew", "--json")).json()[
        "operation"
    ]
    try:
        assert created["kind"] == "setup"
        said = operations.log(kim, created["id"])
        assert "STEP 4/4" in said or "STEP 3/3" in said
        assert "and again" in said, "with the arguments of the last build"
        assert must(kim("api", "GET", "/api/workspaces/anew")).json()["status"] == "stopped"
    finally:
        kim("ws", "delete", "anew", "--yes")
