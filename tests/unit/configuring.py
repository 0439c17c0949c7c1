"""The domain's configuration in tests: each test begins with the defaults and a secret that is nobody's."""

from __future__ import annotations

from typing import Any

from svc.db.connect import PRAGMAS
from svc.domain import configuration

# A database that lives as long as one test need not survive a power cut: it would wait for the disk
# longer than for all else. tests/unit/db/test_connect.py tests the pragmas of the product.
FAST = PRAGMAS | {"synchronous": "OFF"}
SECRET = b"0123456789abcdef0123456789abcdef"


def configured(**changes: Any) -> None:
    """Put these values in force for the rest of the test, beside those in force."""
    configuration.current = configuration.current._replace(**changes)
