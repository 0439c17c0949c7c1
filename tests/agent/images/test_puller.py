"""What Podman says during a pull, without Podman."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from svc_helper.agent.calls import Failure
from svc_helper.agent.containers.logs import frames, tail_of
from svc_helper.agent.images.images import allowed
from svc_helper.agent.images.puller import Layers, classify, lock_path, objects


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


def test_a_stream_of_objects_comes_in_any_parts() -> None:
    text = b'{"a":1}\n\n{"b":2}\n{"c":3}'
    for size in (1, 3, 100):
        parts = (text[start : start + size] for start in range(0, len(text), size))
        assert list(objects(parts)) == [{"a": 1}, {"b": 2}, {"c": 3}]
    for rubbish in (b"[1]\n", b"{\n", b"x" * 70_000, b"[" * 60_000 + b"\n"):
        with pytest.raises(Failure):
            list(objects(iter([rubbish])))


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("reading manifest 1 in reg/x: manifest unknown: manifest unknown", "not_found"),
        ("reading manifest 1 in reg/x: name unknown: repository name not known to registry", "not_found"),
        ("pinging container registry reg: dial tcp 10.0.0.1:443: connect: connection refused", "registry"),
        ("dial tcp: lookup reg.example: no such host", "registry"),
        ("reading manifest 1 in reg/x: unauthorized: authentication required", "registry"),
        ("requested access to the resource is denied", "registry"),
        ("http: server gave http response to https client", "registry"),
        ("tls: failed to verify certificate: x509: certificate signed by unknown authority", "registry"),
        ("writing blob: storing blob to file: write /var/tmp/x: no space left on device", "storage_full"),
        ("something that nobody foresaw", "failed"),
    ],
)
def test_the_reason_of_a_failure(arguments: str, code: str) -> None:
    found, text = classify(arguments)
    assert found == code
    assert arguments not in text


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


def test_rows_of_a_log() -> None:
    raw = (
        b"cut off in the middle\n2026-01-01T00:00:00Z stdout F one\n2026-01-01T00:00:00Z stdout P two \n"
        b"2026-01-01T00:00:00Z stderr F other\n2026-01-01T00:00:00Z stdout F parts\nrubbish\nx y Z w\n"
        b"2026-01-01T00:00:00Z stdout P begun"
    )
    assert tail_of(raw, 10, from_start=False) == [b"one", b"two parts", b"other", b"begun"]
    assert tail_of(raw, 2, from_start=True) == [b"other", b"begun"]
    assert tail_of(b"", 5, from_start=True) == []


def test_frames_of_a_stream() -> None:
    text = b"\1\0\0\0\0\0\0\3abc\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\2de"
    for size in (1, 5, 100):
        parts = (text[start : start + size] for start in range(0, len(text), size))
        assert b"".join(frames(parts)) == b"abcde"
    with pytest.raises(Failure):
        list(frames(iter([b"\1\0\0\0\xff\xff\xff\xff" + b"x" * 100])))
