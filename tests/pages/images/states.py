"""The images screen in each of its states."""

from __future__ import annotations

from typing import Any

from pages import records
from pages.canned import Canned
from pages.images import records as images
from pages.images.records import OVERVIEW
from pages.states import State


def _empty(canned: Canned) -> None:
    canned.answers |= {
        OVERVIEW: images.overview([], total_bytes=0, quota_bytes=None),
        "GET /api/images": records.page([]),
        "GET /api/operations": records.page([]),
        "GET /api/templates": records.page([]),
    }


def _held(canned: Canned) -> None:
    images.serve(canned)
    canned.hold(OVERVIEW)


def _refused(status: int, code: str) -> Any:
    def prepare(canned: Canned) -> None:
        images.serve(canned)
        canned.refuse(OVERVIEW, status, code, "it is not to be", retryable=status == 503)

    return prepare


STATES: dict[str, State] = {
    "images": State("/images", "[data-list] tbody tr", images.serve),
    "images, prune": State(
        "/images", "[data-list] tbody tr", images.serve,
        script="document.querySelector('[data-key=prune]').click()",
    ),
    "images, empty": State("/images", "[data-none]:not([hidden])", _empty),
    "images, loading": State("/images", ".skel", _held),
    "images, no permission": State("/images", ".notice", _refused(403, "forbidden")),
    "images, error": State("/images", "[data-countdown]", _refused(503, "unavailable")),
}  # fmt: skip
