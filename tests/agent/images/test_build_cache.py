"""Which images may pass for steps of a build: those that were built here, and no stranger's."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from agent.images.test_builds import archive, lines_of
from agent.priv_ns import Agent, Registry, User

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
    ran = user.podman("run", "--rm", "--pull=never", REF.format(2), "cat", "/made")
    assert ran.stdout == "ours\n"
    user.podman("rmi", "-f", mimic)
    assert any("Using cache" in line for line in build(agent, image, 3, "RUN echo ours >/made"))
    user.podman("rmi", "-f", REF.format(2), REF.format(3))
    user.run("rm", "-r", place)


def store(tmp_path: Path, *images: dict[str, object]) -> Store:
    """A store with a base of two layers, a, then b, a layer c upon them and one, z, that stands alone."""
    parents = {"a": "", "b": "a", "c": "b", "z": ""}
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
        ({"layer": "c", "names": ["localhost/svc/tpl-x:1"], "names-history": OTHER}, False),
        ({"layer": "c", "names": ["localhost/svc/tpl-x:1"]}, True),
        ({"layer": "c"}, True),
        ({"layer": "c", "names-history": [f"docker.io/library/{'0' * 64}-tmp:latest"]}, True),
        ({"layer": "c", "names-history": [f"docker.io/evil/{'0' * 64}-tmp:latest"]}, False),
        ({"layer": "z", "names": OTHER}, True),
        ({"layer": "a", "names": OTHER}, True),
    ],
)
def test_what_could_pass_for_a_step(tmp_path: Path, image: dict[str, object], sound: bool) -> None:
    created = store(tmp_path, {"id": "other"} | image)
    assert build_cache.is_sound(created, [BASE], b"FROM r.example/base:1\n") is sound


def test_where_it_cannot_be_told(tmp_path: Path) -> None:
    created = store(tmp_path)
    assert build_cache.is_sound(created, [BASE], b"FROM r.example/base:1\n")
    assert not build_cache.is_sound(created, ["r.example/base"], b"FROM r.example/base\n")
    assert not build_cache.is_sound(created, [], b"FROM Scratch\n"), "any image at all stands on that"
    assert not build_cache.is_sound(Store("/nowhere", "overlay"), [BASE], b"")
