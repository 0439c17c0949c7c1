"""Images from real registries in real stores: what is pulled, from where, how it fails, what goes again."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e import operations
from e2e.installation import IMAGE, Call, Service, remove_user, run
from e2e.registries import REPOSITORY, Gate, Shelf
from e2e.surroundings import allow, make_accounts, must, new_template, podman
from registries import digest
from waiting import until

MIB = 1 << 20
BIG = 6 * MIB
NUMBERS = itertools.count(1)

Make = Callable[..., str]


@pytest.fixture(scope="module", autouse=True)
def allowed(policy: list[str], fetchers: None) -> None:
    """All the registries that the tests name."""


@pytest.fixture
def big(shelf: Shelf, gate: Gate) -> str:
    """A new image behind the gate, with a layer of some megabytes: /big, and what `sha256sum` says of it."""
    tag, content = f"big-{next(NUMBERS)}", os.urandom(BIG)
    shelf.put(tag, {"big": content, "sum": f"{hashlib.sha256(content).hexdigest()}  /big\n".encode()})
    return f"{gate.address}/{REPOSITORY}:{tag}"


@pytest.fixture
def template(service: Service) -> Iterator[Make]:
    """template(user, reference) -> the name of a new template for it."""
    created: list[tuple[str, str]] = []

    def create(user: str, reference: str) -> str:
        name = f"image-{next(NUMBERS)}"
        new_template(user, service.env, name, {"type": "registry", "image_ref": reference})
        created.append((user, name))
        return name

    yield create
    for user, name in created:
        run(user, "api", "DELETE", f"/api/templates/{name}/image", env=service.env)
        run(user, "template", "delete", name, "--yes", env=service.env)


def state(call: Call, name: str) -> dict[str, Any]:
    """The record of a template's image."""
    return dict(must(call("image", "status", name, "--json")).json())


def has(user: str, reference: str) -> bool:
    """Whether the user's own Podman has the image."""
    return podman(user, "image", "exists", reference).code == 0


def code(error: object) -> str:
    """The code of an operation's error."""
    assert isinstance(error, dict), error
    return str(error["code"])


# --- what is pulled ---------------------------------------------------------------------


def test_by_tag(kim: Call, shelf: Shelf, template: Make) -> None:
    """ "Pulls a registry image into the caller's own store"."""
    pushed = shelf.put("tagged", {"word": b"by tag"})
    reference = f"{shelf.address}/{REPOSITORY}:tagged"
    name = template("tse-kim", reference)
    assert state(kim, name)["status"] == "missing"
    must(kim("image", "pull", name, "--wait"))
    record = state(kim, name)
    assert (record["status"], record["digest"], record["error"]) == ("ready", pushed, None)
    printed = podman("tse-kim", "image", "inspect", reference).json()[0]
    assert (record["digest"], record["size_bytes"]) == (printed["Digest"], printed["Size"])
    must(kim("image", "pull", name, "--wait"))  # once more is no error


@pytest.mark.parametrize("tag", ["", ":pinned"])
def test_by_digest(kim: Call, shelf: Shelf, template: Make, tag: str) -> None:
    """And a workspace of it: the tag may go elsewhere meanwhile."""
    pushed = shelf.put("pinned", {"word": b"the first"})
    name = template("tse-kim", reference := f"{shelf.address}/{REPOSITORY}{tag}@{pushed}")
    shelf.put("pinned", {"word": b"the second"})
    must(kim("ws", "setup", "--template", name, "--name", "pinned"))
    try:
        assert state(kim, name)["digest"] == pushed
        listed = must(kim("image", "list", "--json")).json()["items"]
        assert [one["status"] for one in listed if one["ref"] == reference] == ["ready"]
        must(kim("ws", "start", "pinned"))
        assert must(kim("ws", "exec", "pinned", "--", "cat", "/word")).out == "the first"
    finally:
        kim("ws", "stop", "pinned")
        kim("ws", "delete", "pinned", "--yes")
    must(kim("image", "delete", name, "--yes"))
    assert state(kim, name)["status"] == "missing"


def test_a_digest_that_the_registry_does_not_have(kim: Call, shelf: Shelf, template: Make) -> None:
    name = template("tse-kim", f"{shelf.address}/{REPOSITORY}@{digest(b'nothing')}")
    refused = kim("image", "pull", name, "--wait")
    assert refused.code == 1
    assert "no such image" in refused.err
    record = state(kim, name)
    assert (record["status"], bool(record["error"])) == ("failed", True)


