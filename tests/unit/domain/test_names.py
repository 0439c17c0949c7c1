"""Names that are unique per owner."""

from __future__ import annotations

import peewee
import pytest
from unit.serving import make_workspace

from svc.db.connect import database
from svc.domain import names
from svc.domain.principal import Caller
from svc.errors import NameTaken


def test_a_double_is_name_taken(ada: Caller, template: str) -> None:
    make_workspace(ada.user_id, template)
    with pytest.raises(NameTaken) as caught, names.taking("workspace", "lab"):
        database.execute_sql("INSERT INTO users SELECT * FROM users WHERE name = 'ada'")
    assert caught.value.hint == "svc ws list"
    assert caught.value.fields[0]["field"] == "name"


def test_another_broken_rule_is_not(ada: Caller, template: str) -> None:
    with pytest.raises(peewee.IntegrityError), names.taking("workspace", "lab"):
        database.execute_sql("UPDATE users SET superuser = 5")


def test_nothing_of_a_double_stays(ada: Caller, template: str) -> None:
    with pytest.raises(NameTaken), names.taking("template", "base"):
        database.execute_sql("UPDATE users SET display_name = 'x'")
        database.execute_sql("INSERT INTO users SELECT * FROM users WHERE name = 'ada'")
    assert database.execute_sql("SELECT display_name FROM users").fetchone()[0] == ""
