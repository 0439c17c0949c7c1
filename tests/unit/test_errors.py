"""The error table: one class, one code, one body."""

from __future__ import annotations

import pytest

from svc import engine_errors, errors


def test_every_code_has_one_class() -> None:
    codes = [row.code for row in errors.table()]
    assert len(codes) == len(set(codes))
    for row in errors.table():
        assert errors.by_code(row.code) is row
        assert row.__doc__
    assert errors.by_code("of a later release") is errors.SvcError


def test_causes_of_the_engines_are_in_the_table() -> None:
    """Twenty and more causes have a code of their own; what handles a failed engine handles them."""
    rows = [row for row in errors.table() if row.__module__ == engine_errors.__name__]
    assert len(rows) >= 20
    assert all(issubclass(row, errors.EngineFailed | errors.StorageFull) for row in rows)


def test_the_body() -> None:
    error = errors.NameTaken("taken", hint="svc ws list", fields=[{"field": "name"}], details={"a": 1})
    assert error.body("req-1") == {
        "error": {
            "code": "name_taken", "message": "taken", "hint": "svc ws list", "action": None,
            "fields": [{"field": "name"}], "details": {"a": 1}, "retryable": False, "request_id": "req-1",
        }
    }  # fmt: skip


def test_two_classes_with_one_code_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors.NotFound, "code", "conflict")
    with pytest.raises(ValueError, match="conflict"):
        errors.table()


def test_exit_codes() -> None:
    others = {row.code: row.exit_code for row in errors.table() if row.exit_code != 1}
    assert others == {"account_missing": 3, "account_incomplete": 3, "usage": 2}


def test_a_failed_engine_has_a_way_out() -> None:
    assert errors.EngineFailed("x").body("r")["error"]["hint"] == "sudo svc admin doctor"
    assert errors.EngineFailed("x", hint="svc ws list").hint == "svc ws list"
    assert errors.NotFound("x").hint == ""
