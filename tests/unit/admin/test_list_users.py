from __future__ import annotations

import json
from typing import Any

from svc.db.connect import close_database, open_database
from svc.domain import users


def add(path: str, name: str, **columns: Any) -> None:
    open_database(path)
    users.update(users.create(name), **columns)
    close_database()


def test_all_accounts_with_flag_and_state(svc: Any, database: str) -> None:
    add(database, "ada", uid=1001, provisioning=users.READY, superuser=True, display_name="Ada Lovelace")
    add(database, "ben", provisioning=users.CLEANUP, provisioning_note="useradd failed")
    code, out, _ = svc("list-users")
    assert code == 0
    assert [line.split("\t") for line in out.splitlines()] == [
        ["ada", "1001", "true", "READY", "false", "Ada Lovelace", ""],
        ["ben", "", "false", "PROVISIONING_CLEANUP_REQUIRED", "false", "", "useradd failed"],
        ["root", "0", "true", "READY", "false", "", ""],
    ]


def test_json_has_the_same(svc: Any, database: str) -> None:
    code, out, _ = svc("list-users", "--json")
    answer = json.loads(out)
    assert (code, answer["total"]) == (0, 1)
    assert answer["items"][0]["name"] == "root"
    assert not [key for key in answer["items"][0] if "hash" in key]


def test_what_a_terminal_would_obey_is_escaped(svc: Any, database: str) -> None:
    add(database, "ada", provisioning_note="\x1b[2Jgone")
    assert "\x1b" not in svc("list-users")[1]
