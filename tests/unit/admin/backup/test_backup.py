from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from svc.admin.backup.target import alone


def names(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.endswith(".db"))


def test_a_snapshot_in_a_file(svc: Any, database: str, folder: Path) -> None:
    path = folder / "x.db"
    assert svc("backup", "--out", str(path)) == (0, "", "")
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM users").fetchall() == [("root",)]
    connection.close()
    code, out, err = svc("backup", "--out", str(path))
    assert (code, out) == (1, "")
    assert err == f"svc: {path} already exists\nhint: sudo svc admin backup --out {path} --force\n"
    assert svc("backup", "--out", str(path), "--force") == (0, "", "")


def test_the_newest_are_kept(svc: Any, database: str, folder: Path) -> None:
    """ "Timestamped snapshot in `--dir` or the configured backup directory; then prunes to the newest N" """
    for _ in range(3):
        assert svc("backup", "--dir", str(folder), "--retention", "2") == (0, "", "")
    kept = names(folder)
    assert len(kept) == 2
    code, out, _ = svc("backup", "--dir", str(folder), "--retention", "2", "--json")
    record = json.loads(out)
    assert code == 0
    assert (record["kept"], record["removed"]) == (2, kept[:1])
    assert [os.path.basename(record["path"])] == sorted(set(names(folder)) - set(kept))
    assert record["number"] == 4


def test_the_configured_directory(
    svc: Any, database: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_BACKUP_DIR", str(folder))
    assert svc("backup", "--retention", "1")[0] == 0
    assert len(names(folder)) == 1
    monkeypatch.setenv("SVC_BACKUP_DIR", str(folder / "not-mounted"))
    code, _, err = svc("backup", "--retention", "1")
    assert code == 1
    assert "there is no directory" in err, "a disk that is not mounted: nothing is made in its place"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "exactly one of --out PATH, --retention N and --verify PATH is required"),
        (
            ("--out", "x.db", "--retention", "3"),
            "exactly one of --out PATH, --retention N and --verify PATH is required",
        ),
        (("--dir", "/x"), "one of --out"),
        (("--out", "/x", "--retention", "1"), "one of --out"),
        (("--out", "/x", "--dir", "/y"), "--dir does not go with --out"),
        (("--retention", "1", "--raw"), "--raw does not go with --retention"),
        (("--retention", "1", "--force"), "--force does not go with --retention"),
        (("--verify", "/x", "--with-secrets"), "--with-secrets does not go with --verify"),
        (("--out", "/x", "--raw", "--with-secrets"), "--with-secrets does not go with --raw"),
        (("--retention", "0"), "'0' is not a whole number from 1"),
        (("--retention", "-1"), "--retention"),
        (("--out", ""), "the path is empty"),
        (("--out", "-"), "- is no file; name one"),
        (("--verify", "-"), "- is no file; name one"),
    ],
)
def test_wrong_usage(svc: Any, arguments: tuple[str, ...], why: str) -> None:
    code, out, err = svc("backup", *arguments)
    assert (code, out) == (2, "")
    assert why in err


def test_two_at_once(svc: Any, database: str, folder: Path, tmp_path: Path) -> None:
    with alone(str(tmp_path / "state" / "backup.lock")):
        code, out, err = svc("backup", "--dir", str(folder), "--retention", "1")
    assert (code, out) == (1, "")
    assert err.startswith("svc: another backup is running (pid ")
    assert os.listdir(folder) == []


def test_a_failed_one_removes_nothing(svc: Any, database: str, folder: Path) -> None:
    """A damaged database must not cost the snapshots of the time before."""
    for _ in range(2):
        assert svc("backup", "--dir", str(folder), "--retention", "2")[0] == 0
    before = sorted(os.listdir(folder))
    for log in Path(database).parent.glob("svc.db-*"):
        log.unlink()
    Path(database).write_bytes(os.urandom(40_000))
    code, out, err = svc("backup", "--dir", str(folder), "--retention", "1")
    assert (code, out) == (1, "")
    message, hint = err.splitlines()
    assert message.startswith("svc: the database is damaged, and no snapshot was made: ")
    assert hint.startswith(
        f"hint: stop the service, then: sudo svc admin backup --raw --out {folder}/damaged-"
    )
    assert sorted(os.listdir(folder)) == before
    assert svc("backup", "--raw", "--out", str(folder / "damaged.db")) == (0, "", "")


def test_secrets_are_beside_it_when_asked_for(svc: Any, database: str, folder: Path) -> None:
    secret = Path(database).with_name("secret.key").read_bytes()
    assert svc("backup", "--out", str(folder / "x.db"))[0] == 0
    assert secret not in (folder / "x.db.host.tar").read_bytes()
    assert svc("backup", "--out", str(folder / "x.db"), "--force", "--with-secrets")[0] == 0
    assert secret in (folder / "x.db.host.tar").read_bytes()
    assert secret.strip() not in (folder / "x.db").read_bytes() + (folder / "x.db.json").read_bytes()


def test_a_missing_database(svc: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_DB", str(tmp_path / "none.db"))
    code, _, err = svc("backup", "--dir", str(folder), "--retention", "1")
    assert code == 1
    assert "there is no database" in err
    assert os.listdir(folder) == []


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("SVC_LICENSE_PATH", {"license.json"}),
        ("SVC_TLS_CERT", {"tls/cert.pem", "tls/key.pem"}),
        ("SVC_JWT_SECRET_FILE", {"secret.key"}),
    ],
)
def test_a_bad_setting_costs_its_file_and_not_the_snapshot(
    svc: Any,
    database: str,
    folder: Path,
    recovery: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    files: set[str],
) -> None:
    """The place of the file is not known: it is left out, and the side file says so."""
    monkeypatch.setenv(name, "not/absolute")
    why = f"{name} from environment must be an absolute path"
    code, _, err = svc("backup", "--out", str(folder / "x.db"))
    assert code == 0, err
    assert why in err
    side = json.loads((folder / "x.db.json").read_text())
    left_out = side["host_files"]["left_out"]
    assert {file for file, reason in left_out.items() if reason == why} == files
    assert not files & set(side["host_files"]["holds"])
    code, _, err = svc("backup", "--out", str(folder / "y.db"), "--with-secrets")
    assert (code, names(folder)) == ((0, ["x.db", "y.db"]) if name == "SVC_LICENSE_PATH" else (1, ["x.db"]))
    code, _, err = svc("restore", str(folder / "x.db"), "--yes")
    assert code == 0, err
