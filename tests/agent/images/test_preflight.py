"""What a pull would download, asked of a real registry, and what does not count."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from agent.priv_ns import Agent, User
from agent.registry import Registry

from svc_helper.agent.calls import Failure
from svc_helper.agent.images import preflight
from svc_helper.agent.images.preflight import Manifest, Needs
from svc_helper.agent.images.store import Store
from svc_helper.agent.podman.commands import Done

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def images(registry: Registry, user: User) -> dict[str, str]:
    """One image in each of the forms that a registry may have; none in the store."""
    refs = {form: f"{registry.host}/team/form:{form}" for form in ("oci", "v2s2", "list")}
    oci = registry.put("team/form:oci", 3 << 20, Env=["FORM=oci"])
    user.podman("pull", "-q", oci)
    user.podman("push", "-q", "--tls-verify=false", "--format=v2s2", oci, f"docker://{refs['v2s2']}")
    other = registry.put("team/other:1", 1 << 20, Env=["FORM=other"])
    user.podman("pull", "-q", other)
    user.podman("manifest", "create", "tsa-list")
    user.podman("manifest", "add", "--arch=mips64", "tsa-list", other)
    user.podman("manifest", "add", "tsa-list", oci)
    user.podman("manifest", "push", "--tls-verify=false", "--all", "tsa-list", f"docker://{refs['list']}")
    user.podman("manifest", "rm", "tsa-list")
    user.podman("manifest", "create", "tsa-foreign")
    user.podman("manifest", "add", "--arch=mips64", "tsa-foreign", other)
    refs["foreign"] = f"{registry.host}/team/form:foreign"
    user.podman("manifest", "push", "--tls-verify=false", "tsa-foreign", f"docker://{refs['foreign']}")
    user.podman("manifest", "rm", "tsa-foreign")
    user.podman("rmi", "-f", oci, other)
    return refs


@pytest.fixture
def tidy(user: User, images: dict[str, str]) -> Iterator[None]:
    """The images are out of the store again afterwards."""
    yield
    for ref in images.values():
        user.podman("rmi", "-f", ref, check=False)


@pytest.mark.parametrize("form", ["oci", "v2s2", "list"])
def test_what_is_to_come(agent: Agent, images: dict[str, str], tidy: None, form: str) -> None:
    ref = images[form]
    found = agent.call("image.preflight", images=[ref]).data
    (row,) = found["images"]
    assert (row["image"], row["present"]) == (ref, False)
    assert 3 << 20 < row["download_bytes"] == found["download_bytes"] < 6 << 20
    assert found["download_bytes"] < found["needed_bytes"] <= found["download_bytes"] * 2
    assert found["free_bytes"] > found["needed_bytes"] and found["store"].endswith("/containers/storage")
    pulled = agent.call("image.pull", image=ref)
    assert row["digest"] == pulled.data["digest"]
    usage = agent.call("image.usage").data["images"]
    assert [one["digest"] for one in usage if ref in one["names"]] == [row["digest"]]
    after = agent.call("image.preflight", images=[ref]).data
    assert (after["download_bytes"], after["needed_bytes"], after["images"][0]["present"]) == (0, 0, True)
    assert found["present_bytes"] < 3 << 20 < after["present_bytes"] < 6 << 20


def test_layers_that_are_there_do_not_count(agent: Agent, images: dict[str, str], tidy: None) -> None:
    first = agent.call("image.preflight", images=[images["oci"], images["list"], images["oci"]]).data
    alone = agent.call("image.preflight", images=[images["oci"]]).data
    assert len(first["images"]) == 2
    assert first["download_bytes"] - alone["download_bytes"] < 10_000, "the layer of both comes once"
    agent.call("image.pull", image=images["oci"])
    after = agent.call("image.preflight", images=[images["list"]]).data
    assert after["images"][0]["present"] is False and after["download_bytes"] < 10_000


def test_a_name_that_has_moved_on(agent: Agent, registry: Registry, user: User) -> None:
    ref = registry.put("team/moving:1", 1 << 20, Env=["N=1"])
    agent.call("image.pull", image=ref)
    old = f"{registry.host}/team/old:1"
    user.podman("tag", ref, old)
    registry.put("team/moving:1", 2 << 20, Env=["N=2"])
    user.podman("tag", old, ref)
    (row,) = agent.call("image.preflight", images=[ref]).data["images"]
    assert row["present"] and row["download_bytes"] > 2 << 20
    user.podman("rmi", "-f", old, ref)


def test_refusals_are_those_of_a_pull(agent: Agent, registry: Registry, images: dict[str, str]) -> None:
    for ref, code, message in (
        (f"{registry.host}/none:1", "image_not_in_registry", "the registry has no such image"),
        (
            f"{images['oci'].rpartition(':')[0]}@sha256:{'0' * 64}",
            "image_not_in_registry",
            "the registry has no such image",
        ),
        ("quay.io/x/y:1", "registry", "images of this registry are not allowed on this host"),
    ):
        answer = agent.call("image.preflight", images=[ref])
        assert (answer.code, answer.message["message"]) == (code, message)
    answer = agent.call("image.preflight", images=[images["foreign"]])
    assert answer.code == "wrong_architecture" and "other platforms" in answer.message["message"]
    registry.allow([{"host": "127.0.0.1:5999", "path_prefix": "", "insecure": True}])
    try:
        answer = agent.call("image.preflight", images=["127.0.0.1:5999/x/y:1"])
    finally:
        registry.allow([{"host": registry.host, "path_prefix": "", "insecure": True}])
    assert (answer.code, answer.message["message"]) == (
        "registry_unreachable",
        "the registry does not answer",
    )


# --- without a registry -----------------------------------------------------------------


def layer(number: int, size: int) -> dict[str, object]:
    """A layer of a manifest."""
    kind = "application/vnd.oci.image.layer.v1.tar+gzip"
    return {"mediaType": kind, "digest": f"sha256:{number:064x}", "size": size}


GOOD = {"config": {"digest": "sha256:c", "size": 10}, "layers": [layer(1, 100), layer(2, 50)]}


def test_a_registry_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """skopeo waits for ever for whoever has accepted its connection; the call's own time ends it."""

    def wait(*_: object) -> Done:
        raise Failure("timeout", "the operation timed out")

    monkeypatch.setattr(preflight.commands, "run", wait)
    monkeypatch.setattr(preflight.logins, "find", lambda *_: "")
    podman: Any = SimpleNamespace(home=SimpleNamespace(registries_conf="/x"))
    with pytest.raises(Failure, match="the registry did not answer in time") as refused:
        preflight.read(podman, cast(Any, None), "quay.io/a/b:1")
    assert refused.value.code == "registry_timeout"


