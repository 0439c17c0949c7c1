from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc.db import migrate
from svc.errors import DatabaseRefused

FIRST = "CREATE TABLE one (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;\n"
SECOND = """-- a comment; with a semicolon
ALTER TABLE one ADD COLUMN colour TEXT;
UPDATE one SET colour = 'a;b';
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    created = tmp_path / "migrations"
    created.mkdir()
    (created / "0001_first.sql").write_text(FIRST)
    return created


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    created = sqlite3.connect(tmp_path / "svc.db", isolation_level=None)
    yield created
    created.close()


def state(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()


def version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_a_later_migration_just_works(folder: Path, connection: sqlite3.Connection) -> None:
    assert [one.number for one in migrate.apply(connection, str(folder))] == [1]
    connection.execute("INSERT INTO one (name) VALUES ('kept')")
    (folder / "0002_second.sql").write_text(SECOND)
    assert [one.name for one in migrate.pending(connection, str(folder))] == ["second"]
    assert [one.name for one in migrate.apply(connection, str(folder))] == ["second"]
    assert connection.execute("SELECT name, colour FROM one").fetchall() == [("kept", "a;b")]
    rows = migrate.applied(connection)
    assert [(row.number, row.name) for row in rows] == [(1, "first"), (2, "second")]
    assert all(row.applied_at.endswith("Z") and len(row.sha256) == 64 for row in rows)
    assert version(connection) == 2


def test_applying_again_does_nothing(folder: Path, connection: sqlite3.Connection) -> None:
    migrate.apply(connection, str(folder))
    before = state(connection), migrate.applied(connection)
    assert migrate.apply(connection, str(folder)) == []
    assert (state(connection), migrate.applied(connection)) == before


@pytest.mark.parametrize(
    "broken",
    [
        "CREATE TABLE two (id INTEGER); INSERT INTO nowhere VALUES (1);",
        "CREATE TABLE two (id INTEGER); CREATE TABLE two (id INTEGER);",
        "CREATE TABLE two (id INTEGER); SELEC 1;",
        "CREATE TABLE two (id INTEGER); CREATE TABLE three (",
        "CREATE TABLE two (id INTEGER); COMMIT; CREATE TABLE three (id INTEGER);",
        "CREATE TABLE two (id INTEGER); ROLLBACK;",
        "CREATE TABLE two (id INTEGER); SAVEPOINT s;",
        "CREATE TABLE two (id INTEGER); PRAGMA journal_mode = DELETE;",
        "CREATE TABLE two (id INTEGER); ATTACH ':memory:' AS other;",
        "CREATE TABLE two (id INTEGER REFERENCES one (id)); INSERT INTO two VALUES (77);",
    ],
)
def test_a_broken_migration_leaves_the_old_state(
    folder: Path, connection: sqlite3.Connection, broken: str
) -> None:
    migrate.apply(connection, str(folder))
    before = state(connection)
    (folder / "0002_broken.sql").write_text(broken)
    (folder / "0003_never.sql").write_text("CREATE TABLE never (id INTEGER);")
    with pytest.raises(sqlite3.Error):
        migrate.apply(connection, str(folder))
    assert state(connection) == before
    assert len(migrate.applied(connection)) == version(connection) == 1
    assert not connection.in_transaction
    (folder / "0002_broken.sql").write_text("CREATE TABLE two (id INTEGER);")
    assert [one.number for one in migrate.apply(connection, str(folder))] == [2, 3]


def test_a_crash_in_the_middle_leaves_the_old_state(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "svc.db"
    (folder / "0002_slow.sql").write_text("CREATE TABLE two (id INTEGER); INSERT INTO two VALUES (die());")
    pid = os.fork()
    if pid == 0:
        child = sqlite3.connect(path, isolation_level=None)
        child.create_function("die", 0, lambda: os._exit(9))
        migrate.apply(child, str(folder))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    after = sqlite3.connect(path, isolation_level=None)
    assert [row.name for row in migrate.applied(after)] == ["first"]
    assert "two" not in [name for name, _ in state(after)]
    after.close()


def test_a_table_can_be_rebuilt_while_others_refer_to_it(
    folder: Path, connection: sqlite3.Connection
) -> None:
    (folder / "0002_child.sql").write_text("CREATE TABLE child (one_id INTEGER REFERENCES one (id));")
    migrate.apply(connection, str(folder))
    connection.execute("INSERT INTO one VALUES (1, 'kept')")
    connection.execute("INSERT INTO child VALUES (1)")
    (folder / "0003_rebuild.sql").write_text(
        "CREATE TABLE one_new (id INTEGER PRIMARY KEY, name TEXT) STRICT;\n"
        "INSERT INTO one_new SELECT id, name FROM one;\n"
        "DROP TABLE one;\nALTER TABLE one_new RENAME TO one;\n"
    )
    migrate.apply(connection, str(folder))
    assert connection.execute("SELECT * FROM one JOIN child ON one_id = id").fetchall() == [(1, "kept", 1)]
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)


def test_an_edited_migration_is_refused(folder: Path, connection: sqlite3.Connection) -> None:
    migrate.apply(connection, str(folder))
    (folder / "0001_first.sql").write_text(FIRST + "-- only a comment\n")
    with pytest.raises(DatabaseRefused, match="0001_first was edited"):
        migrate.pending(connection, str(folder))


def test_a_newer_database_is_refused(folder: Path, connection: sqlite3.Connection) -> None:
    (folder / "0002_second.sql").write_text(SECOND)
    migrate.apply(connection, str(folder))
    (folder / "0002_second.sql").unlink()
    with pytest.raises(DatabaseRefused, match="newer release"):
        migrate.apply(connection, str(folder))


def test_a_history_with_a_gap_is_refused(folder: Path, connection: sqlite3.Connection) -> None:
    (folder / "0002_second.sql").write_text(SECOND)
    migrate.apply(connection, str(folder))
    connection.execute("DELETE FROM schema_migrations WHERE number = 1")
    with pytest.raises(DatabaseRefused, match="gap"):
        migrate.apply(connection, str(folder))


@pytest.mark.parametrize("name", ["0003_third.sql", "0001_double.sql", "2_short.sql", "notes.sql"])
def test_files_out_of_order_are_refused(folder: Path, connection: sqlite3.Connection, name: str) -> None:
    (folder / name).write_text("SELECT 1;")
    with pytest.raises(DatabaseRefused):
        migrate.apply(connection, str(folder))
    assert state(connection) == []


def test_another_programs_database_is_left_alone(folder: Path, connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE theirs (id INTEGER)")
    with pytest.raises(DatabaseRefused, match="another program"):
        migrate.apply(connection, str(folder))
    assert [name for name, _ in state(connection)] == ["theirs"]


def test_asking_what_is_pending_changes_nothing(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    connection = sqlite3.connect(path, isolation_level=None)
    assert [one.number for one in migrate.pending(connection, str(folder))] == [1]
    connection.close()
    assert path.read_bytes() == b""


def test_statements_end_where_sqlite_says() -> None:
    sql = """
