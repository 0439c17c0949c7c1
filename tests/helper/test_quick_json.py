"""The quick JSON reads and writes what the standard library's does, without loading it."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_helper import interpreter
from svc_helper.wire.quick_json import dumps, loads

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(values)
def test_what_is_written_is_read_back(value: object) -> None:
    assert dumps(value) == json.dumps(value)
    for text in (
        dumps(value),
        json.dumps(value, indent=1),
        json.dumps(value, indent=1, ensure_ascii=False) + "\n",
    ):
        assert loads(text) == value


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
        "{}{}",
        "1 2",
        "NaN",
        "[Infinity]",
        '"\t"',
        '{"a": "\n"}',
        "\ufeff{}",
        '{"a":}',
    ],
)
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        loads(text)


def test_blanks_around_are_json() -> None:
    assert loads(' \r\n\t{"a" : [ 1 , 2.5 ] }\n') == {"a": [1, 2.5]}


def test_depth_has_an_end() -> None:
    with pytest.raises(RecursionError):
        loads("[" * 10**6)


def test_what_json_does_not_have_is_not_written() -> None:
    with pytest.raises(TypeError):
        dumps({"a": object()})
    with pytest.raises(ValueError):
        dumps(math.nan)


def test_a_lone_surrogate_is_written_as_an_escape() -> None:
    assert dumps({"a": ["\udcff"]}) == '{"a": ["\\udcff"]}'


@pytest.mark.parametrize("module", ["svc_helper.wire.quick_json", "svc_helper.agent.containers.hook"])
def test_little_is_imported(module: str) -> None:
    """Somebody waits for the start of the programs that use it, the hook above all."""
    code = f"import sys; sys.path.insert(0, {interpreter.SITE!r}); import {module}; print(*sys.modules)"
    argv = [sys.executable, "-I", "-S", "-c", code]
    loaded = subprocess.run(argv, capture_output=True, check=True, text=True).stdout.split()
    assert not {"json", "typing", "re", "subprocess"} & set(loaded)
