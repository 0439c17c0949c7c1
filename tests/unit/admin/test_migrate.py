from __future__ import annotations

import os
import pwd
import shutil
import sqlite3
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from unit.db.disks import zero_page_of

from svc.admin.checks import database as checks
from svc.admin.checks import order
from svc.db import check, condition, faults
from svc.db.connect import close_database
from svc.db.lock import hold
from svc.host.owner import Owner, run_as


def rows(path: str, query: str) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    found = connection.execute(query).fetchall()
    connection.close()
    return found


def open_to_all(path: Path) -> None:
    """Let every user pass through the test's own directories, as through /var/lib."""
    for part in (path, *path.parents):
        if os.stat(part).st_mode & 0o001 == 0:
            part.chmod(0o711)


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def test_it_makes_everything_and_says_so(svc: Any, tmp_path: Path, needs_root: None) -> None:
    path = str(tmp_path / "data" / "svc.db")
    code, out, err = svc("migrate", "--db", path)
    assert (code, err) == (0, "")
    assert "applied: 0001 initial" in out
    assert "superuser: root, without a password" in out
    assert mode(path) == mode(tmp_path / "data" / "secret.key") == 0o600
    assert mode(tmp_path / "data") == 0o700
    assert rows(path, "SELECT name, uid, superuser, provisioning, password_hash FROM users") == [
        ("root", 0, 1, "ready", None)
    ]
    start = (tmp_path / "state" / "trial").read_text().strip()
    assert rows(path, "SELECT value FROM facts WHERE name = 'trial_started_at'") == [(start,)]


def test_again_it_changes_nothing(svc: Any, database: str, tmp_path: Path) -> None:
    secret = Path(database).with_name("secret.key").read_bytes()
    before = rows(database, "SELECT * FROM users"), rows(database, "SELECT * FROM facts")
    code, out, _ = svc("migrate")
    assert code == 0
    assert "nothing to apply" in out
    assert "superuser" not in out
    assert "secret" not in out
    assert (rows(database, "SELECT * FROM users"), rows(database, "SELECT * FROM facts")) == before
    assert Path(database).with_name("secret.key").read_bytes() == secret


def test_the_trial_survives_the_database(svc: Any, database: str, tmp_path: Path) -> None:
    trial = tmp_path / "state" / "trial"
    early = "2020-01-01T00:00:00.000Z"
    trial.write_text(early + "\n")
    os.unlink(database)
    assert svc("migrate")[0] == 0
    assert rows(database, "SELECT value FROM facts WHERE name = 'trial_started_at'") == [(early,)]
    trial.unlink()
    assert svc("migrate")[0] == 0
    assert trial.read_text().strip() == early


def test_with_something_pending_the_service_must_be_stopped(svc: Any, database: str) -> None:
    os.unlink(database)
    with hold(database, holder="svc server"):
        code, _, err = svc("migrate")
    assert code == 1
    assert "in use by svc server" in err
    assert svc("migrate")[0] == 0
    with hold(database, holder="svc server"):
        assert svc("migrate")[0] == 0, "nothing is pending: no lock is needed"


def test_a_newer_database_is_refused(svc: Any, database: str) -> None:
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA user_version = 77")
    connection.close()
    code, _, err = svc("migrate")
    assert code == 1
    assert "newer release" in err


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/etc/passwd", path)])
def test_what_is_no_file_is_refused(svc: Any, tmp_path: Path, make: Any) -> None:
    path = str(tmp_path / "svc.db")
    make(path)
    code, _, err = svc("migrate", "--db", path)
    assert code == 1
    assert err.startswith("svc: ")
    assert "hint: " in err
    assert not (tmp_path / "secret.key").exists()


