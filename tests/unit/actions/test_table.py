"""The rows of the table of actions."""

from __future__ import annotations

import re

from svc.actions import table


def test_nothing_that_deletes_is_a_button() -> None:
    buttons = [row for row in table.TABLE if row.button]
    assert {row.method for row in buttons} == {"POST", "PATCH"}
    assert not [row for row in buttons if "delete" in row or "prune" in row or "remove" in row]


def test_a_row_is_whole() -> None:
    """Its name is its own; a command and a button name only what the path or the body has."""
    assert len(table.BY_NAME) == len(table.TABLE)
    assert len({(row.method, row.path) for row in table.TABLE if row.path}) == sum(
        bool(row.path) for row in table.TABLE
    )
    for row in table.TABLE:
        assert bool(row.path) == bool(row.method) == (row.access is not None)
        assert row.command or not row.button
        assert set(re.findall(r"{(\w+)}", row.button)) <= set(re.findall(r"{(\w+)}", row.command))
        assert row.did and row.to_do
