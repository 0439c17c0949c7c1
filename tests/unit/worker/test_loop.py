"""The loop's own decisions; its life is in tests/e2e/processes/test_faults.py."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from unit.serving import make_template, make_workspace

from svc.db.connect import database, write
from svc.domain.accounts import users
from svc.domain.workspaces import reconcile_rules
from svc.worker import loop, upkeep
from svc.worker.loop import Loop
from svc.worker.upkeep import CHECKPOINT_BYTES, CHECKPOINT_S


@pytest.fixture
def idle(db: str) -> Iterator[Loop]:
    event = os.eventfd(0)
    settings: Any = SimpleNamespace(db=db)
    yield Loop(settings, None, event)  # type: ignore[arg-type]  # it asks no helper here
    os.close(event)


def test_a_large_log_is_not_left_to_grow(idle: Loop, db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundles that come and go would else write gigabytes of it between two checkpoints by the clock."""
    clock = [idle.upkeep.checkpointed_at]
    monkeypatch.setattr(upkeep.time, "monotonic", lambda: clock[0])
    clock[0] += 2
    assert not idle.upkeep.is_log_due()
    with write():
        database.execute_sql("CREATE TABLE large (x)")
        database.execute_sql("INSERT INTO large VALUES (zeroblob(?))", (CHECKPOINT_BYTES,))
    assert idle.upkeep.is_log_due()
    idle.upkeep.checkpoint()
    assert Path(f"{db}-wal").stat().st_size == 0
    assert not idle.upkeep.is_log_due()
    clock[0] += CHECKPOINT_S + 1  # the clock is a float
    assert idle.upkeep.is_log_due()


def test_a_watch_ends_with_its_workspace(idle: Loop) -> None:
    """A hostile agent's descriptor may be that of a process which never ends."""
    ada = users.create("ada", uid=3001, provisioning=users.READY)
    template = make_template(ada.id)
    lab = make_workspace(ada.id, template, status="running")
    [row] = reconcile_rules.running()
    idle.watch_at = float("inf")  # nothing is asked of a helper here
    idle._add_watch(os.pidfd_open(os.getpid()), row)
    idle._take_new_watches()
    [fd] = idle.watches
    idle._drop_all_but({row.id for row in reconcile_rules.active()})
    assert list(idle.watches) == [fd]
    with write():
        database.execute_sql("UPDATE workspaces SET status = 'stopped' WHERE id = ?", (lab,))
    idle._drop_all_but({row.id for row in reconcile_rules.active()})
    assert not idle.watches
    with pytest.raises(OSError):
        os.fstat(fd)


def test_another_signing_secret_is_in_the_log(
    db: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "secret.key"
    settings: Any = SimpleNamespace(secret_file=str(path))
    for text, said in (("5" * 64, False), ("6" * 64, True)):
        path.touch(0o600)
        path.write_text(text)
        assert loop._signing_secret(settings) == text.encode()
        assert ("is not the signing secret" in capfd.readouterr().err) is said
