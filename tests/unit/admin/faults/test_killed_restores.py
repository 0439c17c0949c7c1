"""Fault test 6: a restore by root of a database that belongs to another account, killed at each step."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from depths import rounds
from unit.admin.conftest import Svc
from unit.admin.killing import run_until
from unit.admin.rows import ask, change, user

from svc.host import restoring
from svc.host.owner import Owner, run_as

STRIDE = 12 // rounds(1, 3, 12)  # a release tries every step
OWNER = Owner(65534, 65534)
NEW = "SELECT count(*) FROM users WHERE name = 'new'"


@pytest.fixture
def owned(database: str, snapshot: str, tmp_path: Path) -> str:
    """The database as the service has it: of an account of its own, in a directory of that account's."""
    for part in (tmp_path, *tmp_path.parents):
        if part.stat().st_mode & 0o001 == 0:
            part.chmod(part.stat().st_mode | 0o011)
    change(database, user(30, "new"))
    data = Path(database).parent
    for path in (data, *data.iterdir()):
        os.chown(path, *OWNER)
    return database


def by_owner(work: Callable[[], object]) -> object:
    return run_as(OWNER, work)


def test_killed_at_each_step(svc: Svc, owned: str, snapshot: str, tmp_path: Path) -> None:
    """Old or new, never mixed, whichever of root's process and the owner's is killed; nothing of root's
    is left in the owner's directory."""
    state = str(tmp_path / "state")
    outcomes, step, killed_one_of_its_own = set(), 1, False
    while True:
        code = run_until(step, lambda: svc("restore", snapshot, "--yes")[0])
        if code == 0:
            outcomes.add("ended")
            break
        killed_one_of_its_own |= code == 1
        noted = restoring.find(state, owned) is not None
        if noted:
            assert run_until(0, lambda: svc("list-users")[0]) == 1
            assert run_until(0, lambda: svc("restore", "--finish")[0]) == 0
        is_new = ask(owned, NEW) == [(0,)]
        outcomes.add("finished" if noted else "new" if is_new else "old")
        assert is_new or not noted
        assert ask(owned, "PRAGMA integrity_check") == [("ok",)]
        if is_new:
            by_owner(lambda: change(owned, user(30, "new")))
        step += STRIDE if code is None or code == 1 else 1
    assert {"old", "finished", "ended"} <= outcomes, outcomes
    assert killed_one_of_its_own, "no process of the owner's was killed"
    foreign = [path.name for path in Path(owned).parent.iterdir() if path.stat().st_uid != OWNER.uid]
    assert not foreign
    assert not list(Path(owned).parent.glob("*.restoring*"))
