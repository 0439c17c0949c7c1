from __future__ import annotations

import pytest

from svc.admin.actor import OPERATOR, note
from svc.db.connect import database as connected
from svc.db.connect import open_database


@pytest.fixture(autouse=True)
def opened(database: str) -> None:
    open_database(database)


def rows() -> list[tuple[str, ...]]:
    return connected.execute_sql("SELECT user_name, via, address, target, outcome FROM audit").fetchall()


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
    assert connected.execute_sql("SELECT count(DISTINCT request_id) FROM audit").fetchone() == (1,)
