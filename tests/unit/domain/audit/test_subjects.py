"""What others did to what is one's own: found by its owner, with the name of then, inside the chain."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from unit.serving import make_template, make_workspace

from svc.admin import actor
from svc.db import migrate
from svc.db.connect import database
from svc.domain.accounts import removal, users
from svc.domain.audit import archive, audit, chain
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.workspaces import workspaces
from svc.errors import OwnerOnly


@pytest.fixture
def lab(ada: Caller) -> str:
    """A running workspace of ada's."""
    return make_workspace(
        ada.user_id, make_template(ada.user_id, "base"), status="running", container_id="c" * 64
    )


def seen(caller: Caller, **filters: Any) -> list[dict[str, Any]]:
    page = filters.pop("page", Page(limit=200))
    return list(audit.page_of(page, owner_id=caller.user_id, **filters)["items"])


def test_an_administrator_stops_and_deletes(ada: Caller, boss: Caller, bob: Caller, lab: str) -> None:
    here = dataclasses.replace(boss, kind="session", credential="ses-00000001", address="192.0.2.7")
    workspaces.stop(here, lab, owner="ada")
    workspaces.delete(here, lab, owner="ada")
    rows = seen(ada)
    assert [(row["user"], row["action"], row["outcome"]) for row in reversed(rows)] == [
        ("boss", f"workspace.{verb}", outcome) for verb in ("stop", "delete") for outcome in ("begun", "ok")
    ]
    assert {(row["target"], row["target_name"], row["target_owner"]) for row in rows} == {(lab, "lab", "ada")}
    assert {row["address"] for row in rows} == {""}  # whoever administers is named, not located
    assert not any("session" in row["detail"] for row in rows)
    assert seen(ada, page=Page(q="192.0.2.7")) == []
    assert [row["address"] for row in seen(boss)] == ["192.0.2.7"] * 4
    assert seen(bob) == []
    assert chain.verify().broken_at is None


def test_what_was_refused_to_an_administrator(ada: Caller, boss: Caller, lab: str) -> None:
    with pytest.raises(OwnerOnly):
        workspaces.states.find_own(boss, lab, "workspace.exec")
    assert [(row["action"], row["outcome"]) for row in seen(ada)] == [("workspace.exec", "owner_only")]


def test_nobody_floods_anothers_list(ada: Caller, bob: Caller, lab: str) -> None:
    audit.add(bob, "workspace.exec", lab, "not_found")
    audit.add(bob, "fs.read", lab, "ok")
    audit.add(bob, "quota.set", "ada", "ok")
    assert seen(ada) == []


def test_ones_own_rows_come_once_and_with_names(ada: Caller, lab: str) -> None:
    workspaces.rename(ada, lab, "room")
    workspaces.stop(ada, lab)
    names = [(row["action"], row["target_name"], row["target_owner"]) for row in reversed(seen(ada))]
    assert names == [("workspace.rename", "room", None), *[("workspace.stop", "room", None)] * 2]


def test_a_terminal_is_one_of_a_workspace(ada: Caller, lab: str) -> None:
    """Its row has the workspace's name, as every row about one has."""
    audit.add(ada, "terminal.open", lab, "ok")
    assert [(row["target"], row["target_name"]) for row in seen(ada)] == [(lab, "lab")]


def test_the_administrators_command(ada: Caller, bob: Caller) -> None:
    actor.note("admin.set_password", "ada", "ok")
    actor.note("admin.registry_add", "ada", "ok")
    assert [row["action"] for row in seen(ada)] == ["admin.set_password"]
    assert seen(bob) == []


