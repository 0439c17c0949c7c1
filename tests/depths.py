"""How deep a run of the tests goes: what a change waits for, what a merge adds, what a release adds.

`pytest.mark.depth("merge", "why")` on a test, a module or one parameter leaves it to that depth. A test
that loops asks `rounds`, one with many like inputs `sample`. `tests/run --depth` sets SVC_TEST_DEPTH;
without it, as in a plain call of pytest, everything but the hours runs.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

DEPTHS = ("change", "merge", "release")
CHOSEN = os.environ.get("SVC_TEST_DEPTH") or "merge"
if CHOSEN not in DEPTHS:
    raise pytest.UsageError(f"SVC_TEST_DEPTH is {CHOSEN!r}: it is one of {', '.join(DEPTHS)}")


def rounds(change: int, merge: int, release: int) -> int:
    """How often a test that loops goes round at the chosen depth."""
    return (change, merge, release)[DEPTHS.index(CHOSEN)]


def sample(values: Sequence[Any], count: int, reason: str) -> list[Any]:
    """Parameters of a test: `count` of them, evenly spread, at every depth; the others at a merge.

    A tuple is the values of several parameters.
    """
    every = [at * len(values) // count for at in range(count)]
    later = pytest.mark.depth("merge", reason)
    rows = [value if isinstance(value, tuple) else (value,) for value in values]
    return [pytest.param(*row, marks=[] if at in every else later) for at, row in enumerate(rows)]


def depth_of(item: pytest.Item) -> str:
    """The depth at which a test runs: the deepest that its marks say."""
    found = ["change"]
    for mark in item.iter_markers("depth"):
        if len(mark.args) != 2 or mark.args[0] not in DEPTHS[1:] or not mark.args[1]:
            raise pytest.UsageError(f'{item.nodeid}: a mark is depth("merge" or "release", "why")')
        found.append(mark.args[0])
    return max(found, key=DEPTHS.index)


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Take the tests of greater depths out of `items`; SVC_TEST_LEFT_OUT names a file for their number."""
    depths = {item: depth_of(item) for item in items}
    left = [item for item in items if DEPTHS.index(depths[item]) > DEPTHS.index(CHOSEN)]
    items[:] = [item for item in items if item not in set(left)]
    config.hook.pytest_deselected(items=left)
    # Each process of a suite collects the same.
    if (report := os.environ.get("SVC_TEST_LEFT_OUT")) and os.environ.get(
        "PYTEST_XDIST_WORKER", "gw0"
    ) == "gw0":
        Path(report).write_text(json.dumps(Counter(depths[item] for item in left)))
