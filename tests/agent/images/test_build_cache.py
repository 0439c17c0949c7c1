"""Which images may pass for steps of a build: those that were built here, and no stranger's."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from agent.images.test_builds import archive, lines_of
from agent.priv_ns import Agent, User
from agent.registry import Registry

from svc_helper.agent.images import build_cache
from svc_helper.agent.images.store import Store

pytestmark = pytest.mark.root
REF = "localhost/svc/tpl-cache:{:016x}"
BASE = "r.example/base:1"


def build(agent: Agent, image: str, number: int, *lines: str) -> list[str]:
    """Build from the image; what was said."""
    text = "\n".join((f"FROM {image}", *lines, ""))
    ref = REF.format(number)
    answer = agent.call("image.build", give=archive(text), image=ref, bases=[image], triggers=False)
    assert answer.data
    return lines_of(answer)


def test_an_image_of_a_registry_does_not_pass_for_a_step(
    agent: Agent, user: User, registry: Registry, image: str, directory: Path
) -> None:
    """Its history says that it is what the next build is to do, and it is something else."""
    build(agent, image, 1, "RUN echo theirs >/made")
    place = f"{user.home}/mimic"
    user.podman("push", "-q", REF.format(1), f"dir:{place}")
    user.podman("rmi", REF.format(1))
    manifest = json.loads(user.run("cat", f"{place}/manifest.json").stdout)
    config = user.run("cat", f"{place}/{manifest['config']['digest'].removeprefix('sha256:')}").stdout
    forged = config.replace("echo theirs", "echo ours")
    assert forged != config
    digest = hashlib.sha256(forged.encode()).hexdigest()
    manifest["config"] |= {"digest": f"sha256:{digest}", "size": len(forged.encode())}
    script = 'printf %s "$2" >"$1/$4"; printf %s "$3" >"$1/manifest.json"'
    user.run("sh", "-c", script, "sh", place, forged, json.dumps(manifest), digest)
    mimic = f"{registry.host}/mimic:1"
    user.podman("pull", "-q", f"dir:{place}")
    user.podman("push", "-q", "--tls-verify=false", digest, mimic)
    user.podman("rmi", digest)
    assert agent.call("image.pull", image=mimic).data
    said = build(agent, image, 2, "RUN echo ours >/made")
    assert not any("Using cache" in line for line in said), said
    assert f"steps of earlier builds are not reused: {mimic} was not built here" in said[0]
    ran = user.podman("run", "--rm", "--pull=never", REF.format(2), "cat", "/made")
    assert ran.stdout == "ours\n"
    user.podman("rmi", "-f", mimic)
    assert any("Using cache" in line for line in build(agent, image, 3, "RUN echo ours >/made"))
    user.podman("rmi", "-f", REF.format(2), REF.format(3))
    user.run("rm", "-r", place)


def store(tmp_path: Path, *images: dict[str, object]) -> Store:
    """A store with a base of two layers, a, then b, the layers c and d upon them, and z that stands alone."""
    parents = {"a": "", "b": "a", "c": "b", "d": "c", "z": ""}
    for name, rows in (
        ("layers", [{"id": one, "parent": parent} for one, parent in parents.items()]),
        ("images", [{"id": "base", "names": [BASE], "names-history": [BASE], "layer": "b"}, *images]),
    ):
        (tmp_path / f"overlay-{name}").mkdir()
        (tmp_path / f"overlay-{name}" / f"{name}.json").write_text(json.dumps(rows))
    return Store(str(tmp_path), "overlay")


OTHER = ["r.example/other:1"]


@pytest.mark.parametrize(
    ("image", "sound"),
    [
        ({"layer": "c", "names": OTHER}, False),
        ({"layer": "c", "names-history": OTHER}, False),
        ({"layer": "b", "names": OTHER}, False),
        ({"layer": "z", "mapped-layers": ["c"], "names": OTHER}, False),
        ({"layer": "unknown", "names": OTHER}, False),
        ({"layer": "c", "names": ["localhost/svc/tpl-x:1"], "names-history": OTHER}, False),
        ({"layer": "c", "names": ["localhost/svc/tpl-x:1"]}, True),
        ({"layer": "c"}, True),
        ({"layer": "c", "names-history": [f"docker.io/library/{'0' * 64}-tmp:latest"]}, True),
        ({"layer": "c", "names-history": [f"docker.io/evil/{'0' * 64}-tmp:latest"]}, False),
        ({"layer": "c", "names": OTHER, "id": "1" * 64}, True),
        ({"layer": "z", "names": OTHER}, True),
        ({"layer": "a", "names": OTHER}, True),
        # Two layers above the base: no step starts from the one between, unless svc built that.
        ({"layer": "d", "names": OTHER}, True),
    ],
)
def test_what_could_pass_for_a_step(tmp_path: Path, image: dict[str, object], sound: bool) -> None:
    created = store(tmp_path, {"id": "other"} | image)
    why = build_cache.obstacle(created, [BASE], b"FROM r.example/base:1\n", frozenset({"1" * 64}))
    assert (not why) is sound
    assert sound or "was not built here" in why


def test_above_a_step_that_svc_built(tmp_path: Path) -> None:
    created = store(tmp_path, {"id": "own", "layer": "c"}, {"id": "other", "layer": "d", "names": OTHER})
    assert OTHER[0] in build_cache.obstacle(created, [BASE], b"", frozenset())


def test_a_base_may_pass_for_a_step_upon_another(tmp_path: Path) -> None:
    created = store(tmp_path, {"id": "other", "layer": "c", "names": OTHER})
    assert build_cache.obstacle(created, OTHER, b"", frozenset()) == ""
    assert OTHER[0] in build_cache.obstacle(created, [BASE, *OTHER], b"", frozenset())


def test_a_base_is_no_step_upon_itself(tmp_path: Path) -> None:
    """Such as after a build with ENV only: its image has the base's top layer."""
    created = store(tmp_path, {"id": "own", "layer": "b", "names": ["localhost/svc/tpl-x:1"]})
    assert build_cache.obstacle(created, [BASE], b"", frozenset()) == ""


