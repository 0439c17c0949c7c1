"""What an interrupted switch keeps from being used, and for whom."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.errors import DatabaseRefused
from svc.host import notes, restoring, switching


@pytest.mark.parametrize("step", ["prepared", "package", "database", "start"])
def test_nothing_uses_a_database_that_may_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs_root: None, step: str
) -> None:
    state = str(tmp_path)
    notes.put(switching.path_of(state), {"database": "/x/svc.db", "version": "1.2", "step": step})
    restoring.require_none(state, "/another.db")
    if step in ("prepared", "start"):
        restoring.require_none(state, "/x/svc.db")
        return
    with pytest.raises(DatabaseRefused, match=r"a switch of svc to version 1\.2 was interrupted") as raised:
        restoring.require_none(state, "/x/svc.db")
    assert raised.value.hint == "sudo svc admin rollback apply --finish --db /x/svc.db"
    monkeypatch.setenv(switching.IN_SWITCH, "1")
    restoring.require_none(state, "/x/svc.db")
