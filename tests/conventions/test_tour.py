"""docs/tour.md holds: every page of the browser and every command for users is on it, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator

from conventions.inspection import ROOT

from svc.__main__ import GROUPS, declaration
from svc.cli.arguments import Command, CommandGroup, Deferred
from svc.web.pages.shells import PAGES

TEXT = (ROOT / "docs/tour.md").read_text()
ROWS = [line.strip("|").split(" | ") for line in TEXT.splitlines() if line.startswith("| ")]


def commands(declared: Command | CommandGroup | Deferred, words: tuple[str, ...]) -> Iterator[str]:
    """A command, or all of a group."""
    declared = declared.load() if isinstance(declared, Deferred) else declared
    if isinstance(declared, CommandGroup):
        for one in declared.commands:
            yield from commands(one, (*words, one.name))
    else:
        yield " ".join(words)


def test_every_command_for_users_has_its_place() -> None:
    found = [
        command for row in ROWS if row[0].startswith(" `") for command in re.findall(r"`([^`]+)`", row[0])
    ]
    users = next(rows for heading, rows in GROUPS.items() if "users" in heading)
    assert sorted(found) == sorted(one for name in users for one in commands(declaration(name), (name,)))


def test_the_screens_it_names_are_pages() -> None:
    """By their addresses; a page of several addresses is named by one."""
    shown = {re.sub("NAME", "<name>", address) for address in re.findall(r"\| `(/[^`]*)` \|", TEXT)}
    paths = {page.name: set(page.paths) for page in PAGES if page.paths}
    assert not [name for name, own in paths.items() if not own & shown]
