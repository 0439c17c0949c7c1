from __future__ import annotations

import pytest

from svc.admin.actor import OPERATOR, note
from svc.db.connect import open_database
from svc.db.models import Audit


@pytest.fixture(autouse=True)
def opened(database: str) -> None:
    open_database(database)


def rows() -> list[tuple[str, ...]]:
    return [(row.user_name, row.via, row.address, row.target, row.outcome) for row in Audit.select()]


def test_a_row_names_who_ran_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    note("admin.test", "ada", "ok")
    monkeypatch.setenv("SUDO_USER", "zoe")
    note("admin.test", "ada", "ok")
    monkeypatch.setenv("SUDO_USER", "\x1b[31m")
    note("admin.test", "ada", "ok")
    assert rows() == [
        (OPERATOR, "admin", "", "ada", "ok"),
        (OPERATOR, "admin", "sudo:zoe", "ada", "ok"),
        (OPERATOR, "admin", "", "ada", "ok"),
    ]
    assert len({row.request_id for row in Audit.select()}) == 1