def test_root_makes_none_in_a_shared_working_directory(
    svc: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs_root: None
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    monkeypatch.chdir(shared)
    code, _, err = svc("migrate")
    assert code == 1
    assert "writable by other users" in err
    assert os.listdir(shared) == []


def test_a_directory_that_cannot_be_made(svc: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, _, err = svc("migrate", "--db", str(tmp_path / "file" / "svc.db"))
    assert code == 1
    assert "cannot be" in err


def test_root_works_as_the_owner_of_the_directory(svc: Any, tmp_path: Path, needs_root: None) -> None:
    open_to_all(tmp_path)
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    os.chown(data, 65534, 65534)
    path = str(data / "svc.db")
    code, out, err = svc("migrate", "--db", path)
    assert code == 0, err
    assert "(of nobody)" in out
    assert {os.stat(data / name).st_uid for name in os.listdir(data)} == {65534}
    assert os.stat(tmp_path / "state" / "trial").st_uid == 0
    assert os.geteuid() == 0


def test_the_data_directory_is_made_for_the_service(
    svc: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs_root: None
) -> None:
    open_to_all(tmp_path)
    monkeypatch.setattr("svc.host.owner.SERVICE_USER", "nobody")
    path = tmp_path / "lib" / "svc" / "data" / "svc.db"
    for name in ("svc.host.accounts.HOME", "svc.admin.own_files.HOME"):
        monkeypatch.setattr(name, str(path.parent))  # the default path's
    umask = os.umask(0o077)  # a hardened root's
    try:
        assert svc("migrate", "--db", str(path))[0] == 0
        assert os.umask(0o077) == 0o077  # what it writes for root afterwards is private still
    finally:
        os.umask(umask)
    assert [(os.stat(one).st_uid, mode(one)) for one in (path.parents[1], path.parent, path)] == [
        (0, 0o755),
        (65534, 0o2770),
        (65534, 0o660),
    ]


def serve_by(monkeypatch: pytest.MonkeyPatch, name: str = "nobody") -> pwd.struct_passwd:
    """Let this account be the server's user."""
    monkeypatch.setattr("svc.host.owner.SERVICE_USER", name)
    return pwd.getpwnam(name)


def test_a_directory_of_root_gets_none_but_one_below_it(
    svc: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs_root: None
) -> None:
    """The database would be root's, and the server could not use it."""
    serve_by(monkeypatch)
    place = tempfile.mkdtemp(dir="/usr/local")
    try:
        os.chmod(place, 0o755)
        monkeypatch.chdir(place)
        for argv in (["--db", "svc.db"], []):
            code, out, err = svc("migrate", *argv)
            assert (code, out, os.listdir(place)) == (1, "", [])
            assert err == (
                f"svc: no database is created: {place} does not belong to nobody, the server's user\n"
                f"hint: sudo svc admin migrate --db {place}/data/svc.db\n"
            )
        assert svc("migrate", "--db", f"{place}/data/svc.db")[0] == 0
    finally:
        shutil.rmtree(place)


@pytest.mark.parametrize("path", ["svc.db", "data/svc.db"])
def test_where_the_server_cannot_go_none_is_created(
    svc: Any, tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch, needs_root: None
) -> None:
    """As below /root; the next directory that can be used is the service's own."""
    account = serve_by(monkeypatch)
    closed = tmp_path / "closed"
    (closed / "own").mkdir(parents=True)
    closed.chmod(0o700)
    os.chown(closed / "own", account.pw_uid, account.pw_gid)
    code, _, err = svc("migrate", "--db", str(closed / "own" / path))
    assert code == 1
    assert "no database is created: nobody, the server's user, cannot reach" in err
    assert err.endswith("hint: sudo svc admin migrate --db /var/lib/svc/data/svc.db\n")
    assert os.listdir(closed / "own") == []


def test_a_mistyped_path_leaves_no_directories(svc: Any, tmp_path: Path, needs_root: None) -> None:
    code, out, err = svc("migrate", "--db", str(tmp_path / "typo" / "data" / "svc.db"))
    assert (code, out) == (1, "")
    assert f"there is no directory {tmp_path}/typo for {tmp_path}/typo/data; create it first" in err
    assert not (tmp_path / "typo").exists()
    assert not (tmp_path / "state").exists()


def test_an_ordinary_user_gets_an_account_in_a_database_of_their_own(
    svc: Any, tmp_path: Path, needs_root: None
) -> None:
    open_to_all(tmp_path)
    own = tmp_path / "own"
    own.mkdir()
    os.chown(own, 65534, 65534)
    code, out, _ = run_as(Owner(65534, 65534), lambda: list(svc("migrate", "--db", str(own / "svc.db"))))
    assert code == 0
    assert "superuser: nobody, for `svc server --dev`" in out
    assert rows(str(own / "svc.db"), "SELECT name, uid, superuser, provisioning FROM users ORDER BY uid") == [
        ("root", 0, 1, "ready"),
        ("nobody", 65534, 1, "ready"),
    ]
    assert not (tmp_path / "state").exists(), "the trial's file is root's"


def test_a_stranger_is_told_the_same_command_with_sudo(svc: Any, database: str, needs_root: None) -> None:
    for arguments in (("migrate",), ("list-users",), ("set-password", "root"), ("doctor",)):

        def work(arguments: tuple[str, ...] = arguments) -> list[Any]:
            return list(svc(*arguments))

        code, out, err = run_as(Owner(65534, 65534), work)
        assert (code, out) == (1, "")
        assert f"hint: sudo svc admin {' '.join(arguments)}" in err


def lose_secret(database: str) -> Path:
    """Another secret in the place of the database's own; its path."""
    path = Path(database).with_name("secret.key")
    path.write_text("f" * 64)
    return path


def test_another_secret_is_said_and_takes_the_place_only_when_told(svc: Any, database: str) -> None:
    """Passwords that nobody could give and values that nobody could read are gone; the rest stays."""
    assert svc("set-password", "root", stdin=b"q7#fLp2z tap cup\n")[0] == 0
    code, _, err = svc("migrate", "--new-secret", "--yes")
    assert (code, "is not known to be another secret" in err) == (1, True)
    connection = sqlite3.connect(database)
    connection.execute("INSERT INTO users (name, uid, password_hash, created_at, updated_at)"
                       " VALUES ('old', 7, '$2b$12$of-an-earlier-release', '', '')")  # fmt: skip
    connection.commit()
    connection.close()
    path = lose_secret(database)
    code, out, _ = svc("migrate")
    assert code == 0
    assert f"{path} is not the signing secret that this database was used with" in out
    assert "if it is lost: sudo svc admin migrate --new-secret" in out
    code, _, err = svc("set-password", "root", stdin=b"q7#fLp2z tap cup\n")
    assert (code, "is not the signing secret" in err) == (1, True)
    assert svc("migrate", "--new-secret")[0] == 1, "asks, or needs --yes"
    with hold(database):
        assert "is in use by" in svc("migrate", "--new-secret", "--yes")[2]
    code, out, err = svc("migrate", "--new-secret", "--yes")
    assert (code, err) == (0, "")
    assert "removed: 1 passwords, 0 sessions, 0 values of secret variables" in out
    assert rows(database, "SELECT name, password_hash IS NULL FROM users ORDER BY id") == [
        ("root", 1), ("old", 0),
    ]  # fmt: skip
    assert rows(database, "SELECT count(*) FROM audit WHERE action = 'admin.new_secret'") == [(1,)]
    assert "signing secret" not in svc("migrate")[1]
    assert svc("set-password", "root", stdin=b"q7#fLp2z tap cup\n")[0] == 0


def test_a_secret_that_is_gone_is_made_anew_when_told(svc: Any, database: str) -> None:
    svc("set-password", "root", stdin=b"q7#fLp2z tap cup\n")
    Path(database).with_name("secret.key").unlink()
    code, out, _ = svc("migrate", "--new-secret", "--yes")
    assert code == 0
    assert "secret.key created" in out
    assert "removed: 1 passwords" in out


def test_a_damaged_database_is_not_up_to_date(
    svc: Any, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(condition, "_seen", {})
    whole = Path(database).read_bytes()
    zero_page_of(database, "audit_owner")
    for _ in range(2):  # found by its own check, then known to the service too
        code, out, err = svc("migrate")
        assert (code, "up to date" in out) == (1, False)
        assert "the database is damaged" in err
        assert "hint: stop the service, then: sudo svc admin restore PATH" in err
        condition.note(database, faults.damaged("page 30"))
    close_database()
    for log in ("-wal", "-shm"):
        Path(database + log).unlink(missing_ok=True)
    Path(database).write_bytes(whole)
    assert svc("migrate")[0] == 0
    assert condition.find(database) is None, "a whole check has ended it"


def test_a_dropped_table_is_not_up_to_date(svc: Any, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = sqlite3.connect(database)
    connection.execute("DROP TABLE sessions")
    connection.close()
    code, _, err = svc("migrate")
    assert code == 1
    assert "the schema lacks the column sessions." in err
    monkeypatch.setattr(order, "CHECKS", (checks.database,))
    code, out, _ = svc("doctor")
    assert code == 1
    assert "the schema lacks the column sessions." in out
    assert "sudo svc admin restore PATH" in out


def test_the_doctor_names_both_ways_on_from_a_loss(
    svc: Any, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check.write_head(database, check.Head(99, "a" * 64))
    monkeypatch.setattr(order, "CHECKS", (checks.database,))
    code, out, _ = svc("doctor")
    assert code == 1
    assert "the newest changes are lost: the audit ends with row " in out
    head = check.head_path(database)
    go_on = f"or, to go on with what is left: sudo runuser -u root -- rm {head}"
    assert f"sudo svc admin restore PATH   (of the newest snapshot); {go_on}" in out
    Path(head).unlink()
    assert svc("doctor")[0] == 0


def test_it_asks_before_an_empty_one_takes_the_place_of_a_lost_one(
    svc: Any, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_BACKUP_DIR", str(tmp_path / "backups"))
    (tmp_path / "backups").mkdir(mode=0o700)
    assert svc("backup", "--dir", str(tmp_path / "backups"), "--retention", "3")[0] == 0
    [snapshot] = (tmp_path / "backups").glob("*.db")
    (tmp_path / "state" / "enrolled").write_text("ada 1001 user\n")
    Path(database).unlink()
    code, _, err = svc("migrate")
    assert code == 1
    assert "1 accounts are enrolled" in err
    assert f"sudo svc admin restore {snapshot}" in err
    assert not Path(database).exists()
    code, _, err = svc("list-users")
    assert (code, f"sudo svc admin restore {snapshot}" in err) == (1, True)
    monkeypatch.setattr(order, "CHECKS", (checks.database, checks.database_disk))
    out = svc("doctor")[1]
    row = next(line for line in out.splitlines() if line.startswith("database\t"))
    assert (f"sudo svc admin restore {snapshot}" in row, "dmesg" in out) == (True, False)
    assert "database_disk" not in out
    code, out, _ = svc("migrate", "--yes")
    assert (code, "applied: 0001 initial" in out) == (0, True)
