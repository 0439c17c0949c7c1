"""A value through a schema without a request, as `svc admin` and bundles need it."""

from __future__ import annotations

import pytest
from marshmallow import Schema, fields

from svc.errors import ValidationFailed
from svc.web.schemas import loading


class Inner(Schema):
    """What is nested."""

    size = fields.Integer(strict=True, required=True)


class Outer(Schema):
    """A value with a list of others."""

    name = fields.String(required=True)
    parts = fields.List(fields.Nested(Inner), load_default=list)


def test_what_is_right_is_loaded() -> None:
    assert loading.load(Outer(), {"name": "a"}) == {"name": "a", "parts": []}


def test_each_fault_has_its_whole_path() -> None:
    wrong = {"name": None, "parts": [{"size": 1}, {"size": "x"}], "odd": 1}
    with pytest.raises(ValidationFailed) as caught:
        loading.load(Outer(), wrong, "template")
    assert {field["field"]: field["code"] for field in caught.value.fields} == {
        "template.name": "null",
        "template.parts.1.size": "invalid",
        "template.odd": "unknown_key",
    }
    assert caught.value.message == (
        "3 values are not valid: template.name, template.parts item 2 size, template.odd"
    )


@pytest.mark.parametrize(
    ("wrong", "field", "message"),
    [
        ({"name": "a", "size": 1}, "size", "size: Unknown field; did you mean parts.size?"),
        ({"name": "a", "nmae": "b"}, "nmae", "nmae: Unknown field; did you mean name?"),
        (
            {"name": "a", "parts": [{"size": 1, "sice": 2}]},
            "parts.0.sice",
            "parts item 1 sice: Unknown field; did you mean parts item 1 size?",
        ),
        ({"name": "a", "zzz": 1}, "zzz", "zzz: Unknown field"),
    ],
)
def test_an_unknown_key_names_the_one_that_was_probably_meant(
    wrong: dict[str, object], field: str, message: str
) -> None:
    with pytest.raises(ValidationFailed) as caught:
        loading.load(Outer(), wrong)
    assert [one["field"] for one in caught.value.fields] == [field]
    assert caught.value.fields[0]["code"] == "unknown_key"
    assert caught.value.message == message


def test_what_is_said_is_no_longer_than_what_was_sent() -> None:
    with pytest.raises(ValidationFailed) as caught:
        loading.load(Outer(), {"k" * 10_000 + str(number): 1 for number in range(100)})
    assert len(caught.value.fields) == loading.FIELDS_MAX
    assert len(caught.value.message) < 4 * loading.NAME_MAX
    assert all(len(field["field"]) <= loading.NAME_MAX + 3 for field in caught.value.fields)
