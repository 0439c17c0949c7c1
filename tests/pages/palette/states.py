"""The palette and the dialog of the keys, over the workspaces."""

from __future__ import annotations

from pages.canned import Canned
from pages.palette import records
from pages.states import State

OPEN = "document.querySelector('.side [data-palette]').click();"
ROWS = "tbody tr[data-id='ws-train-7b']"


def refused(canned: Canned) -> None:
    """Templates cannot be read."""
    records.add_to(canned)
    canned.refuse("GET /api/templates", 503, "busy", "the database is busy", retryable=True)


STATES: dict[str, State] = {
    "palette": State("/workspaces", ROWS, records.add_to, OPEN),
    "palette-not-all": State("/workspaces", ROWS, refused, OPEN),
    "keys": State("/workspaces", ROWS, script="document.querySelector('#keys').showModal();"),
}
