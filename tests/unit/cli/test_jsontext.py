"""The quick JSON reads and writes what the standard library's does."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.cli.jsontext import dumps, loads

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(values)
def test_what_is_written_is_read_back(value: object) -> None:
    assert json.loads(dumps(value)) == value
    assert loads(json.dumps(value, indent=1, ensure_ascii=True).encode()) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "[1,]",
        "{'a': 1}",
        "nul",
        "{} {}",
        "1 2",
        "NaN",
        "[Infinity]",
        '"\t"',
        "\ufeff{}",
        '{"a":}',
    ],
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        loads(text.encode())


def test_blanks_around_are_json() -> None:
    assert loads(b' \r\n\t{"a" : [ 1 , 2.5 ] }\n') == {"a": [1, 2.5]}


def test_depth_has_an_end() -> None:
    with pytest.raises(RecursionError):
        loads(b"[" * 10**6)


def test_bad_utf8_is_refused() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        loads(b'"\xff"')


def test_a_lone_surrogate_is_written_as_an_escape() -> None:
    assert dumps({"a": ["\udcff"]}) == b'{"a": ["\\udcff"]}'
