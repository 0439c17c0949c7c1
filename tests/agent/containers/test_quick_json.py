"""JSON without the module json says what that says."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
from agent.priv_ns import SITE

from svc_helper.agent.containers import quick_json

VALUES = [
    {},
    {"a": [1, -2.5, True, False, None, '\u00fc\n"\\\x00\U0001f600', {"b": []}], "": ""},
    {"big": 2**63, "deep": [[[[]]]]},
]


@pytest.mark.parametrize("value", VALUES)
def test_there_and_back(value: object) -> None:
    assert json.loads(quick_json.dumps(value)) == value
    for text in (json.dumps(value), json.dumps(value, indent=1, ensure_ascii=False) + "\n"):
        assert quick_json.loads(text) == value


@pytest.mark.parametrize("text", ["", " ", "{", "{}{}", "nope", '{"a":}', '{"a": "\n"}'])
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError):
        quick_json.loads(text)


def test_what_cannot_be_said() -> None:
    with pytest.raises(TypeError):
        quick_json.dumps({"a": object()})
    with pytest.raises(ValueError):
        quick_json.dumps(math.nan)


def test_the_hook_imports_little() -> None:
    """Somebody waits for the start that it is part of."""
    module = "svc_helper.agent.containers.hook"
    code = f"import sys; sys.path.insert(0, {str(SITE)!r}); import {module}; print(*sys.modules)"
    argv = [sys.executable, "-I", "-S", "-c", code]
    loaded = subprocess.run(argv, capture_output=True, check=True, text=True).stdout.split()
    assert not {"json", "typing", "re", "subprocess"} & set(loaded)
