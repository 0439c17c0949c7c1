"""Where the pages are."""

from __future__ import annotations

from svc.web.pages import assets, shells

PATHS = [path.replace("<name>", "lab") for page in shells.PAGES for path in page.paths]


def static(name: str) -> str:
    """The path of a static file of this release."""
    return f"/static/{assets.load().digest}/{name}"