@pytest.mark.parametrize("what", ["manifest", "layer"])
def test_content_that_is_not_what_its_digest_says(kim: Call, shelf: Shelf, template: Make, what: str) -> None:
    pushed = shelf.put(f"forged-{what}", {"word": what.encode() * 999})
    shelf.damage(pushed if what == "manifest" else shelf.layers(f"forged-{what}")[-1]["digest"])
    reference = f"{shelf.address}/{REPOSITORY}@{pushed}"
    name = template("tse-kim", reference)
    refused = kim("image", "pull", name, "--wait")
    assert refused.code == 1, refused.out
    assert state(kim, name)["status"] == "failed"
    assert not has("tse-kim", reference)
    assert podman("tse-kim", "system", "df").code == 0


# --- how it fails -----------------------------------------------------------------------


def test_a_registry_that_goes_down_midway(
    kim: Call, shelf: Shelf, gate: Gate, big: str, template: Make
) -> None:
    name = template("tse-kim", big)
    gate.hold_after(BIG // 2, pace=BIG // 5)
    operation = operations.begin(kim, "image", "pull", name)
    under_way = until(lambda: operations.record(kim, operation)["progress"].get("current"), 10)
    assert 0 < under_way <= BIG // 2
    assert state(kim, name)["status"] == "pulling"
    until(gate.holds, 20)
    gate.break_down()
    failed = operations.ended(kim, operation)
    assert failed["status"] == "failed"
    assert "the registry does not answer" in failed["error"]["message"]
    assert state(kim, name)["status"] == "failed"
    assert not has("tse-kim", big)

    gate.opened()
    must(kim("ws", "setup", "--template", name, "--name", "big"))
    must(kim("ws", "start", "big"))
    try:
        must(kim("ws", "exec", "big", "--", "sha256sum", "-c", "/sum"))
    finally:
        kim("ws", "stop", "big")
        kim("ws", "delete", "big", "--yes")


def test_a_registry_that_is_not_there(kim: Call, absent_registry: str, template: Make) -> None:
    name = template("tse-kim", f"{absent_registry}/{REPOSITORY}:1")
    refused = kim("image", "pull", name, "--wait")
    assert refused.code == 1
    assert "does not answer" in refused.err
    engine, hint = refused.err.splitlines()[-2:]
    assert engine.startswith("engine: ")
    assert "connect: connection refused" in engine
    assert hint == f"hint: svc image pull {name} --wait"
    assert state(kim, name)["status"] == "failed"


def test_a_registry_that_wants_a_login(kim: Call, lou: Call, closed_registry: str, template: Make) -> None:
    """The user's own `podman login` opens it, to that user alone."""
    reference = f"{closed_registry}/{REPOSITORY}:1"
    names = {user: template(user, reference) for user in ("tse-kim", "tse-lou")}
    refused = kim("image", "pull", names["tse-kim"], "--wait")
    assert refused.code == 1
    assert "refuses access" in refused.err
    assert "authentication required" in refused.err
    assert refused.err.endswith(f"hint: podman login {closed_registry}\n")
    must(podman(
        "tse-kim", "login", "--tls-verify=false", "-u", "kim", "--password-stdin", closed_registry,
        stdin="a ladder in the orchard",
    ))  # fmt: skip
    must(kim("image", "pull", names["tse-kim"], "--wait"))
    assert state(kim, names["tse-kim"])["status"] == "ready"
    others = lou("image", "pull", names["tse-lou"], "--wait")
    assert others.code == 1
    assert "refuses access" in others.err
    must(podman("tse-kim", "logout", closed_registry))


def test_two_users_pull_the_same_image_at_once(
    kim: Call, lou: Call, gate: Gate, big: str, template: Make
) -> None:
    """ "Pulled or built in the calling user's own store"; "No shared or root-owned image scope exists"."""
    both = {"tse-kim": kim, "tse-lou": lou}
    names = {user: template(user, big) for user in both}
    gate.hold_after(MIB)
    begun = {user: operations.begin(call, "image", "pull", names[user]) for user, call in both.items()}
    until(gate.holds, 20)
    until(
        lambda: all(operations.record(call, begun[u])["status"] == "running" for u, call in both.items()), 9
    )
    again = kim("image", "pull", names["tse-kim"], "--json")
    assert (again.code, again.json()["error"]["code"]) == (1, "operation_in_progress")
    gate.go_on()
    for user, call in both.items():
        operations.succeeded(call, begun[user])
        assert has(user, big)
    assert len({state(call, names[user])["digest"] for user, call in both.items()}) == 1


def test_a_registry_off_the_list_is_not_even_asked(
    kim: Call, service: Service, policy: list[str], gate: Gate, big: str, template: Make
) -> None:
    allow(service.env, *(host for host in policy if host != gate.address))
    try:
        name = template("tse-kim", big)
        findings = must(kim("template", "get", name, "--json")).json()["findings"]
        assert "registry_not_allowed" in [finding["code"] for finding in findings]
        for arguments in (("image", "pull", name), ("ws", "setup", "--template", name, "--name", "off")):
            refused = kim(*arguments, "--json")
            assert refused.code == 1
            assert refused.json()["error"]["code"] == "registry_not_allowed", refused
        assert gate.calls == 0
    finally:
        allow(service.env, *policy)


def test_a_start_asks_no_registry(kim: Call, gate: Gate, template: Make) -> None:
    """ "Starting a workspace never pulls or builds an image"; "When the image is missing, the start does not
    pull or build it".
    """
    name = template("tse-kim", f"{gate.address}/{REPOSITORY}:1")
    must(kim("ws", "create", "--template", name, "--name", "bare"))
    try:
        refused = kim("ws", "start", "bare")
        assert refused.code == 1
        assert f"hint: svc image pull {name} --wait" in refused.err
        assert gate.calls == 0
    finally:
        must(kim("ws", "delete", "bare", "--yes"))


# --- refused beforehand, with the numbers -------------------------------------------------


def test_a_quota_refuses_before_anything_is_downloaded(
    lou: Call, gate: Gate, big: str, template: Make, image_quota: int
) -> None:
    name = template("tse-lou", big)
    refused = operations.ended(lou, operations.begin(lou, "image", "pull", name))
    assert refused["status"] == "failed"
    assert code(refused["error"]) == "quota_exceeded"
    details = refused["error"]["details"]
    assert (details["resource"], details["limit"]) == ("image_bytes", image_quota)
    assert details["requested"] >= BIG
    assert details["used"] + details["requested"] > image_quota
    assert gate.passed < MIB // 8, "a manifest, and no layer"


@pytest.fixture
def full_home(service: Service) -> Iterator[str]:
    """A user with an account whose home is on a file system of 4 MiB."""
    name = "tse-max"
    account = pwd.getpwnam(name)
    home = account.pw_dir
    options = f"size=4m,mode=0700,uid={account.pw_uid},gid={account.pw_gid}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", home], check=True)
    try:
        make_accounts(service.env, {name: "an umbrella left on platform two"})
        yield name
    finally:
        remove_user(name)
        subprocess.run(["umount", "-l", home], check=False)
        shutil.rmtree(home, ignore_errors=True)


