"""A vendor, and the installation whose trial and licence are resolved."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.configuring import configured
from unit.licensing import CODE, Vendor


@pytest.fixture(scope="session")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Vendor:
    """A vendor with a key pair."""
    return Vendor(tmp_path_factory.mktemp("vendor"))


@pytest.fixture
def state(tmp_path: Path, db: str) -> str:
    """The state directory of this installation, with a trial that begins now."""
    configured(state_dir=str(tmp_path), license_path=str(tmp_path / "license.json"), request_code=CODE)
    return str(tmp_path)
