"""What a real store takes, and what may be removed from it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agent.priv_ns import Agent, User
from agent.registry import SHELL, Registry

from svc_helper.agent.images import store as image_store
from svc_helper.agent.images.store import Store

pytestmark = pytest.mark.root
Make = Callable[..., str]


FAMILY = ("localhost/tsa/one:1", "localhost/tsa/two:1")


@pytest.fixture(scope="module")
def built(user: User, agent: Agent, image: str) -> Iterator[str]:
    """The archive of two images that were built from the common base."""
    archive = f"{user.home}/family.tar"
    for number, ref in enumerate(FAMILY, 1):
        lines = f"FROM {image}\\nRUN head -c {number << 20} /dev/urandom > /file\\n"
        user.run("sh", "-c", f"printf '{lines}' | podman build -q --pull=never -t {ref} -")
    user.podman("save", "-q", "-m", "-o", archive, *FAMILY)
    user.podman("rmi", "-f", *FAMILY)
    yield archive
    user.run("rm", archive)


@pytest.fixture
def family(user: User, built: str) -> Iterator[tuple[str, str]]:
    """Two images from the common base: one with a file of a megabyte, one with a file of two."""
    user.podman("load", "-q", "-i", built)
    yield FAMILY
    user.podman("rmi", "-f", *FAMILY, check=False)
    user.podman("image", "prune", "-f", check=False)  # another test's may be in use


def nameless(agent: Agent) -> list[str]:
    """The images without a name; other tests may have left some."""
    return [row["image_id"] for row in agent.call("image.usage").data["images"] if not row["names"]]


def usage_of(agent: Agent) -> dict[str, dict[str, Any]]:
    """The rows of a look at the store, by each name."""
    return {name: row for row in agent.call("image.usage").data["images"] for name in row["names"]}


def test_what_images_take_alone_and_together(
    agent: Agent, user: User, image: str, family: tuple[str, str]
) -> None:
    found = agent.call("image.usage").data
    assert (
        set(found) == {"images", "total_bytes", "free_bytes", "unused_volumes"}
        and found["free_bytes"] > 1 << 20
    )
    rows = usage_of(agent)
    base, one, two = rows[image], rows[family[0]], rows[family[1]]
    assert abs(one["unique_bytes"] - (1 << 20)) < 20_000 and abs(two["unique_bytes"] - (2 << 20)) < 20_000
    assert 1_000_000 < base["shared_bytes"] == one["shared_bytes"] < base["size_bytes"]
    assert all(row["unique_bytes"] + row["shared_bytes"] == row["size_bytes"] for row in rows.values())
    everything = found["images"]  # those too that other tests have left without a name
    least = base["shared_bytes"] + sum(row["unique_bytes"] for row in everything)
    # Others may share more among themselves; tests/e2e holds the sum to what the disk says.
    assert least - 50_000 < found["total_bytes"] < sum(row["size_bytes"] for row in everything)
    assert (
        one["created_at"].endswith("Z") and one["digest"].startswith("sha256:") and len(one["image_id"]) == 64
    )


def test_the_same_images_as_podman_lists(agent: Agent, user: User, family: tuple[str, str]) -> None:
    """By the store's records: Podman's own list takes a second for a few builds of some steps."""
    moved = f"FROM {family[0]}\\nENV A=1\\nRUN touch /a\\nENV B=2\\n"
    user.run("sh", "-c", f"printf '{moved}' | podman build -q -t {family[1]} -")  # the former one has no name
    for number in (1, 2):  # of one layer, and neither stands on the other
        user.run(
            "sh",
            "-c",
            f"printf 'FROM {family[0]}\\nENV N={number}\\n' | podman build -q -t localhost/tsa/n:1 -",
        )
    failing = f"FROM {family[0]}\\nRUN touch /a\\nENV C=3\\nRUN false\\n"
    user.run("sh", "-c", f"! printf '{failing}' | podman build -q -t localhost/tsa/never:1 -")
    listed = json.loads(user.podman("images", "--format=json").stdout)
    rows = {row["image_id"]: row for row in agent.call("image.usage").data["images"]}
    assert rows.keys() == {row["Id"] for row in listed}
    for one in listed:
        row = rows[one["Id"]]
        assert (row["names"], row["digest"], row["size_bytes"], row["containers"]) == (
            one.get("Names") or [], one["Digest"], one["Size"], one["Containers"],
        )  # fmt: skip
        assert row["created_at"][:19] == one["CreatedAt"][:19]
        assert not (row["names"] and row["left_by_build"])
    newest = max(row["created_at"] for row in rows.values() if not row["names"])
    assert any(row["left_by_build"] for row in rows.values() if row["created_at"] == newest)
    former = [row for row in rows.values() if not row["names"] and not row["left_by_build"]]
    assert former, "the image that had the name before was whole"
    user.podman("rmi", "-f", "localhost/tsa/n:1")


def test_a_copy_for_other_ids_is_its_images_own(agent: Agent, make: Make, registry: Registry) -> None:
    """For a workspace that runs as another user Podman keeps a copy of the layer, mapped to these ids."""
    ref = registry.put("team/mapped:1", 5 << 20, **SHELL)
    assert agent.call("image.pull", image=ref).data
    before = agent.call("image.usage").data["total_bytes"]
    assert usage_of(agent)[ref]["unique_bytes"] < 8 << 20
    make(image=ref, run_as={"uid": 1234, "gid": 1234}, start=False)
    assert usage_of(agent)[ref]["unique_bytes"] > 10 << 20
    assert agent.call("image.usage").data["total_bytes"] - before > 5 << 20


def test_containers_are_counted(agent: Agent, make: Make, user: User, image: str) -> None:
    before = usage_of(agent)[image]["containers"]
    make(start=False)
    created = user.podman("create", image).stdout.strip()
    assert usage_of(agent)[image]["containers"] == before + 2
    user.podman("rm", created)


def test_steps_of_builds_count_nothing(agent: Agent, user: User, family: tuple[str, str]) -> None:
    before = nameless(agent)
    user.run(
        "sh",
        "-c",
        f"printf 'FROM {family[0]}\\nRUN touch /a\\nRUN touch /b\\n' | podman build -q -t {family[0]} -",
    )
    assert nameless(agent) == before
    assert abs(usage_of(agent)[family[0]]["unique_bytes"] - (1 << 20)) < 40_000


def test_one_name_is_taken_off(agent: Agent, user: User, image: str, family: tuple[str, str]) -> None:
    before = nameless(agent)
    user.podman("tag", family[0], "localhost/tsa/other:1")
    assert agent.call("image.remove", image=family[0]).data == {"removed": True}
    assert agent.call("image.remove", image=family[0]).data == {"removed": False}
    assert usage_of(agent)["localhost/tsa/other:1"]["names"] == ["localhost/tsa/other:1"]
    assert agent.call("image.remove", image="localhost/tsa/other:1").data == {"removed": True}
    assert nameless(agent) == before
    assert agent.call("image.remove", image="localhost/tsa/never").data == {"removed": False}


def test_a_name_with_a_digest(agent: Agent, registry: Registry) -> None:
    tagged = registry.put("team/digest:1", Env=["PATH=/bin"])
    digest = agent.call("image.pull", image=tagged).data["digest"]
    by_digest = f"{tagged.rpartition(':')[0]}@{digest}"
    assert agent.call("image.remove", image=tagged).data == {"removed": True}
    agent.call("image.pull", image=by_digest)
    assert agent.call("image.inspect", image=by_digest).data["present"]
    assert agent.call("image.remove", image=by_digest).data == {"removed": True}
    assert not agent.call("image.inspect", image=by_digest).data["present"]


def test_a_container_keeps_its_image(agent: Agent, user: User, family: tuple[str, str]) -> None:
    rows = usage_of(agent)
    one, two = rows[family[0]]["image_id"], rows[family[1]]["image_id"]
    created = user.podman("create", family[0]).stdout.strip()
    refused = agent.call("image.remove", image=family[0])
    assert (refused.code, refused.message["message"]) == ("conflict", "a container needs the image")
    pruned = agent.call("image.prune", volumes=False, ids=[one, two, "0" * 64])
    assert pruned.data == {"removed": [two, "0" * 64], "kept": [one], "volumes": 0}
    assert family[0] in usage_of(agent) and family[1] not in usage_of(agent)
    user.podman("rm", created)
    assert agent.call("image.prune", volumes=False, ids=[one]).data["removed"] == [one]


def test_all_names_of_a_pruned_image_go(agent: Agent, user: User, family: tuple[str, str]) -> None:
    user.podman("tag", family[0], "localhost/tsa/other:1")
    row = usage_of(agent)[family[0]]
    assert sorted(row["names"]) == sorted([family[0], "localhost/tsa/other:1"])
    assert agent.call("image.prune", volumes=False, ids=[row["image_id"]]).data["removed"] == [
        row["image_id"]
    ]
    assert not set(row["names"]) & set(usage_of(agent))


def test_an_image_that_another_comes_from(
    agent: Agent, user: User, image: str, family: tuple[str, str]
) -> None:
    """A base may lose its name; what comes from it is whole."""
    base = usage_of(agent)[image]["image_id"]
    user.podman("tag", image, "localhost/tsa/base:1")
    user.run(
        "sh", "-c", f"printf 'FROM localhost/tsa/base:1\\nRUN touch /x\\n' | podman build -q -t {family[0]} -"
    )
    assert agent.call("image.remove", image="localhost/tsa/base:1").data == {"removed": True}
    assert usage_of(agent)[image]["image_id"] == base
    assert user.podman("run", "--rm", "--pull=never", family[0], "ls", "/x").stdout == "/x\n"


def test_a_damaged_image_hides_no_other(
    agent: Agent, user: User, image: str, family: tuple[str, str]
) -> None:
    """After an interrupted pull a layer may be missing: the list of Podman 4.3 fails as a whole then."""
    path = Path(user.home, ".local/share/containers/storage/overlay-images/images.json")
    before = path.read_text()
    rows = json.loads(before)
    for row in rows:
        if family[0] in row["names"]:
            row["layer"] = "0" * 64
    try:
        path.write_text(json.dumps(rows))
        podmans = user.podman("images", check=False)
        assert podmans.returncode != 0 or "storage may be corrupted" in podmans.stderr
        listed = {name: row for row in agent.call("image.list").data["images"] for name in row["names"]}
        assert listed[image]["size_bytes"] == usage_of(agent)[image]["size_bytes"] > 1_000_000
        assert family[0] in listed and family[0] in usage_of(agent)
    finally:
        path.write_text(before)


# --- files of a store that somebody made up ------------------------------------------------


ID, OTHER = "a" * 64, "b" * 64
NAME = "localhost/team/base:1"


def rows_of_store(tmp_path: Path, *images: Any, sizes: tuple[int, ...] = (5,)) -> list[dict[str, Any]]:
    """What the list has of a store whose images have a chain of layers of these sizes."""
    chain = [
        {"id": str(number), "parent": str(number - 1), "diff-size": size} for number, size in enumerate(sizes)
    ]
    for name, rows in (("overlay-layers/layers.json", chain), ("overlay-images/images.json", images)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(rows))
    return image_store.listed(Store(str(tmp_path), "overlay"))


def test_a_name_of_two_images_is_the_later_ones(tmp_path: Path) -> None:
    """As Podman reads it: the overview and the list of images were refused as a whole."""
    first = {"id": ID, "names": [NAME, "localhost/own:1"], "layer": "0"}
    found = rows_of_store(tmp_path, first, {"id": OTHER, "names": [NAME, NAME], "layer": "0"})
    assert [(row["image_id"], row["names"]) for row in found] == [(ID, ["localhost/own:1"]), (OTHER, [NAME])]


@pytest.mark.parametrize("name", ["a\ud800b:1", "a\0b:1", "a\u202eb:1"])
def test_a_name_that_is_no_text(tmp_path: Path, name: str) -> None:
    (row,) = rows_of_store(tmp_path, {"id": ID, "names": [name, NAME], "layer": "0"})
    assert row["names"] == [NAME]


@pytest.mark.parametrize(
    ("own", "sizes", "expected"),
    [
        ({"a": 2**70}, (5,), 2**62),
        ({}, (2**61, 2**61, 2**61), 2**62),
        ({"a": -3, "b": "x", "c": 2}, (5, -7), 7),
        (None, (5,), 5),
    ],
)
def test_sizes_that_no_disk_has(tmp_path: Path, own: Any, sizes: tuple[int, ...], expected: int) -> None:
    image = {"id": ID, "names": [NAME], "layer": str(len(sizes) - 1), "big-data-sizes": own}
    (row,) = rows_of_store(tmp_path, image, sizes=sizes)
    assert row["size_bytes"] == expected


@pytest.mark.parametrize(
    ("created", "expected"),
    [
        ("2026-11-29T16:27:43.5Z", "2026-11-29T16:27:43.000Z"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000Z"),
        ("0001-01-01T00:00:00Z", None),  # as an image has it that names no date
        ("9999-99-99T99:99:99Z", None),
        (None, None),
    ],
)
def test_a_date_that_is_none(tmp_path: Path, created: Any, expected: str | None) -> None:
    digest = "sha256:" + "c" * 64
    image = {"id": ID, "names": [NAME], "created": created, "digest": digest + "\0"}
    (row,) = rows_of_store(
        tmp_path, image, image | {"digest": digest}, {"id": 3}, 5, {"id": OTHER, "names": 5}
    )
    assert (row["created_at"], row["digest"]) == (expected, digest)
    (row,) = rows_of_store(tmp_path, image)
    assert row["digest"] is None


@pytest.mark.parametrize(
    "text", ["", "{", "[1]", "{}", '[{"id": 7}]', "[" * 100_000, '[{"id":"a","parent":"a","diff-size":-5}]']
)
def test_a_list_of_layers_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "overlay-layers").mkdir()
    (tmp_path / "overlay-layers/layers.json").write_text(text)
    store = Store(str(tmp_path), "overlay")
    found = image_store.layers(store)
    assert all(layer.size == 0 for layer in found.values())
    assert len(list(image_store.chain("a", found))) <= 1000


def test_a_store_without_lists(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "none"), "overlay")
    assert image_store.layers(store) == {}
    with pytest.raises(image_store.Failure):
        image_store.free_bytes(store.root)
