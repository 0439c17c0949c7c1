"""Facts: what the database knows of its installation, each a name and a text."""

from __future__ import annotations

from collections.abc import Mapping

from svc.db.connect import database, write


def find(*names: str) -> dict[str, str]:
    """The facts of these names that there are."""
    rows = database.execute_sql("SELECT name, value FROM facts").fetchall()  # a handful
    return {name: value for name, value in rows if name in names}


def put(facts: Mapping[str, str]) -> None:
    """Write these facts; others stay."""
    with write():
        for name, value in facts.items():
            database.execute_sql("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", (name, value))
