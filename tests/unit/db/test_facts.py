"""Facts of the installation."""

from __future__ import annotations

from svc.db import facts
from svc.db.connect import open_database


def test_facts_are_kept_and_replaced(migrated: str) -> None:
    open_database(migrated)
    assert facts.find("one", "two") == {}
    facts.put({"one": "1", "two": "2"})
    facts.put({"two": "3"})
    assert facts.find("one", "two", "three") == {"one": "1", "two": "3"}
    assert facts.find("two") == {"two": "3"}
