"""What Podman says of an image, or somebody in its place."""

from __future__ import annotations

from typing import Any

import pytest

from svc_helper.agent.images.descriptions import describe, texts


def test_an_image() -> None:
    found = describe({"Id": "a" * 64, "Digest": "sha256:" + "b" * 64, "Size": 7})
    assert found == {"image_id": "a" * 64, "digest": "sha256:" + "b" * 64, "size_bytes": 7}


@pytest.mark.parametrize("size", [-1, 2**62, True, "7", None])
def test_a_size_that_is_none(size: Any) -> None:
    found = describe({"Id": "a" * 999, "Size": size})
    assert found == {"image_id": "a" * 64, "digest": None, "size_bytes": None}


def test_names() -> None:
    assert texts({"Names": ["a", 7, None, "b"]}, "Names") == ["a", "b"]
    assert texts({"Names": "a"}, "Names") == texts({}, "Names") == []
