"""Frames whose content is JSON: bounded and typed, whoever sends them."""

from __future__ import annotations

from typing import Any

import pytest

from svc_helper.wire import terminal_frames as frames


def test_there_and_back() -> None:
    frame = frames.facts(frames.SIZE, {"cols": 80, "rows": 1000})
    assert frame == b'r{"cols":80,"rows":1000}'
    assert frames.read_size(frames.read_facts(frame[1:])) == (80, 1000)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{", b"1", b'{"a":1,"a":2}', b'{"a":NaN}', b"[" * 2000, b"{}" + b" " * 5000, b"\xff"],
)
def test_what_is_no_object(content: bytes) -> None:
    with pytest.raises(frames.ProtocolError):
        frames.read_facts(content)


@pytest.mark.parametrize("side", [0, -1, 1001, True, "80", 80.0, None, [], 10**30])
def test_what_is_no_size(side: Any) -> None:
    for size in ({"cols": side, "rows": 1}, {"cols": 1, "rows": side}, {}):
        with pytest.raises(frames.ProtocolError):
            frames.read_size(size)
