from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from svc.db.connect import close_database, open_database
from svc.domain.accounts import users

STEPS = "Linux account, home directory, subordinate uids, subordinate gids, enrolment, password"


def add(path: str, name: str, **columns: Any) -> None:
    open_database(path)
    users.update(users.create(name), **columns)
    close_database()


@pytest.fixture
def three(database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """An account that is ready, one that is not, and root."""
    monkeypatch.setattr("svc.admin.findings.Host.systemd", False)
    add(
        database,
        "nobody",
        uid=65534,
        provisioning=users.READY,
        superuser=True,
        display_name="Ada Lovelace",
        password_hash="v1$x",
        password_closed=True,
    )
    add(database, "svt-ben", provisioning=users.CLEANUP, provisioning_note="Linux account: useradd failed")
    return database


def test_a_line_for_each_account_in_a_pipe(svc: Any, three: str) -> None:
    code, out, _ = svc("list-users")
    assert code == 0
    assert [line.split("\t") for line in out.splitlines()] == [
        ["nobody", "65534", "true", "READY", "closed", "Ada Lovelace", "", "", ""],
        ["root", "0", "true", "READY", "none", "", "", "", ""],
        [
            "svt-ben",
            "",
            "false",
            "PROVISIONING_CLEANUP_REQUIRED",
            "none",
            "",
            "Linux account: useradd failed",
            STEPS,
            f"sudo svc admin create-user svt-ben --db {three}",
        ],
    ]


def test_people_read_what_is_left_below_the_table(
    svc: Any, three: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    _, out, _ = svc("list-users")
    assert out.splitlines() == [
        "NAME     UID    SUPERUSER  STATUS                         PASSWORD  PERSON",
        "nobody   65534  yes        READY                          closed    Ada Lovelace",
        "root     0      yes        READY                          none      -",
        "svt-ben  -      no         PROVISIONING_CLEANUP_REQUIRED  none      -",
        "",
        "svt-ben: PROVISIONING_CLEANUP_REQUIRED",
        "  note: Linux account: useradd failed",
        f"  left: {STEPS}",
        f"  next: sudo svc admin create-user svt-ben --db {three}",
    ]


@pytest.mark.parametrize(("columns", "printed"), [(79, "Ada Lovela…"), (80, "Ada Lovelace"), (20, "Ada…")])
def test_a_state_is_never_cut_for_a_display_name(
    svc: Any, three: str, columns: int, printed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr("svc.commandline.output.terminal_columns", lambda _: columns)
    _, out, _ = svc("list-users")
    assert out.splitlines()[1].endswith(printed)
    assert columns == 20 or "  PROVISIONING_CLEANUP_REQUIRED  " in out


def test_json_has_the_same(svc: Any, three: str) -> None:
    code, out, _ = svc("list-users", "--json")
    answer = json.loads(out)
    assert (code, answer["total"]) == (0, 3)
    assert [item["name"] for item in answer["items"]] == ["nobody", "root", "svt-ben"]
    assert answer["items"][2]["left_to_do"] == STEPS.split(", ")
    assert not [key for key in answer["items"][0] if "hash" in key]


def test_what_a_terminal_would_obey_is_escaped(
    svc: Any, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(database, "ada", provisioning_note="\x1b[2Jgone")
    assert "\x1b" not in svc("list-users")[1]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "\x1b" not in svc("list-users")[1]


def test_the_next_command_is_of_the_same_database(svc: Any, three: str) -> None:
    """An account of that name may be another one in the default database."""
    _, out, _ = svc("list-users", "--json", "--db", three)
    (command,) = [item["next_command"] for item in json.loads(out)["items"] if item["next_command"]]
    assert command == f"sudo svc admin create-user svt-ben --db {three}"
