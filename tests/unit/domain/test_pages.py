"""One page of a list."""

from __future__ import annotations

import pytest

from svc.domain import pages
from svc.domain.pages import Page
from svc.errors import ValidationFailed

COLUMNS = {"name": "t.name", "size": "t.size"}


def test_order() -> None:
    assert pages.order_by(Page(), COLUMNS, "name", "t.id") == "t.name ASC, t.id ASC"
    assert pages.order_by(Page(sort="-size"), COLUMNS, "name", "t.id") == "t.size DESC, t.id DESC"
    with pytest.raises(ValidationFailed) as caught:
        pages.order_by(Page(sort="--name"), COLUMNS, "name", "t.id")
    assert caught.value.fields[0]["message"] == "-name is not one of name, size"


def test_what_was_typed_is_only_ever_a_parameter() -> None:
    sql, values = pages.matching(Page(q="%_\\' OR 1"), ("a", "b"))
    assert sql == "(a LIKE ? ESCAPE '\\' OR b LIKE ? ESCAPE '\\')"
    assert values == ["%\\%\\_\\\\' OR 1%"] * 2
    assert pages.matching(Page(), ("a",)) == ("1", [])
    assert pages.with_status(Page(status=("x", "y")), "s") == ("s IN (?, ?)", ["x", "y"])
    assert pages.with_status(Page(), "s") == ("1", [])


def test_envelopes() -> None:
    assert pages.envelope(Page(limit=2), ["a", "b"], 3)["next_offset"] == 2
    assert pages.envelope(Page(limit=2, offset=2), ["c"], 3)["next_offset"] is None
    assert pages.envelope(Page(limit=3), ["a", "b", "c"], 3)["next_offset"] is None
