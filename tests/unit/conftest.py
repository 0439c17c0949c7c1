"""What every test of the rules stands on: a configuration of its own, and a database that is quick."""

from __future__ import annotations

import gc

import pytest
from unit.configuring import FAST, SECRET

from svc.db.connect import database
from svc.domain import configuration
from svc.domain.audit import audit, budget


@pytest.fixture(autouse=True, scope="module")
def old_objects_stay() -> None:
    """What exists before a module is not searched for garbage again: thousands of tests, and the program."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def default_configuration() -> None:
    """The process has the default configuration and its signing secret."""
    configuration.current = configuration.Configuration(secret=SECRET)


@pytest.fixture(autouse=True)
def quick_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections opened by this test do not wait for the disk."""
    monkeypatch.setattr(database, "_pragmas", list(FAST.items()))


@pytest.fixture(autouse=True)
def nothing_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process has refused nobody yet, and counted no calls."""
    monkeypatch.setattr(audit, "counts", budget.Counts())
    monkeypatch.setattr(audit, "refusals", budget.Recent(budget.REFUSALS))
    monkeypatch.setattr(audit, "uses_of_reserve", budget.Recent(budget.CALLS_WHEN_FULL))
