"""kill -9 of each process of svc under clients that change workspaces: what is so ten seconds later.

kills.py says how to run many rounds by hand.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from depths import sample
from e2e.installation import Service
from hostile.faults import kills
from hostile.faults.kills import Harness

USERS = ("tsz-alice", "tsz-mallory")


@pytest.fixture(scope="module")
def harness(service: Service, alices: str, mallorys: str) -> Iterator[Harness]:
    """Two clients of each user, who have the image and the template `base`."""
    found = Harness(service, USERS, seed=1)
    yield found
    found.close()


KILLED = [name for name in kills.VICTIMS if name != "containers too"]


@pytest.mark.parametrize("victim", sample(KILLED, 3, "one loop of kills for each process of svc"))
def test_every_row_is_settled_and_true(harness: Harness, victim: str) -> None:
    """No transition outlives its cause, what was acknowledged is so, no audited action stays open."""
    outcome = harness.round(victim)
    assert not outcome.wrong
    assert not outcome.late, outcome


def test_the_database_is_sound(harness: Harness) -> None:
    kills.database_is_sound(harness.service.env)
