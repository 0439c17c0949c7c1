from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from svc.db.connect import close_database, open_database
from svc.db.models import Audit
from svc.db.secret import read_secret
from svc.domain import passwords, users

GOOD = b"q7#fLp2z tap cup\n"


def verifies(path: str, name: str, password: str) -> bool:
    open_database(path)
    stored = users.get(name).password_hash
    close_database()
    return passwords.verify(password, stored, read_secret(str(Path(path).with_name("secret.key"))))


def audit(path: str) -> list[tuple[str, ...]]:
    open_database(path)
    rows = [
        (row.user_name, row.via, row.address, row.action, row.target, row.outcome) for row in Audit.select()
    ]
    close_database()
    return rows


def test_it_rotates_the_service_password(svc: Any, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "ada")
    code, out, err = svc("set-password", "root", stdin=GOOD)
    assert (code, out, err) == (0, "the service password of root is set\n", "")
    assert verifies(database, "root", "q7#fLp2z tap cup")
    assert svc("set-password", "root", stdin=b"another Zebra7-cup")[0] == 0
    assert verifies(database, "root", "another Zebra7-cup")
    assert not verifies(database, "root", "q7#fLp2z tap cup")
    assert audit(database) == [("root", "admin", "sudo:ada", "admin.set_password", "root", "ok")] * 2


@pytest.mark.parametrize("stdin", [b"", b"short\n", b"elevenchars\n", b"administrator1\n", None])
def test_a_bad_one_changes_nothing(svc: Any, database: str, stdin: bytes | None) -> None:
    svc("set-password", "root", stdin=GOOD)
    code, out, err = svc("set-password", "root", stdin=stdin)
    assert (code, out) == (1, "")
    assert err.startswith("svc: ")
    assert (stdin or b"nothing").strip().decode() not in err
    assert verifies(database, "root", "q7#fLp2z tap cup")
    assert audit(database)[-1][-1] == "validation_failed"


def test_an_unknown_account_is_said(svc: Any, database: str) -> None:
    code, _, err = svc("set-password", "nosuch", stdin=GOOD)
    assert code == 1
    assert "there is no account nosuch" in err
    assert "svc admin list-users" in err


def test_a_loose_secret_is_refused(svc: Any, database: str) -> None:
    Path(database).with_name("secret.key").chmod(0o644)
    code, _, err = svc("set-password", "root", stdin=GOOD)
    assert code == 1
    assert "chmod 0600" in err


def test_without_a_database_the_next_command_is_named(svc: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "none.db")
    code, _, err = svc("set-password", "root", "--db", path, stdin=GOOD)
    assert code == 1
    assert f"hint: svc admin migrate --db {path}" in err