def test_the_order_is_that_of_the_rows(ada: Caller, boss: Caller, lab: str) -> None:
    for who in (ada, boss, boss, ada, boss):
        audit.add(who, "workspace.stop", lab, "ok")
    assert [row["id"] for row in seen(ada)] == [5, 4, 3, 2, 1]
    assert [row["id"] for row in seen(ada, page=Page(sort="at"))] == [1, 2, 3, 4, 5]
    page = audit.page_of(Page(limit=2, offset=1), owner_id=ada.user_id)
    assert ([row["id"] for row in page["items"]], page["total"], page["next_offset"]) == ([4, 3], 5, 3)
    assert [row["id"] for row in seen(ada, user="boss")] == [5, 3, 2]


def test_a_list_follows_two_indices_and_sorts_nothing(ada: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[tuple[str, Any]] = []
    execute = database.execute_sql

    def kept(sql: str, params: Any = None) -> Any:
        statements.append((sql, params))
        return execute(sql, params)

    monkeypatch.setattr(database, "execute_sql", kept)
    seen(ada)
    monkeypatch.undo()
    for sql, params in statements:
        plan = [line for *_, line in execute(f"EXPLAIN QUERY PLAN {sql}", params).fetchall()]
        assert not [line for line in plan if "TEMP B-TREE" in line or line.startswith("SCAN audit")], plan


def test_the_index_goes_with_archived_rows(ada: Caller, boss: Caller, lab: str) -> None:
    for _ in range(3):
        audit.add(boss, "workspace.stop", lab, "ok")
    row = database.execute_sql("SELECT id, hash FROM audit WHERE id = 2").fetchone()
    archive.remove(chain.Head(*row))
    assert database.execute_sql("SELECT audit_id FROM audit_concerns").fetchall() == [(3,)]
    assert [row["id"] for row in seen(ada)] == [3]


def test_a_removed_account_is_no_longer_found(ada: Caller, boss: Caller) -> None:
    audit.add(boss, "user.edit", "ada", "ok")
    removal.finish(users.get("ada"))
    audit.add(boss, "user.edit", "ada", "ok")
    rows = database.execute_sql("SELECT audit_id, owner_id FROM audit_concerns").fetchall()
    assert rows == [(1, ada.user_id)]  # whose id no later account has


def test_rows_of_older_releases_are_found(tmp_path: Path) -> None:
    """The migration finds what others did to workspaces and accounts that are still there."""
    connection = sqlite3.connect(tmp_path / "old.db", isolation_level=None)
    number = next(row.number for row in migrate.known() if row.name.endswith("concerns"))
    before = tmp_path / "migrations"
    before.mkdir()
    for name in sorted(os.listdir(migrate.folder()))[: number - 1]:
        shutil.copy(os.path.join(migrate.folder(), name), before)
    migrate.apply(connection, str(before))
    connection.executescript(
        """
        INSERT INTO users (id, name, uid, provisioning, created_at, updated_at)
            VALUES (1, 'ada', 2001, 'ready', '2026-02', ''), (2, 'boss', 2003, 'ready', '2026-01', '');
        INSERT INTO workspaces (id, owner_id, name, template_id, template_revision, image_ref, status,
            status_since, created_at, updated_at)
            VALUES ('ws-1', 1, 'lab', 't', 1, 'i', 'stopped', '', '', '');
        INSERT INTO audit (id, at, user_id, user_name, via, action, target, outcome, request_id) VALUES
            (1, '2026-01', NULL, 'root', 'admin', 'admin.set_password', 'ada', 'ok', ''),
            (2, '2026-03', NULL, 'root', 'admin', 'admin.set_password', 'ada', 'ok', ''),
            (3, '2026-03', 2, 'boss', 'session', 'workspace.stop', 'ws-1', 'ok', ''),
            (4, '2026-03', 1, 'ada', 'session', 'workspace.stop', 'ws-1', 'ok', ''),
            (5, '2026-03', 2, 'boss', 'session', 'workspace.stop', 'ws-1', 'not_found', '');
        """
    )
    migrate.apply(connection)
    assert connection.execute("SELECT * FROM audit_concerns ORDER BY 1").fetchall() == [(2, 1), (3, 1)]
    connection.close()