def test_own_images_on_another_base_do_not_count(tmp_path: Path) -> None:
    created = store(tmp_path, {"id": "own", "layer": "z"}, {"id": "flat", "layer": "z", "names": OTHER})
    assert build_cache.obstacle(created, [BASE], b"", frozenset()) == ""


def test_where_it_cannot_be_told(tmp_path: Path) -> None:
    created = store(tmp_path, {"id": "flat", "layer": "z", "names": OTHER})
    assert not build_cache.obstacle(created, [BASE], b"FROM r.example/base:1\n", frozenset())
    assert build_cache.obstacle(created, ["r.example/base"], b"FROM r.example/base\n", frozenset())
    assert build_cache.obstacle(created, [], b"FROM Scratch\n", frozenset()), "one layer stands on nothing"
    assert build_cache.obstacle(Store("/nowhere", "overlay"), [BASE], b"", frozenset())


def test_a_base_by_its_tag_and_digest(tmp_path: Path) -> None:
    """The store lists it without the tag."""
    pinned = "r.example/pinned@sha256:" + "0" * 64
    created = store(tmp_path, {"id": "pinned", "layer": "c", "names": [pinned, "r.example/pinned:1"]})
    assert build_cache.obstacle(created, [pinned.replace("@", ":1@")], b"", frozenset()) == ""


def test_what_was_built_is_recorded(tmp_path: Path) -> None:
    path = f"{tmp_path}/new/images"
    ids = [f"{number:064x}" for number in range(1003)]
    assert build_cache.built_here(path) == frozenset()
    for image_id in (*ids[:3], ids[0]):
        build_cache.record(path, image_id)
    assert Path(path).read_text().split() == [ids[1], ids[2], ids[0]]
    Path(path).write_text("\n".join(ids))
    build_cache.record(path, ids[0])
    assert len(build_cache.built_here(path)) == 1000 and ids[0] in build_cache.built_here(path)
    Path(path).write_bytes(b"\xff\n../x\n" + ids[5].encode())
    assert build_cache.built_here(path) == {ids[5]}


def test_the_image_of_an_unchanged_rebuild_leaves_none_without_a_name(
    agent: Agent, user: User, image: str
) -> None:
    """ "No unnamed 545 MB image left by an unchanged rebuild"; its own images stay trusted under any name."""
    lines = ("RUN echo one >/made", "RUN date +%s%N >/when")
    build(agent, image, 1, *lines)
    first = user.podman("image", "inspect", "--format={{.Id}}", REF.format(1)).stdout
    user.podman("tag", REF.format(1), "r.example/mine:1")
    assert any("Using cache" in line for line in build(agent, image, 1, *lines))
    user.podman("untag", REF.format(1), "r.example/mine:1")
    user.podman("tag", first.strip(), REF.format(1))
    listed = ("images", "--all", "--quiet", "--filter=dangling=true")
    before = user.podman(*listed).stdout.split()
    path = f"{user.home}/.cache/svc/built-images"
    user.run("sh", "-c", f': >"{path}"')  # as if another had built it
    said = build(agent, image, 1, *lines)
    assert "r.example/mine:1 was not built here" in said[0], said
    assert user.podman("image", "inspect", "--format={{.Id}}", REF.format(1)).stdout != first
    assert user.podman("image", "exists", first.strip(), check=False).returncode == 1
    assert set(user.podman(*listed).stdout.split()) <= set(before)
    user.podman("rmi", "-f", REF.format(1))
