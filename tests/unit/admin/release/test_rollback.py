"""`svc admin rollback`: what is listed, kept, applied and refused; the switch itself is in test_switching."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from unit.admin.conftest import Svc
from unit.admin.packages import PROGRAMS, Place, sets
from unit.admin.rows import ask, change, user

from svc.commandline import output
from svc.db import migrate
from svc.host import notes, switching

pytestmark = pytest.mark.allow_commands(*PROGRAMS)
KEYS = [
    "id", "kind", "created_at", "why", "commit", "next_version", "version", "schema", "size_bytes",
    "applicable", "whole", "problem", "remedy", "path", "database",
]  # fmt: skip


def test_a_list_of_sets(svc: Svc, place: Place, recovery: Path, database: str, snapshot: str) -> None:
    assert json.loads(svc("rollback", "list", "--json")[1]) == {"items": [], "total": 0}
    assert svc("restore", snapshot, "--yes")[0] == 0
    assert svc("rollback", "keep", "--why", "by hand")[0] == 0
    listed = json.loads(svc("rollback", "list", "--json")[1])["items"]
    assert [sorted(record) for record in listed] == [sorted(KEYS)] * 2
    (newer, older) = listed
    assert (newer["kind"], newer["applicable"], newer["why"]) == ("upgrade", True, "by hand")
    assert (older["kind"], older["problem"]) == ("restore", "it holds the database and no program")
    assert older["remedy"] == f"sudo svc admin restore {older['path']}/svc.db --db {database}"
    code, out, _ = svc("rollback", "list")
    assert code == 0
    assert [line.split("\t")[0] for line in out.splitlines()] == [newer["id"], older["id"]]
    assert out.splitlines()[0].split("\t")[6] == "yes"


def test_a_list_for_people_cuts_no_id_reason_or_command(
    svc: Svc, place: Place, recovery: Path, database: str, snapshot: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert svc("restore", snapshot, "--yes")[0] == 0
    assert svc("rollback", "keep", "--why", "a reason of many words " * 5)[0] == 0
    newer, older = json.loads(svc("rollback", "list", "--json")[1])["items"]
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    code, out, _ = svc("rollback", "list")
    heading, first, second, why, instead = out.splitlines()
    assert code == 0
    assert heading.split() == ["ID", "VERSION", "SIZE", "WHY", "APPLICABLE"]
    assert max(map(len, (heading, first, second))) <= 80
    assert (first.split()[0], first.split()[-1]) == (newer["id"], "yes")
    assert (second.split()[0], second.split()[-1]) == (older["id"], "no")
    assert why == f"{older['id']} cannot be applied: it holds the database and no program"
    assert instead == f"  instead: {older['remedy']}"


def test_a_checkout_keeps_the_database_alone(svc: Svc, database: str, recovery: Path) -> None:
    code, out, err = svc("rollback", "keep", "--why", "by hand")
    assert code == 0, err
    (kept,) = sets(recovery, "upgrade")
    assert out == f"{kept.name}\n", "the last line is the id, for the package's script"
    assert "svc.deb" not in os.listdir(kept)
    code, _, err = svc("rollback", "apply", kept.name, "--yes")
    assert code == 1
    assert "cannot be applied: it holds the database and no program" in err
    assert f"hint: sudo svc admin restore {kept}/svc.db --db {database}\n" in err


def test_before_a_migration_the_database_is_kept(
    svc: Svc, database: str, recovery: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(database, user(30, "before"))
    assert svc("migrate")[0] == 0
    assert not list(recovery.iterdir()), "nothing was pending"
    folder = tmp_path / "migrations"
    shutil.copytree(migrate.folder(), folder)
    monkeypatch.setattr(migrate, "folder", lambda: str(folder))
    first = migrate.latest()
    (folder / f"{first + 1:04}_more.sql").write_text("CREATE TABLE more (id INTEGER) STRICT;")
    code, out, err = svc("migrate")
    assert code == 0, err
    (kept,) = sets(recovery, "migrate")
    assert f"kept as it was: {kept}" in out
    assert ask(str(kept / "svc.db"), "PRAGMA user_version") == [(first,)]
    assert ask(database, "PRAGMA user_version") == [(first + 1,)]
    monkeypatch.setenv("SVC_SWITCHING", "1")
    (folder / f"{first + 2:04}_last.sql").write_text("CREATE TABLE last (id INTEGER) STRICT;")
    code, _, err = svc("migrate")
    assert code == 0, err
    assert len(sets(recovery, "migrate")) == 1, "a switch has kept it already"


def test_where_there_is_nothing_to_keep(svc: Svc, tmp_path: Path, recovery: Path, needs_root: None) -> None:
    code, _, err = svc("rollback", "keep", "--why", "x", "--db", str(tmp_path / "none.db"))
    assert code == 0
    assert "there is no database at" in err
    assert not list(recovery.iterdir())


@pytest.mark.parametrize("name", ["upgrade-20260101T000000.000Z", "../x", "no"])
def test_a_set_that_is_not_there(svc: Svc, database: str, name: str) -> None:
    code, _, err = svc("rollback", "apply", name, "--yes")
    assert code == 1
    assert f"there is no recovery set {name}" in err


def test_it_asks_and_says_what_is_lost(svc: Svc, place: Place, database: str, recovery: Path) -> None:
    assert svc("rollback", "keep", "--why", "x")[0] == 0
    change(database, user(31, "since"))
    (kept,) = sets(recovery, "upgrade")
    code, out, err = svc("rollback", "apply", kept.name)
    assert code == 1
    assert "Without a terminal this needs --yes" in err
    assert "1 user: since" in out
    assert not place.calls
    assert svc("rollback", "apply")[0] == 2
    assert svc("rollback", "apply", kept.name, "--finish")[0] == 2


def test_what_is_newest_stays_out_of_the_way_of_a_damaged_database(
    svc: Svc, place: Place, database: str, recovery: Path
) -> None:
    Path(database).write_bytes(os.urandom(50_000))
    code, _, err = svc("rollback", "keep", "--why", "x")
    assert code == 1
    assert "damaged" in err
    assert f"backup --raw --out {recovery}/damaged-" in err, "beside the sets: this one does not stay"
    assert not list(recovery.iterdir())


def test_a_switch_of_another_database_is_not_finished_on_this_one(
    svc: Svc, place: Place, database: str, recovery: Path
) -> None:
    """Going back would put the other's kept database in the place of this one."""
    state = os.environ["SVC_STATE_DIR"]
    change(database, user(30, "mine"))
    assert svc("rollback", "keep", "--why", "of this one")[0] == 0
    (kept,) = sets(recovery, "upgrade")
    note = {"database": "/srv/other.db", "version": "2", "from": "1", "at": "2026-11-22", "step": "package"}
    note |= {"back": True, "touched": True, "was_running": True, "reason": "", "kept": kept.name}
    notes.put(switching.path_of(state), note)
    change(database, user(31, "since"))
    code, _, err = svc("rollback", "apply", "--finish")
    assert code == 1
    assert f"of /srv/other.db, not of {database}; nothing was changed" in err
    assert "hint: sudo svc admin rollback apply --finish --db /srv/other.db\n" in err
    assert ask(database, "SELECT name FROM users WHERE id >= 30") == [("mine",), ("since",)]
    assert switching.find(state) == note