def test_too_little_room_refuses_before_anything_is_downloaded(
    svc: Call, full_home: str, gate: Gate, big: str, template: Make
) -> None:
    call: Call = lambda *arguments, **more: svc(full_home, *arguments, **more)  # noqa: E731  a name for the call
    name = template(full_home, big)
    refused = operations.ended(call, operations.begin(call, "image", "pull", name))
    assert (refused["status"], code(refused["error"])) == ("failed", "storage_full"), refused
    details = refused["error"]["details"]
    assert details["download_bytes"] >= BIG
    assert details["needed_bytes"] > details["free_bytes"]
    assert details["free_bytes"] <= 4 * MIB
    assert gate.passed < MIB // 8


# --- what is there, and what goes -----------------------------------------------------------


def test_overview_delete_and_prune(kim: Call, service: Service, shelf: Shelf, template: Make) -> None:
    """ "Removes unused images in the caller's store": the figures are Podman's; the needed stays."""
    address = f"{shelf.address}/{REPOSITORY}"
    names = {}
    for tag in ("kept", "spare", "loose"):
        shelf.put(tag, {tag: os.urandom(MIB)})
        names[tag] = template("tse-kim", f"{address}:{tag}")
        must(kim("image", "pull", names[tag], "--wait"))
    must(kim("ws", "create", "--template", names["kept"], "--name", "shim"))
    try:
        overview = must(kim("image", "overview", "--json")).json()
        by_name = {name: item for item in overview["items"] for name in item["names"]}
        kept, spare = by_name[f"{address}:kept"], by_name[f"{address}:spare"]
        assert kept["used_by"] == ["shim"]
        assert spare["used_by"] == []
        assert spare["unique_bytes"] >= MIB
        assert spare["reclaimable_bytes"] >= MIB
        assert kept["reclaimable_bytes"] == 0
        compare_with_podman(overview)
        before = stored("tse-kim")
        assert overview["total_bytes"] == pytest.approx(before, abs=SMALL * len(overview["items"]))

        refused = kim("image", "delete", names["kept"], "--yes")
        assert refused.code == 1
        assert "shim" in refused.err
        must(kim("image", "delete", names["spare"], "--yes"))
        assert not has("tse-kim", f"{address}:spare")
        assert state(kim, names["spare"])["status"] == "missing"
        assert before - stored("tse-kim") == pytest.approx(spare["unique_bytes"], abs=SMALL)

        unsure = kim("image", "prune")
        assert unsure.code == 1
        assert "--yes" in unsure.err
        pruned = must(kim("image", "prune", "--yes", "--json")).json()
        assert [f"{address}:loose"] in [item["names"] for item in pruned["removed"]]
        assert before - spare["unique_bytes"] - stored("tse-kim") == pytest.approx(
            pruned["freed_bytes"], abs=SMALL * len(pruned["removed"])
        )
        left = podman("tse-kim", "images", "--format", "{{.Repository}}:{{.Tag}}").out.split()
        assert left == [f"{address}:kept"]
        must(kim("ws", "start", "shim"))
    finally:
        kim("ws", "stop", "shim")
        kim("ws", "delete", "shim", "--yes")


UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}
SMALL = 64 * 1024  # manifests, configurations, directories


def compare_with_podman(overview: dict[str, Any]) -> None:
    """Image by image, `podman system df` says the same; of shared layers it knows less than the disk does."""
    text = podman("tse-kim", "system", "df", "--verbose").out.partition("Containers space usage")[0]
    rows = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines() if re.search(r"\d[kMG]?B ", line)]
    listed = podman("tse-kim", "image", "ls", "--quiet").out.split()  # `df` has what others are built on, too
    # By the id's beginning: size, shared, unique, containers.
    images = {row[2]: row[4:] for row in rows if row[2] in listed}
    assert len(images) == len(overview["items"]), text
    for item in overview["items"]:
        size, _, _, containers = images[item["image_id"].removeprefix("sha256:")[:12]]
        number, unit = re.fullmatch(r"([0-9.]+)([kMG]?B)", size).groups()  # type: ignore[union-attr]
        assert item["size_bytes"] == pytest.approx(float(number) * UNITS[unit], rel=0.01)
        assert item["size_bytes"] == item["shared_bytes"] + item["unique_bytes"]
        assert item["containers"] == int(containers)


def stored(user: str) -> int:
    """Bytes of all layers in the user's store."""
    store = Path(pwd.getpwnam(user).pw_dir, ".local/share/containers/storage/overlay")
    layers = [str(path) for path in store.glob("*/diff")]
    done = subprocess.run(["du", "-sbc", *layers], capture_output=True, text=True, check=True)
    return int(done.stdout.splitlines()[-1].split()[0])


def test_root_has_no_images(svc: Call, kim: Call, template: Make, registry: str) -> None:
    name = template("tse-kim", f"{registry}/{REPOSITORY}:1")
    identity = must(kim("template", "get", name, "--json")).json()["id"]
    for arguments in (
        ("list",), ("pull", identity), ("build", identity), ("delete", identity, "--yes"), ("prune", "--yes"),
    ):  # fmt: skip
        refused = svc("root", "image", *arguments)
        assert refused.code == 1, arguments
        assert "root" in refused.err
    must(svc("root", "image", "allowlist"))


def test_image_list_has_every_template(alice: Call, bob: Call, registry: str) -> None:
    """ "Image: per template, per user": templates that share a reference do not hide each other."""
    ref = f"{registry}/{IMAGE}"
    for name in ("twin-a", "twin-b"):
        spec = {"name": name, "source": {"type": "registry", "image_ref": ref}}
        must(alice("template", "create", "--file", "-", stdin=json.dumps(spec)))
    rows = [line.split("\t") for line in must(alice("image", "list")).out.splitlines()]
    assert {"twin-a", "twin-b"} <= {row[0] for row in rows if row[3] == ref}
    assert "twin-a" not in must(bob("image", "list")).out
    for name in ("twin-a", "twin-b"):
        assert must(alice("image", "status", name, "--json")).json()["ref"] == ref
        must(alice("template", "delete", name, "--yes"))
