"""What every test of the rules stands on: a configuration of its own, and a database that is quick."""

from __future__ import annotations

import pytest
from unit.configuring import SECRET

from svc.db.connect import PRAGMAS, database
from svc.domain import audit, audit_budget, configuration

# A database that lives as long as one test need not survive a power cut: it would wait for the disk
# longer than for all else. tests/unit/db/test_connect.py tests the pragmas of the product.
FAST = PRAGMAS | {"synchronous": "OFF"}


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
    monkeypatch.setattr(audit, "counts", audit_budget.Counts())
    monkeypatch.setattr(audit, "refusals", audit_budget.Recent(audit_budget.REFUSALS))
    monkeypatch.setattr(audit, "uses_of_reserve", audit_budget.Recent(audit_budget.CALLS_WHEN_FULL))
