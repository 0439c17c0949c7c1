"""Three rounds of kills under writes, backups and restores; custody_kills.py says how to run many."""

from __future__ import annotations

from pathlib import Path

import pytest
from hostile.faults import custody_kills

pytestmark = pytest.mark.depth("merge", "a loop of kills under load")


def test_nothing_acknowledged_is_lost(public_tmp_path: Path) -> None:
    """ "rounds of kill -9 under HTTP writes, backups and restores lose no acknowledged write": the last
    round restores a snapshot, and the restore may be killed and completed."""
    with custody_kills.harness_of(7, public_tmp_path) as harness:
        for number in (2, 3, 4):
            assert harness.turn(number) == []
    assert harness.ledger.acknowledged > 20
    assert harness.counts["restores"] + harness.counts["restores killed"] >= 1
