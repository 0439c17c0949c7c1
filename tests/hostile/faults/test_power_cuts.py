"""A few power cuts; power_cuts.py says how to make many."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hostile.faults import power_cuts


def test_what_was_acknowledged_is_on_the_disk(public_tmp_path: Path) -> None:
    """ "every acknowledged write survives kill -9 and power loss"."""
    if not os.path.exists("/dev/loop-control"):
        pytest.skip("this host has no loop devices")
    with power_cuts.cuts_in(public_tmp_path, 3) as cuts:
        for number in range(3):
            assert cuts.turn(number) == []
    assert cuts.counts["acknowledged writes"] > 20
