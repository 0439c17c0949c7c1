"""What Podman says of an image, or somebody in its place."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from svc_helper.agent.images import descriptions
from svc_helper.agent.images.descriptions import describe, foreign_platform, texts


def test_an_image() -> None:
    found = describe({"Id": "a" * 64, "Digest": "sha256:" + "b" * 64, "Size": 7})
    assert found == {"image_id": "a" * 64, "digest": "sha256:" + "b" * 64, "size_bytes": 7}


@pytest.mark.parametrize("size", [-1, 2**62, True, "7", None])
def test_a_size_that_is_none(size: Any) -> None:
    found = describe({"Id": "a" * 999, "Size": size})
    assert found == {"image_id": "a" * 64, "digest": None, "size_bytes": None}


@pytest.mark.parametrize(
    ("own", "image", "foreign"),
    [
        ("amd64", {"Os": "linux", "Architecture": "amd64"}, None),
        ("amd64", {"Architecture": "386"}, None),
        ("amd64", {"Os": "linux", "Architecture": "arm64"}, "linux/arm64"),
        ("arm64", {"Os": "linux", "Architecture": "amd64"}, "linux/amd64"),
        ("amd64", {"Os": "windows", "Architecture": "amd64"}, "windows/amd64"),
        ("amd64", {"Os": "", "Architecture": ""}, None),
        ("amd64", {"Architecture": ["x"]}, None),
        ("amd64", {"Architecture": "x" * 99}, None),
    ],
)
def test_a_platform_of_others(
    monkeypatch: pytest.MonkeyPatch, own: str, image: dict[str, Any], foreign: str | None
) -> None:
    machine = {"amd64": "x86_64", "arm64": "aarch64"}[own]
    monkeypatch.setattr(descriptions.os, "uname", lambda: SimpleNamespace(machine=machine))
    assert foreign_platform(image) == foreign


def test_names() -> None:
    assert texts({"Names": ["a", 7, None, "b"]}, "Names") == ["a", "b"]
    assert texts({"Names": "a"}, "Names") == texts({}, "Names") == []
