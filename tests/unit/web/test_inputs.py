"""Strict JSON and strict queries (HOSTILE row 7)."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from marshmallow import fields
from unit.serving import checked

from svc import limits
from svc.errors import InvalidJson, ValidationFailed
from svc.settings import Settings
from svc.web import access, app, inputs
from svc.web.schemas import loading


def post(listeners: Any, path: str, data: bytes | str, content_type: str = "application/json") -> Any:
    return listeners.ask("ada", "POST", path, data=data, content_type=content_type)


DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    "data",
    [
        b"{", b"nonsense", b"\xff\xfe", b'"text"', b"[]", b"5", b"null", b'{"name": "a", "name": "b"}',
        b'{"resources": {"cpu_limit": 1, "cpu_limit": 2}}', b'{"a": NaN}', b'{"a": Infinity}',
        b'{"a": -Infinity}',
        b'{"a": 1e400}', b'{"a": "\\ud800"}', b'{"\\udfff": 1}', b'{"a": ' + b"9" * 5000 + b"}", DEEP,
        b'{"a":' * 40 + b"1" + b"}" * 40, b'{"a": "' + b"[" * 50 + b'"} x', b"{} {}", b'{"a": 1,}',
        b"\xef\xbb\xbf{}",
    ],
    ids=lambda data: data[:24].decode("latin-1"),
)  # fmt: skip
def test_bad_json(listeners: Any, data: bytes) -> None:
    error = checked(post(listeners, "/api/workspaces", data), 400, "invalid_json")
    assert len(error["message"]) < 200


def test_bad_content_type(listeners: Any) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        checked(post(listeners, "/api/workspaces", b"{}", kind), 400, "invalid_json")


def test_too_large_a_body(listeners: Any) -> None:
    data = b'{"name": "' + b"a" * limits.DOCUMENT_BODY_MAX + b'"}'
    error = checked(post(listeners, "/api/workspaces", data), 413, "too_large")
    assert error["details"] == {"limit": limits.DOCUMENT_BODY_MAX}


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=201", "limit=-1", "limit=1.5", "limit=x", "limit=%C2%B2", "limit=",
        "limit=1&limit=2",
        "offset=-1", "offset=99999999999999999999", "sort=nope", "sort=name;drop", "status=nope",
        "status=running,", "status=running,nope", "surprise=1", "owner=-root", "owner=a%00b", "q=%00",
        "owner=12345678901", "owner=a:b", "q=" + "a" * 129,
    ],
)  # fmt: skip
def test_bad_queries(listeners: Any, query: str) -> None:
    checked(listeners.ask("ada", "GET", f"/api/workspaces?{query}"), 422, "validation_failed")


def test_the_health_takes_any_query(listeners: Any) -> None:
    """Monitors add one against caches."""
    assert listeners.ask(None, "GET", "/api/health?x=1&x=2").status_code == 200


def test_a_query_where_none_is_taken(listeners: Any, lab: str) -> None:
    checked(listeners.ask("ada", "GET", "/api/users/me?x=1"), 422, "validation_failed")
    checked(
        listeners.ask("ada", "POST", f"/api/workspaces/{lab}/start?owner=ada", json={}),
        422,
        "validation_failed",
    )


@given(st.recursive(st.none() | st.booleans() | st.text(), lambda inner: st.dictionaries(st.text(), inner)))
def test_what_is_json_is_read_as_json(value: Any) -> None:
    text = json.dumps({"key": value}, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert inputs.parse_object(text.encode(), 10_000) == {"key": value}


@given(st.binary(max_size=200))
def test_nothing_else_than_invalid_json_comes_out_of_garbage(data: bytes) -> None:
    try:
        assert isinstance(inputs.parse_object(data, 10_000), dict)
    except InvalidJson:
        pass


@pytest.mark.parametrize(
    "data",
    [b'"' + b'\\"' * 500_000, b'{"' + b'\\"' * 500_000 + b"\\\n", b'"\\\n' * 300_000, b'"' * 1_000_001],
    ids=["no end", "a broken end", "many broken ends", "quotes"],
)
def test_strings_without_an_end_take_no_time(data: bytes) -> None:
    began = time.process_time()
    with pytest.raises((InvalidJson, ValidationFailed)):
        inputs.parse_object(data, 10_000)
    assert time.process_time() - began < 2


def test_a_thousand_mistakes_are_not_all_told(listeners: Any) -> None:
    body = json.dumps({f"key{number}": 1 for number in range(1000)})
    error = checked(
        listeners.ask("ada", "POST", "/api/workspaces", data=body, content_type="application/json"),
        422,
        "validation_failed",
    )
    assert len(error["fields"]) == loading.FIELDS_MAX
    assert len(error["message"]) < 200


def test_depth_counts_brackets_outside_strings_only() -> None:
    assert inputs.parse_object(b'{"a": "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["}', 100)
    assert inputs.parse_object(b'{"a": "\\"' + b"[" * 99 + b'"}', 100)
    assert inputs.parse_object(b'{"a":' * 31 + b"{}" + b"}" * 31, 100)
    with pytest.raises(InvalidJson):
        inputs.parse_object(b'{"a":' * 32 + b"{}" + b"}" * 32, 100)


def _bodies() -> dict[str, Any]:
    settings = Settings(flags={"SVC_DB": "/nonexistent/svc.db"}, environ={}, file={})
    routes = access.routes_of(app.build(settings, None, listener="tls", dev=True))
    return {type(route.body).__name__: route.body for route in routes.values() if route.body is not None}


BODIES = _bodies()


@pytest.mark.parametrize("name", BODIES)
def test_every_body_has_a_greatest_number_of_values(name: str) -> None:
    """A list without a length, and an object with any keys, raise here."""
    assert loading.members_most(BODIES[name]) < (300_000 if name == "WorkspaceExec" else 10_000)


MANY = 100_000
HOSTILE: dict[str, Callable[[str], Any]] = {
    "items": lambda listed: {listed: [{"a": 1}] * MANY},
    "keys": lambda _: {f"k{number}": 1 for number in range(MANY)},
    "keys of an item": lambda listed: {listed: [{f"k{number}": 1 for number in range(MANY)}]},
    "long keys": lambda _: {"k" * 30_000 + str(number): 1 for number in range(30)},
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("name", ["Credentials", "TemplateCreate", "WorkspaceCreate", "BuildRequest"])
def test_a_hundred_thousand_values_are_refused_before_they_are_judged(name: str, kind: str) -> None:
    schema = BODIES[name]
    listed = next((one for one, field in schema.fields.items() if isinstance(field, fields.List)), "username")
    data = json.dumps(HOSTILE[kind](listed)).encode()
    tracemalloc.start()
    with pytest.raises(ValidationFailed):
        loading.load(schema, inputs.parse_object(data, inputs.members_max(schema)))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 * len(data) + 1_000_000  # the marks of JSON, not its values
    began = time.process_time()
    with pytest.raises(ValidationFailed):
        loading.load(schema, inputs.parse_object(data, inputs.members_max(schema)))
    assert time.process_time() - began < 0.25  # 0.02 on a quiet host


def test_a_list_that_is_too_long_is_answered_by_its_length_alone() -> None:
    wrong = {"launchers": [{"a": 1}] * 17, "env": [{"name": 5, "value": 1}]}
    with pytest.raises(ValidationFailed) as caught:
        loading.load(BODIES["TemplatePatch"], wrong)
    assert caught.value.message == "launchers: Use a length of at most 16"


def test_a_login_is_read_to_four_kibibytes(listeners: Any) -> None:
    data = json.dumps({"username": "ada", "password": "x" * limits.CREDENTIALS_BODY_MAX})
    answer = listeners.ask(None, "POST", "/api/auth/login", data=data, content_type="application/json")
    assert checked(answer, 413, "too_large")["details"] == {"limit": limits.CREDENTIALS_BODY_MAX}
