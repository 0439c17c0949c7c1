"""A row before, a row after, and nothing lost in between."""

from __future__ import annotations

import json
from typing import Any

import pytest

from svc.db.connect import database, write
from svc.domain import audit
from svc.domain.callers import Caller
from svc.errors import EngineTimeout


def rows() -> list[Any]:
    return database.execute_sql(
        "SELECT user_name, via, action, target, outcome, request_id, detail_json FROM audit ORDER BY id"
    ).fetchall()


def test_before_and_after(ada: Caller) -> None:
    with audit.audited(ada, "thing.do", "thing-1", how="well") as more:
        assert rows() == [("ada", "socket", "thing.do", "thing-1", "begun", "req-test", '{"how": "well"}')]
        more["count"] = 3
    assert rows()[1][4:] == ("ok", "req-test", '{"count": 3}')


def test_outcomes_are_codes(ada: Caller) -> None:
    for raised, outcome in ((EngineTimeout("late"), "engine_timeout"), (KeyError("x"), "internal_error")):
        with pytest.raises(type(raised)), audit.audited(ada, "thing.do", "thing-1"):
            raise raised
        assert rows()[-1][4] == outcome


def test_a_row_goes_with_its_transaction(ada: Caller) -> None:
    with pytest.raises(KeyError), write():
        audit.add(ada, "thing.do", "thing-1", "ok")
        raise KeyError
    assert rows() == []


def test_control_characters_stay_escaped(ada: Caller) -> None:
    audit.add(ada, "thing.do", "thing-1", "ok", name="a\nb\x1b")
    assert json.loads(rows()[0][6]) == {"name": "a\nb\x1b"}
    assert "\n" not in rows()[0][6]
