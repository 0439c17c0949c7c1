"""docs/browser-commands.md, which is generated: its pages exist, and a command without one has its reason."""

from __future__ import annotations

import re
import sys

from conventions.inspection import ROOT

from svc.actions.export import program_of
from svc.actions.table import TABLE
from svc.web.pages.shells import PAGES

sys.path.append(str(ROOT / "docs"))

import browser_commands

SHORT = 8  # characters that are no reason


def test_every_command_is_said_once() -> None:
    """In its action's row, or in the page's own table."""
    said = re.findall(r"^\| `svc ([a-z -]+)` \|", browser_commands.page(), re.MULTILINE)
    assert sorted(said) == sorted(browser_commands.places())
    of_actions = {program_of(row).removeprefix("svc ") for row in TABLE if row.page or row.page_note}
    assert not of_actions & set(browser_commands.OTHERS)


def test_every_page_of_a_row_is_one() -> None:
    paths = {path for page in PAGES for path in page.paths}
    places = browser_commands.places()
    assert not [(command, page) for command, (page, _) in places.items() if page not in paths | {""}]
    named = {path for _, said in places.values() for path in re.findall(r"`(/[^`]+)`", said)}
    assert named <= paths


def test_a_command_without_a_page_has_its_reason() -> None:
    places = browser_commands.places()
    assert not [command for command, (page, said) in places.items() if not page and len(said) < SHORT]
