"""Strict JSON: each refusal has its own text, and none repeats what was sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_helper.wire.strict_json import Malformed, load_object

# fmt: off
REFUSED = [
    (b"\xff", "is not JSON: Expecting value at line 1 column 1|is not UTF-8"),
    (b'{"a": "\xff"}', "is not UTF-8"),
    (b'{"a": "\xc0\xb1"}', "is not UTF-8"),
    (b"", "is not JSON: Expecting value at line 1 column 1"),
    (b'{"a":\n nul}', "is not JSON: Expecting value at line 2 column 2"),
    (b'{"a": "\n"}', "is not JSON: Invalid control character at line 1 column 8"),
    (b'{"a": "b', "is not JSON: Unterminated string starting at line 1 column 7"),
    (b"{} {}", "is not JSON: Extra data at line 1 column 4"),
    (b"[]", "is not a JSON object"),
    (b"null", "is not a JSON object"),
    (b'{"a": 1, "a": 1}', "has a duplicate key"),
    (b'{"b": {"a": 1, "\\u0061": 2}}', "has a duplicate key"),
    (b'{"a": NaN}', "has NaN, which is not a JSON number"),
    (b'{"a": -Infinity}', "has -Infinity, which is not a JSON number"),
    (b'{"a": 1e999}', "has a number out of range"),
    (b'{"a": ' + b"9" * 5000 + b"}", "has a number with too many digits"),
    (b'{"a": "\\ud800"}', "has a lone surrogate, which is not text"),
    (b'{"\\udc00": 1}', "has a lone surrogate, which is not text"),
    (b'{"a": [[[]]]}', "nests deeper than 3"),
    (b'{"a": ' + b"[" * 100_000, "nests deeper than 3"),
    (b'{"a": [' + b"{}," * 50 + b"{}]}", "has too many lists and objects"),
]
# fmt: on


@pytest.mark.parametrize(("untrusted", "why"), REFUSED, ids=lambda value: repr(value[:30]))
def test_what_is_refused(untrusted: bytes, why: str) -> None:
    with pytest.raises(Malformed, match=f"^(?:{why})$"):
        load_object(untrusted, depth_max=3, brackets_max=100 if b"{}," in untrusted else None)


def test_what_is_at_its_limit_is_read() -> None:
    assert load_object(b'{"a": [[]], "b": "[[[[{{\\"[["}', depth_max=3, brackets_max=6)
    assert load_object(b'{"a": "\\ud83d\\ude00"}', depth_max=1) == {"a": "\U0001f600"}


@given(
    st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text()))
)
def test_json_is_read_as_json(value: dict[str, Any]) -> None:
    assert load_object(json.dumps(value, ensure_ascii=False).encode(), depth_max=2) == value


@given(st.binary(max_size=200))
def test_garbage_is_refused(untrusted: bytes) -> None:
    try:
        assert isinstance(load_object(untrusted, depth_max=8), dict)
    except Malformed:
        pass
