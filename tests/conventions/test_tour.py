"""docs/browser.md holds: every page of the browser is on it; docs/browser-commands.md has the commands."""

from __future__ import annotations

import re

from conventions.inspection import ROOT

from svc.web.pages.shells import PAGES

TEXT = (ROOT / "docs/browser.md").read_text()


def test_the_screens_it_names_are_pages() -> None:
    """By their addresses; a page of several addresses is named by one."""
    shown = {re.sub("NAME", "<name>", address) for address in re.findall(r"\| `(/[^`]*)` \|", TEXT)}
    paths = {page.name: set(page.paths) for page in PAGES if page.paths}
    assert not [name for name, own in paths.items() if not own & shown]