CREATE TABLE a (x TEXT DEFAULT ';');
CREATE TRIGGER t AFTER INSERT ON a BEGIN DELETE FROM a; DELETE FROM a; END;
/* ; the end */ -- really; the end
"""
    assert [statement.split()[1] for statement in migrate.statements(sql)] == ["TABLE", "TRIGGER"]


def test_the_programs_own_tables_are_strict() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate.apply(connection)
    lax = connection.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND name NOT LIKE 'sqlite_%' AND NOT strict"
    ).fetchall()
    connection.close()
    assert lax == []


def test_ports_of_earlier_releases_belong_to_their_owner() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate.apply(connection)
    columns = {row[1]: row[4] for row in connection.execute("PRAGMA table_info(ports)")}
    connection.close()
    assert columns["access"] == "'owner'"


@pytest.fixture
def until(tmp_path: Path) -> Iterator[Callable[[str], sqlite3.Connection]]:
    """A database as it was before a migration."""
    connection = sqlite3.connect(":memory:", isolation_level=None)

    def made(name: str) -> sqlite3.Connection:
        earlier = tmp_path / "earlier"
        earlier.mkdir()
        [number] = [one.number for one in migrate.known() if one.name == name]
        for path in sorted(Path(migrate.folder()).glob("*.sql"))[: number - 1]:
            (earlier / path.name).write_bytes(path.read_bytes())
        migrate.apply(connection, str(earlier))
        return connection

    yield made
    connection.close()


AUDITED = (
    "INSERT INTO audit (at, user_id, user_name, via, action, outcome, request_id)"
    " VALUES (?, 9, 'gone', 'session', 'auth.login', 'ok', '')"
)


def test_an_id_of_an_account_that_an_earlier_release_removed_is_known(
    until: Callable[[str], sqlite3.Connection],
) -> None:
    """Its rows of the audit may be the only ones that still name it."""
    connection = until("last_account_id")
    connection.execute("INSERT INTO users (id, name, created_at, updated_at) VALUES (5, 'ada', '', '')")
    connection.execute(AUDITED, ("",))
    assert [one.name for one in migrate.apply(connection)][:1] == ["last_account_id"]
    last = "SELECT id FROM last_account_id"
    assert connection.execute(last).fetchall() == [(9,)]
    connection.execute("INSERT INTO users (id, name, created_at, updated_at) VALUES (7, 'ben', '', '')")
    assert connection.execute(last).fetchall() == [(9,)]
    connection.execute("INSERT INTO users (id, name, created_at, updated_at) VALUES (10, 'eve', '', '')")
    connection.execute("DELETE FROM users WHERE id = 10")
    assert connection.execute(last).fetchall() == [(10,)]


def test_the_days_of_an_earlier_releases_audit_are_known(until: Callable[[str], sqlite3.Connection]) -> None:
    """Also behind an archive, and of a clock that was set back."""
    connection = until("audit_days")
    for day in (1, 1, 1, 2, 2, 1, 3):
        connection.execute(AUDITED, (f"2026-03-0{day}T12:00:00.000Z",))
    connection.execute("INSERT INTO audit_archived VALUES (1, 1, '', '')")
    connection.execute("DELETE FROM audit WHERE id = 1")
    migrate.apply(connection)
    runs = "SELECT first_id, substr(day, 10) FROM audit_days"
    assert connection.execute(runs).fetchall() == [(2, "1"), (4, "2"), (6, "1"), (7, "3")]
    for day in (3, 4, 4):
        connection.execute(AUDITED, (f"2026-03-0{day}T12:00:00.000Z",))
    assert connection.execute(runs).fetchall()[4:] == [(9, "4")]


def test_the_totals_of_an_earlier_releases_lists_are_known(
    until: Callable[[str], sqlite3.Connection],
) -> None:
    """And follow what is added, removed, and given to another owner, until nothing is left."""
    connection = until("kept_totals")
    connection.executescript("""
        INSERT INTO users (id, name, created_at, updated_at) VALUES (1, 'ada', '', ''), (2, 'ben', '', '');
    """)
    for number in range(3):
        connection.execute(AUDITED, ("2026-03-01T12:00:00.000Z",))
        _add_workspace(connection, f"ws_{number}", 1)
    migrate.apply(connection)
    audit, workspaces = "SELECT * FROM audit_totals", "SELECT * FROM workspace_totals"
    assert connection.execute(audit).fetchall() == [("gone", 3)]
    assert connection.execute(workspaces).fetchall() == [(1, 3)]
    connection.execute(AUDITED, ("2026-03-01T12:00:00.000Z",))
    _add_workspace(connection, "ws_3", 1)
    connection.execute("UPDATE workspaces SET owner_id = 2 WHERE id = 'ws_0'")
    assert connection.execute(audit).fetchall() == [("gone", 4)]
    assert connection.execute(workspaces).fetchall() == [(1, 3), (2, 1)]
    connection.execute("INSERT INTO audit_archived VALUES (1, 4, '', '')")
    connection.execute("DELETE FROM audit")
    connection.execute("DELETE FROM workspaces")
    assert connection.execute(audit).fetchall() == connection.execute(workspaces).fetchall() == []


def _add_workspace(connection: sqlite3.Connection, workspace_id: str, owner_id: int) -> None:
    connection.execute(
        "INSERT INTO workspaces (id, owner_id, name, template_id, template_revision, image_ref, status,"
        " status_since, created_at, updated_at) VALUES (?, ?, ?, 'tpl', 1, 'i', 'stopped', '', '', '')",
        (workspace_id, owner_id, workspace_id),
    )


def test_the_programs_own_migrations_are_in_order() -> None:
    assert migrate.latest() == len(migrate.known()) >= 1
