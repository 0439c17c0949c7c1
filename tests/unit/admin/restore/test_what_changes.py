"""What the database has that a snapshot has not."""

from __future__ import annotations

import os
from typing import Any

import pytest
from unit.admin.rows import change, user, workspace

from svc.admin.restore import what_changes
from svc.errors import SvcError

GOOD: dict[str, Any] = {
    "readable": True,
    "related": True,
    "newer": {"user": {"count": 1, "names": ["ada"]}},
    "changed": {},
    "recorded": "",
}


def test_rows_that_are_newer_and_rows_that_were_changed(database: str, snapshot: str) -> None:
    change(
        database,
        *(user(number, f"u{number}") for number in range(50, 65)),
        workspace(9, "stopped"),
        "UPDATE workspaces SET updated_at = 'later' WHERE id = 'ws-1'",
    )
    descriptor = os.open(snapshot, os.O_RDONLY)
    found = what_changes.checked(what_changes.compare(database, descriptor, 1, os.getpid()))
    os.close(descriptor)
    assert found["readable"]
    assert found["related"]
    assert found["newer"]["user"]["count"] == 15
    assert len(found["newer"]["user"]["names"]) == what_changes.NAMES_MAX
    assert found["newer"]["workspace"] == {"count": 1, "names": ["w9"]}
    assert found["changed"] == {"workspace": 1}


@pytest.mark.parametrize(
    "forged",
    [
        None,
        [],
        {},
        GOOD | {"readable": 1},
        GOOD | {"newer": {"user": {"count": "1", "names": []}}},
        GOOD | {"newer": {"user": {"count": 1, "names": ["x"] * 11}}},
        GOOD | {"newer": {"\x1b[2J": {"count": 1, "names": []}}},
        GOOD | {"changed": {"user": -1}},
        GOOD | {"recorded": "x" * 200},
    ],
)
def test_a_forged_result(forged: Any) -> None:
    assert what_changes.checked(GOOD) == GOOD
    with pytest.raises(SvcError, match="no usable result"):
        what_changes.checked(forged)
