"""What Podman says during a pull, without Podman."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from svc_helper.agent.calls import Failure
from svc_helper.agent.images.images import allowed
from svc_helper.agent.images.puller import Layers, lock_path, objects, pull


def test_layers_are_summed_up() -> None:
    layers = Layers()
    layers.note({"id": "a", "status": "Pulling fs layer", "progressDetail": {}})
    layers.note({"id": "a", "status": "Downloading", "progressDetail": {"current": 10, "total": 100}})
    layers.note({"id": "b", "status": "Downloading", "progressDetail": {"current": 70, "total": 50}})
    assert layers.progress() == {"current": 60, "total": 150, "unit": "bytes", "text": "Downloading"}
    layers.note({"id": "a", "status": "Download complete", "progressDetail": {}})
    assert layers.progress()["current"] == 150
    for rubbish in (
        {},
        {"id": 7},
        {"id": "c", "progressDetail": {"current": -1, "total": 2**60}},
        {"status": "x" * 9000},
    ):
        layers.note(rubbish)
    assert (layers.progress()["total"], len(layers.progress()["text"])) == (150, 100)


@pytest.mark.parametrize(
    "words",
    [
        b"reading manifest 1 in reg.example/base: manifest unknown",
        b'{"cause":"x","message":"reading manifest 1 in reg.example/base: manifest unknown","response":404}',
    ],
    ids=["Podman 4", "Podman 5"],
)
def test_a_pull_that_podman_refuses(words: bytes) -> None:
    ours, podmans = socket.socketpair()
    with podmans:
        podmans.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s" % (len(words), words))
        with pytest.raises(Failure) as raised:
            list(pull(ours, "reg.example/base:1"))
    assert raised.value.code == "image_not_in_registry"
    assert raised.value.engine == "reading manifest 1 in reg.example/base: manifest unknown"


def test_a_stream_of_objects_comes_in_any_parts() -> None:
    text = b'{"a":1}\n\n{"b":2}\n{"c":3}'
    for size in (1, 3, 100):
        parts = (text[start : start + size] for start in range(0, len(text), size))
        assert list(objects(parts)) == [{"a": 1}, {"b": 2}, {"c": 3}]
    for rubbish in (b"[1]\n", b"{\n", b"x" * 70_000, b"[" * 60_000 + b"\n"):
        with pytest.raises(Failure):
            list(objects(iter([rubbish])))


def test_locks_have_short_plain_names() -> None:
    name = lock_path("/run/user/1/svc", "reg.example/" + "x" * 200).rpartition("/")[2]
    assert len(name) < 32
    assert name != lock_path("/run/user/1/svc", "reg.example/y").rpartition("/")[2]


def test_the_policy(tmp_path: Path) -> None:
    policy = tmp_path / "registries.json"
    entries = [
        {"host": "reg.example", "path_prefix": "team/", "insecure": False},
        {"host": "127.0.0.1:5000", "path_prefix": "", "insecure": True},
    ]
    policy.write_text(json.dumps({"registries": entries}))
    for image, ok in (
        ("reg.example/team/x:1", True),
        ("reg.example/team", True),
        (f"reg.example/team/x:1@sha256:{'0' * 64}", True),
        ("reg.example/teams/x", False),
        ("reg.example/x/team", False),
        ("reg.example.evil/team/x", False),
        ("reg.example:443/team/x", False),
        ("127.0.0.1:5000/anything:tag", True),
        ("127.0.0.1/anything", False),
    ):
        assert allowed(str(policy), image) is ok, image
    for rubbish in ("", "{", "7", '"x"', '{"registries": 7}', '{"registries": [7]}', "[[]]"):
        policy.write_text(rubbish)
        assert not allowed(str(policy), "reg.example/team/x"), rubbish
    assert not allowed(str(tmp_path / "missing"), "reg.example/team/x")
