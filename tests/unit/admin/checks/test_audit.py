"""What the doctor says of the audit's chain, and what root remembers of it."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from unit.serving import copy_of_migrated

from svc.admin.checks import audit as check
from svc.admin.findings import Finding, Host
from svc.db.connect import close_database, open_database
from svc.db.connect import database as db
from svc.domain.audit import audit
from svc.errors import SvcError
from svc.host.owner import Owner, run_as
from svc.settings import Settings

NOBODY = pwd.getpwnam("nobody")


@pytest.fixture
def host(public_tmp_path: Path, needs_root: None) -> Iterator[Host]:
    """A host whose database is somebody else's than root's, with five rows of audit in it."""
    tmp_path = public_tmp_path
    (tmp_path / "data").mkdir()
    (tmp_path / "state").mkdir()
    path = copy_of_migrated(str(tmp_path / "data" / "svc.db"))
    settings = Settings(environ={"SVC_DB": path, "SVC_STATE_DIR": f"{tmp_path}/state"}, file={})
    created = Host(settings, path, Owner(NOBODY.pw_uid, NOBODY.pw_gid), str(tmp_path))
    change(created)
    append(created, 5)
    yield created
    close_database()


def change(host: Host, *statements: str) -> None:
    """Do this to the database as whoever can write it and took the triggers away."""
    os.chown(host.database, 0, 0)
    open_database(host.database)
    for statement in statements:
        db.execute_sql(statement)
    close_database()
    for path in (os.path.dirname(host.database), *Path(host.database).parent.iterdir()):
        os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid)


def append(host: Host, count: int, outcome: str = "ok") -> None:
    os.chown(host.database, 0, 0)
    open_database(host.database)
    for number in range(count):
        audit.append(audit.Actor(None, "root", "admin"), "admin.test", str(number), outcome, "req-1", {})
    close_database()
    change(host)


def found(host: Host) -> Finding:
    [finding] = check.audit_chain(host)
    assert (finding.code, bool(finding.remedy)) == ("audit_chain", finding.level == "fail")
    return finding


def remembered(host: Host) -> str:
    path = Path(host.settings.state_dir, "audit-head")
    return path.read_text() if path.exists() else ""


UNLOCK = ("DROP TRIGGER audit_keeps_its_rows", "DROP TRIGGER audit_keeps_its_values")


def test_a_whole_chain_and_its_end_are_told_and_remembered(host: Host) -> None:
    first = found(host)
    assert first.level == "ok"
    number, hash_, path = remembered(host).split()
    assert (number, path) == ("5", host.database)
    assert first.found == f"intact, 5 rows; it ends with row 5, {hash_}"
    status = os.stat(Path(host.settings.state_dir, "audit-head"))
    assert (status.st_uid, stat.S_IMODE(status.st_mode)) == (0, 0o644)
    append(host, 2)
    assert found(host).level == "ok"
    assert remembered(host).startswith("7 ")
    assert found(host).level == "ok"
    assert os.listdir(host.settings.state_dir) == ["audit-head"]


def test_no_rows_are_a_whole_chain(host: Host) -> None:
    copy_of_migrated(host.database)
    change(host)
    assert found(host).found == "intact, 0 rows"
    assert remembered(host) == ""


def test_a_row_that_was_changed(host: Host) -> None:
    change(host, *UNLOCK, "UPDATE audit SET outcome = 'refused' WHERE id = 3")
    assert found(host).level == "fail"
    assert "row 3 " in found(host).found
    assert remembered(host) == ""


def test_triggers_that_are_gone(host: Host) -> None:
    change(host, UNLOCK[0])
    assert found(host).level == "fail"
    assert "audit_keeps_its_rows" in found(host).found


@pytest.mark.parametrize(("more", "arguments"), [(0, "rows after 4 are gone"), (1, "row 5 differs"),
                                             (3, "row 5 differs")])  # fmt: skip
def test_a_tail_that_was_cut_off_since_the_last_run(host: Host, more: int, arguments: str) -> None:
    assert found(host).level == "ok"
    before = remembered(host)
    change(host, *UNLOCK, "DELETE FROM audit WHERE id > 4")
    append(host, more, outcome="refused")
    for _ in range(2):  # it stays found, and what was remembered stays as evidence
        assert found(host).level == "fail"
        assert arguments in found(host).found
        assert remembered(host) == before


def test_a_chain_that_was_written_anew_since_the_last_run(host: Host) -> None:
    assert found(host).level == "ok"
    change(host, *UNLOCK, "DELETE FROM audit")
    append(host, 5, outcome="refused")
    assert "the chain was rewritten" in found(host).found


def test_each_database_has_its_own_end(host: Host, tmp_path: Path) -> None:
    assert found(host).level == "ok"
    other = Host(host.settings, copy_of_migrated(str(tmp_path / "data" / "other.db")), host.owner)
    append(other, 1)
    assert found(other).level == "ok"
    assert sorted(line.split()[0] for line in remembered(host).splitlines()) == ["1", "5"]
    assert found(host).level == "ok"


def test_who_is_not_root_remembers_nothing(host: Host) -> None:
    [(code, level, *_)] = run_as(host.owner, lambda: list(check.audit_chain(host)))
    assert (code, level) == ("audit_chain", "ok")
    assert remembered(host) == ""


def test_a_database_that_cannot_be_opened_is_told_by_its_own_check(host: Host) -> None:
    os.rename(host.database, f"{host.database}.away")
    assert list(check.audit_chain(host)) == []


@pytest.mark.parametrize(
    "lie", [{"head_hash": f"{'a' * 64} /x\n9 {'b' * 64}"}, {"head_hash": "A" * 64}, {"head_id": "5"},
            {"head_id": True}, {"remembered": "x"}, {"remembered": None}, {"more": 1}],
)  # fmt: skip
def test_the_owners_word_is_checked(host: Host, monkeypatch: pytest.MonkeyPatch, lie: dict[str, Any]) -> None:
    real = check.run_as
    monkeypatch.setattr(check, "run_as", lambda owner, work: real(owner, work) | lie)
    with pytest.raises(SvcError):
        list(check.audit_chain(host))
    assert remembered(host) == ""


def test_what_is_no_head_is_not_believed(host: Host) -> None:
    path = Path(host.settings.state_dir, "audit-head")
    path.write_text(f"garbage\n0 {'a' * 64} {host.database}\n9 short {host.database}\n")
    assert found(host).level == "ok"
    assert remembered(host).startswith("5 ")
