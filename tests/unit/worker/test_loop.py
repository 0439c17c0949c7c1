"""The loop's own decisions; its life is in tests/e2e/processes/test_faults.py."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from svc.db.connect import database, write
from svc.worker import loop
from svc.worker.loop import CHECKPOINT_BYTES, CHECKPOINT_S, Loop


@pytest.fixture
def idle(db: str) -> Iterator[Loop]:
    event = os.eventfd(0)
    settings: Any = SimpleNamespace(db=db)
    yield Loop(settings, None, event, -1e12)  # type: ignore[arg-type]  # it asks no helper here
    os.close(event)


def test_a_large_log_is_not_left_to_grow(idle: Loop, db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundles that come and go would else write gigabytes of it between two checkpoints by the clock."""
    clock = [idle.checkpointed_at]
    monkeypatch.setattr(loop.time, "monotonic", lambda: clock[0])
    clock[0] += 2
    assert not idle._is_log_due()
    with write():
        database.execute_sql("CREATE TABLE large (x)")
        database.execute_sql("INSERT INTO large VALUES (zeroblob(?))", (CHECKPOINT_BYTES,))
    assert idle._is_log_due()
    idle._checkpoint()
    assert Path(f"{db}-wal").stat().st_size == 0
    assert not idle._is_log_due()
    clock[0] += CHECKPOINT_S
    assert idle._is_log_due()
