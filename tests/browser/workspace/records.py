"""Records of one workspace's pages, as the API gives them."""

from __future__ import annotations

from typing import Any

from browser import records
from browser.canned import Canned

ID = "ws-train-7b"
PATH = f"/api/workspaces/{ID}"
VERSION = '"aaaa.bbbb.cccc"'


def of_the_mock_up(**more: Any) -> dict[str, Any]:
    """The running workspace of the mock-up."""
    found = next(item for item in records.of_the_mock_up() if item["name"] == "train-7b")
    return found | {"display_name": "7B from scratch, run 3"} | more


def answer(record: dict[str, Any], version: str = VERSION) -> tuple[int, Any, dict[str, str]]:
    """A record with its version."""
    return 200, record, {"ETag": version}


def serve(canned: Canned, record: dict[str, Any]) -> None:
    """Answer with this record, by its name and by its id."""
    for ref in (record["name"], record["id"]):
        canned.answers[f"GET /api/workspaces/{ref}"] = answer(record)
