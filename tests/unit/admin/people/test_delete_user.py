"""`svc admin delete-user` for an account without a Linux account; the rest is tested on a real host."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from unit.admin.accounts import add_token

from svc.db.connect import close_database, open_database, write
from svc.domain.accounts import removal, users

PYTHON = os.path.basename(sys.executable)
GONE = "svt-gone"


@pytest.fixture
def gone(database: str, tmp_path: Path) -> str:
    """An account whose Linux account is gone and whose enrolment is left."""
    open_database(database)
    users.create(GONE, uid=59_990, provisioning=users.READY, superuser=True)
    add_token(users.get(GONE).id, "ci")
    close_database()
    enrolled = tmp_path / "state" / "enrolled"
    enrolled.write_text(f"{GONE} 59990 administrator\nsvt-stays 59991 user\n")
    return database


@pytest.mark.allow_commands(PYTHON)
def test_an_account_without_a_linux_account(svc: Any, gone: str, tmp_path: Path) -> None:
    code, out, err = svc("delete-user", GONE, "--yes")
    assert code == 1 and f"hint: sudo svc admin delete-user {GONE} --yes --last-administrator --db " in err
    code, out, err = svc("delete-user", GONE, "--last-administrator")
    assert code == 1 and "Without a terminal this needs --yes" in err
    assert out.splitlines() == [
        f"Deleting the account {GONE} (uid 59990) removes",
        "  1 token",
        "  the enrolment: the service does nothing for this Linux account any more",
        "  the record of the account",
        "and leaves",
        f"  no files of the former Linux account {GONE} (uid 59990) where they were",
        f"  audit rows, with the name {GONE}",
    ]
    code, out, err = svc("delete-user", GONE, "--last-administrator", "--yes")
    assert (code, out.splitlines()[-1]) == (0, f"the account {GONE} is deleted"), err
    assert err == "svc: to find all files without an owner: sudo find / -xdev -nouser\n"
    assert (tmp_path / "state" / "enrolled").read_text() == "svt-stays 59991 user\n"
    code, _, err = svc("delete-user", GONE, "--yes")
    assert (code, err) == (1, f"svc: there is no account {GONE}\nhint: sudo svc admin list-users\n")


@pytest.mark.allow_commands(PYTHON)
def test_an_interrupted_deletion_is_completed(svc: Any, gone: str) -> None:
    open_database(gone)
    with write():
        removal.begin(users.get(GONE))
    close_database()
    listed = svc("list-users")[1]
    assert f"the rest of its deletion\tsudo svc admin delete-user {GONE} --db " in listed
    code, _, err = svc("create-user", GONE, stdin=b"seven quiet herons over mud\n")
    assert code == 1 and "the deletion of the account svt-gone began and did not end" in err
    assert svc("delete-user", GONE, "--yes")[0] == 0


def test_root_stays(svc: Any, database: str) -> None:
    code, _, err = svc("delete-user", "root", "--yes")
    assert (code, err) == (1, "svc: the root account cannot be deleted\n")
