"""Packing and unpacking: what goes in comes out, and no frame takes long to refuse."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svc_helper.wire.protocol import DEPTH_MAX, MESSAGE_MAX, ProtocolError, decode, encode

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@QUICK
@given(value=json_values)
def test_what_is_encoded_is_decoded_again(value: Any) -> None:
    try:
        frame = encode({"value": value})
    except ProtocolError:
        return
    try:
        assert decode(frame) == {"value": value}
    except ProtocolError as error:
        assert "nests deeper" in str(error)


def test_depth_counts_no_brackets_in_strings() -> None:
    assert decode(json.dumps({"text": "[{" * 1000 + '\\"[' * 50}).encode())["text"].startswith("[{")
    inner: Any = []
    for _ in range(DEPTH_MAX - 2):
        inner = [inner]
    assert decode(encode({"x": inner}))
    with pytest.raises(ProtocolError):
        decode(encode({"x": [inner]}))


def test_an_answer_of_very_many_parts_is_refused_before_it_is_parsed() -> None:
    """4 MiB of them would hold Python's lock for a second and more."""
    rows = [{"id": f"ws-{number:08}", "status": "running"} for number in range(30_000)]
    assert decode(json.dumps({"rows": rows}).encode())["rows"] == rows
    with pytest.raises(ProtocolError, match="too many lists and objects"):
        decode(b'{"rows":[' + b"{}," * 1_000_000 + b"{}]}")


@pytest.mark.parametrize(
    "part", [b'"', b'\\"', b'{"', b'"\\', b"[", b"[]", b'[""', b"1,", b"\\u0000", b"\xff", b'"a":', b"1e9"]
)
def test_no_frame_takes_long(part: bytes) -> None:
    for frame in (
        part * (MESSAGE_MAX // len(part)),
        b'{"a":"' + part * ((MESSAGE_MAX - 8) // len(part)) + b'"}',
    ):
        started = time.process_time()
        with contextlib.suppress(ProtocolError):
            decode(frame)
        assert time.process_time() - started < 0.1
