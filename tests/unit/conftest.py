"""What every test of the rules stands on: keys made from a secret that is nobody's."""

from __future__ import annotations

import pytest

from svc.domain.accounts import keys

SECRET = b"0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def known_keys() -> None:
    """The process has its signing secret."""
    keys.use(SECRET)
