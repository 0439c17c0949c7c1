"""Pulls, builds and set-ups under test: begun, followed, looked at from outside."""

from __future__ import annotations

from typing import Any

from e2e.installation import Call
from e2e.surroundings import must
from waiting import until


def begin(call: Call, *arguments: str) -> str:
    """Begin one without waiting for it; its id."""
    return str(must(call(*arguments, "--json")).json()["operation"]["id"])


def record(call: Call, operation: str) -> dict[str, Any]:
    """How it is now."""
    return dict(must(call("api", "GET", f"/api/operations/{operation}")).json())


def ended(call: Call, operation: str, seconds: float = 60) -> dict[str, Any]:
    """How it ended."""

    def over() -> dict[str, Any] | None:
        found = record(call, operation)
        return found if found["status"] not in ("queued", "running") else None

    return dict(until(over, seconds, 0.1))


def succeeded(call: Call, operation: str, seconds: float = 60) -> dict[str, Any]:
    """How it ended, which has to be well."""
    found = ended(call, operation, seconds)
    assert found["status"] == "succeeded", found
    return found


def log(call: Call, operation: str) -> str:
    """What it has said so far."""
    lines = must(call("api", "GET", f"/api/operations/{operation}/log")).json()["lines"]
    return "\n".join(line["text"] for line in lines)


def cancel(call: Call, operation: str) -> dict[str, Any]:
    """Ask for its end, and see it."""
    must(call("api", "POST", f"/api/operations/{operation}/cancel", "--body", "{}"))
    return ended(call, operation, 45)