def test_without_skopeo(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(preflight.commands, "run", lambda *_: Done(127, b"", b"env: 'skopeo': No such file"))
    nothing = dict.fromkeys(("registries_conf", "registries", "runtime", "home", "user"), f"{tmp_path}/x")
    podman: Any = SimpleNamespace(home=SimpleNamespace(**nothing))
    with pytest.raises(Failure, match="skopeo is not installed"):
        preflight.read(podman, cast("Any", None), "r.example/a:1")


@pytest.mark.parametrize(
    ("version", "layers", "most"),
    [
        ("4.3.1", 128, None),
        ("4.3.1", 129, 128),
        ("5.4.2", 129, None),
        ("5.4.2", 501, 500),
        ("dev", 500, None),
    ],
)
def test_more_layers_than_podman_mounts(version: str, layers: int, most: int | None) -> None:
    podman: Any = SimpleNamespace(ask=lambda *_: {"Version": version})
    if most is None:
        preflight._require_mountable(podman, cast("Any", None), layers)
        return
    with pytest.raises(Failure, match=f"{layers} layers; Podman mounts at most {most}") as caught:
        preflight._require_mountable(podman, cast("Any", None), layers)
    assert caught.value.code == "image_too_deep"


def test_sums(tmp_path: object) -> None:
    manifest = preflight._manifest(GOOD, "")
    needs = Needs({f"sha256:{2:064x}"})
    assert needs.add(manifest) == 110
    assert needs.add(manifest) == 10
    other = Manifest("", "", 0, [("sha256:x", 1000)])
    assert needs.add(other) == 1000
    assert needs.add(Manifest("", "", 5, [("sha256:y", 70)]), is_current=True) == 0
    assert needs.present_bytes == 50 + 70
    assert (needs.download_bytes, needs.unpacked_bytes) == (1120, 1100), "no guess: what is certain"
    room = needs.room(Store("/var/tmp", "overlay"))
    assert (room["needed_bytes"], room["store"]) == (2220, "/var/tmp")


@pytest.mark.parametrize(
    "hostile",
    [
        {},
        {"config": 7, "layers": []},
        {"config": {}, "layers": []},
        GOOD | {"layers": [7]},
        GOOD | {"layers": [layer(1, -1)]},
        GOOD | {"layers": [layer(1, 2**60)]},
        GOOD | {"layers": [{"digest": "../../x", "size": 1}]},
        GOOD | {"layers": [layer(1, 1)] * 5000},
        GOOD | {"layers": [layer(1, True)]},
    ],
)
def test_a_manifest_that_is_none(hostile: dict[str, object]) -> None:
    with pytest.raises(Failure, match="is no manifest of an image") as caught:
        preflight._manifest(hostile, "")
    assert caught.value.code == "image_unusable"


@pytest.mark.parametrize("sent", [b"<html>Sign in</html>", b"[1]", b""])
def test_a_page_in_place_of_a_manifest(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    """It is not Podman that was not understood."""
    monkeypatch.setattr(preflight.commands, "run", lambda *_: Done(0, sent, b""))
    monkeypatch.setattr(preflight.logins, "find", lambda *_: "")
    podman: Any = SimpleNamespace(home=SimpleNamespace(registries_conf="/x"))
    with pytest.raises(Failure, match="is no manifest of an image"):
        preflight.read(podman, cast("Any", None), "r.example/a:1")


def test_a_list_without_this_platform() -> None:
    for hostile in (
        None,
        7,
        [],
        [7],
        [{"platform": 7}],
        [{"platform": {"os": "linux", "architecture": "z80"}}],
    ):
        with pytest.raises(Failure):
            preflight._for_this_platform(hostile)
