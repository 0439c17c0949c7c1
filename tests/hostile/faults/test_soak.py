"""Some seconds of steady load; soak.py says how to run many minutes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile.faults import custody_kills, soak

pytestmark = pytest.mark.depth("merge", "a soak of some seconds of load")


def test_nothing_grows(public_tmp_path: Path) -> None:
    with custody_kills.harness_of(1, public_tmp_path) as harness:
        lines, wrong = soak.soak(harness, 15, every=0.5)
    assert wrong == []
    assert len(lines) > 6, lines
