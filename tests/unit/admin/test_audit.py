"""Exporting, archiving and verifying the audit's rows, and what the doctor says of them afterwards."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from svc.admin.checks import audit as check
from svc.admin.findings import Finding, Host
from svc.db.connect import close_database, open_database
from svc.db.connect import database as db
from svc.domain.audit import archive, audit
from svc.domain.audit.chain import Head
from svc.host.owner import owner_of
from svc.settings import Settings

LATER = "2999-01-01"


def append(path: str, count: int) -> None:
    open_database(path)
    for number in range(count):
        audit.append(audit.Actor(None, "root", "admin"), "admin.test", str(number), "ok", "req-1", {})
    close_database()


def ids(path: str) -> list[int]:
    open_database(path)
    found = [row[0] for row in db.execute_sql("SELECT id FROM audit ORDER BY id")]
    close_database()
    return found


def chain(path: str) -> Finding:
    [finding] = check.audit_chain(Host(Settings(flags={"SVC_DB": path}), path, owner_of(path)))
    return finding


def test_an_export_changes_nothing(svc: Any, database: str, tmp_path: Path) -> None:
    append(database, 3)
    before = ids(database)
    file = tmp_path / "audit.jsonl"
    code, out, err = svc("audit", "export", "--out", str(file))
    assert (code, out, err) == (0, f"{len(before)} rows of the audit are in {file}\n", "")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert ids(database) == before
    assert svc("audit", "export") == (0, file.read_text(), "")
    code, _, err = svc("audit", "export", "--out", str(file))
    assert code == 1
    assert "File exists" in err


@contextmanager
def standard_input(descriptor: int) -> Iterator[None]:
    """The process's own standard input is this."""
    before = os.dup(0)
    os.dup2(descriptor, 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


def test_archives_go_on_from_each_other_to_the_database(svc: Any, database: str, tmp_path: Path) -> None:
    first, second = str(tmp_path / "1"), str(tmp_path / "2")
    append(database, 5)
    newest = ids(database)[-1]
    code, _, err = svc("audit", "archive", "--before", LATER, "--out", first)
    assert (code, "--yes" in err, os.path.exists(first)) == (1, True, False)
    code, _, err = svc("audit", "archive", "--before", LATER, "--out", "-", "--yes")
    assert (code, "- is no file" in err) == (2, True), "a stream is not durable: the rows would be lost"
    code, out, _ = svc("audit", "archive", "--before", LATER, "--out", first, "--yes")
    assert (code, out) == (
        0,
        f"{newest - 1} rows of the audit are in {first}, and no longer in the database\n",
    )
    assert ids(database) == [newest, newest + 1], "the newest stays, and this was recorded"
    assert chain(database).level == "ok"
    assert f"up to row {newest - 1} are in archives" in chain(database).found
    append(database, 3)
    assert svc("audit", "archive", "--before", LATER, "--out", second, "--yes")[0] == 0
    code, out, _ = svc("audit", "verify", first, second)
    assert code == 0
    assert out.endswith("the database goes on from there\n")
    with open(second, "rb") as file, standard_input(file.fileno()):
        assert svc("audit", "verify", first, "-")[0] == 0
    code, out, _ = svc("audit", "verify", first, "--json")
    assert code == 1, "the database begins behind the second"
    assert json.loads(out)["items"][0]["rows"] == newest - 1
    code, _, err = svc("audit", "verify", second, first)
    assert (code, "does not go on from" in err) == (1, True)


def test_nothing_is_that_old(svc: Any, database: str, tmp_path: Path) -> None:
    append(database, 2)
    code, _, err = svc("audit", "archive", "--before", "2020-01-01", "--out", str(tmp_path / "1"), "--yes")
    assert code == 1
    assert "no row of the audit is older than 2020-01-01T" in err
    assert os.listdir(tmp_path) == ["data", "state"] or not (tmp_path / "1").exists()
    code, _, err = svc("audit", "archive", "--before", "yesterday", "--out", str(tmp_path / "1"))
    assert code == 2


def test_a_file_that_cannot_be_made_loses_nothing(svc: Any, database: str, tmp_path: Path) -> None:
    append(database, 3)
    before = ids(database)
    (tmp_path / "link").symlink_to("/dev/null")
    for name in (str(tmp_path), str(tmp_path / "no" / "1"), str(tmp_path / "link"), "/dev/full"):
        code, out, err = svc("audit", "archive", "--before", LATER, "--out", name, "--yes")
        assert (code, out) == (1, ""), name
        assert err
    assert ids(database) == before


def test_rows_that_somebody_else_removed_are_missed(
    svc: Any, database: str, tmp_path: Path, needs_root: None
) -> None:
    """The app may remove what root has archived, and nothing else."""
    append(database, 5)
    assert chain(database).level == "ok"
    open_database(database)
    third = db.execute_sql("SELECT id, hash FROM audit WHERE id = 3").fetchone()
    archive.remove(Head(*third))
    close_database()
    assert chain(database).level == "fail"
    assert "the rows up to 3 were removed" in chain(database).found
    assert str(Path(os.environ["SVC_STATE_DIR"], "audit-archived")) in chain(database).remedy
    code, _, err = svc("audit", "archive", "--before", LATER, "--out", str(tmp_path / "1"), "--yes")
    assert code == 1
    assert "the audit is not whole" in err


@pytest.mark.parametrize(
    "content", ["", "{}\n", "x" * 100, '{"svc_audit": 2, "after": {"id": 0, "hash": ""}}\n']
)
def test_what_is_no_archive(svc: Any, database: str, tmp_path: Path, content: str) -> None:
    file = tmp_path / "1"
    file.write_text(content)
    code, out, err = svc("audit", "verify", str(file))
    assert (code, out) == (1, "")
    assert f"{file}: line 1: " in err
    assert svc("audit", "verify", str(tmp_path / "none"))[0] == 1
