"""The settings; the sign-in screen after a new password; an address without a page."""

from __future__ import annotations

from pages.canned import Canned
from pages.records import page
from pages.settings import records
from pages.states import State

REVOKE = "document.querySelector('[data-key^=revoke-]').click();"


def no_tokens(canned: Canned) -> None:
    """None was made."""
    records.serve(canned)
    canned.answers["GET /api/tokens"] = page([])


def alone(canned: Canned) -> None:
    """One session."""
    records.serve(canned)
    canned.answers["GET /api/auth/sessions"] = page(records.sessions()[:1])


def slow(canned: Canned) -> None:
    """Nothing is answered."""
    records.serve(canned)
    canned.hold("GET /api/tokens")


def refused(canned: Canned) -> None:
    """The database is busy."""
    records.serve(canned)
    for path in ("usage/me", "tokens", "auth/sessions"):
        canned.refuse(f"GET /api/{path}", 503, "busy", "the database is busy", after=30, retryable=True)


STATES: dict[str, State] = {
    "settings": State("/settings", "#dn", records.serve),
    "settings-refused": State("/settings", ".notice", refused),
    "settings-tokens": State("/settings/tokens", "tbody tr", records.serve),
    "settings-tokens-none": State("/settings/tokens", "[data-list] .empty", no_tokens),
    "settings-tokens-loading": State("/settings/tokens", ".skel", slow),
    "settings-tokens-refused": State("/settings/tokens", ".notice", refused),
    "settings-tokens-revoke": State("/settings/tokens", "tbody tr", records.serve, REVOKE),
    "settings-sessions": State("/settings/sessions", "tbody tr", records.serve),
    "settings-sessions-one": State("/settings/sessions", "tbody tr", alone),
    "sign-in-why": State("/sign-in?why=password", ".notice", signed_in=False),
    "nothing-here": State("/no/such/page", ".gate h1", signed_in=False),
}
