"""docs/browser-commands.md: every command of the program once, with its page or the reason for none."""

from __future__ import annotations

import re
from collections.abc import Iterator

from conventions.inspection import ROOT

from svc.__main__ import COMMANDS, declaration
from svc.commandline.arguments import Command, CommandGroup, Deferred
from svc.web.pages.shells import PAGES

ROW = re.compile(r"^\| `svc ([a-z -]+)` \| (`[^`]+`|none) \| (.*?) ?\|$", re.MULTILINE)
SHORT = 8  # characters that are no reason


def rows() -> list[tuple[str, str, str]]:
    """Command, page or none, and what is said of it."""
    text = (ROOT / "docs/browser-commands.md").read_text()
    found = [(command, page.strip("`"), words) for command, page, words in ROW.findall(text)]
    assert len(found) == text.count("\n| `"), "a row of another form"
    return found


def commands(declared: Command | CommandGroup | Deferred, name: str) -> Iterator[str]:
    """The commands below one, with all their words."""
    declared = declared.load() if isinstance(declared, Deferred) else declared
    if isinstance(declared, Command):
        yield name
        return
    for below in declared.commands:
        yield from commands(below, f"{name} {below.name}")


def test_every_command_has_its_row() -> None:
    """In the order of the help, each once."""
    known = [each for name in COMMANDS for each in commands(declaration(name), name)]
    assert [command for command, _, _ in rows()] == known


def test_every_page_of_a_row_is_one() -> None:
    paths = {path for page in PAGES for path in page.paths}
    assert not [(command, page) for command, page, _ in rows() if page not in paths | {"none"}]
    named = {path for _, _, words in rows() for path in re.findall(r"`(/[^`]+)`", words)}
    assert named <= paths


def test_a_command_without_a_page_has_its_reason() -> None:
    assert not [command for command, page, words in rows() if page == "none" and len(words) < SHORT]
