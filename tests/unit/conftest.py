"""What every test of the rules stands on: keys made from a secret that is nobody's."""

from __future__ import annotations

import pytest

from svc.db.connect import PRAGMAS, database
from svc.domain.accounts import keys

SECRET = b"0123456789abcdef0123456789abcdef"
# A database that lives as long as one test need not survive a power cut: it would wait for the disk
# longer than for all else. tests/unit/db/test_connect.py tests the pragmas of the product.
FAST = PRAGMAS | {"synchronous": "OFF"}


@pytest.fixture(autouse=True)
def known_keys() -> None:
    """The process has its signing secret."""
    keys.use(SECRET)


@pytest.fixture(autouse=True)
def quick_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections opened by this test do not wait for the disk."""
    monkeypatch.setattr(database, "_pragmas", list(FAST.items()))
