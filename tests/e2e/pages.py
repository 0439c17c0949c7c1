"""The blocks of code on a page, run as a reader would: as a user, in that user's home, without a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from e2e.installation import PREFIX, ROOT, Outcome, command


class Block(NamedTuple):
    """One block of code: the heading above it, its language, its text."""

    heading: str
    kind: str
    text: str


def blocks(page: Path, section: str = "") -> list[Block]:
    """The blocks of a page, or of one of its sections, that name a language, in their order."""
    found, heading, text = [], "", page.read_text()
    if section:
        _, begin, text = text.partition(f"\n## {section}\n")
        assert begin, f"{page.name} has no section {section}"
        text = text.partition("\n## ")[0]
    form = r"^#+ ([^\n]*)$|^```(\w+)\n(.*?)^```$"
    for match in re.finditer(form, text, re.MULTILINE | re.DOTALL):
        if match[1]:
            heading = match[1]
        else:
            found.append(Block(heading, match[2], match[3]))
    return found


def play(user: str, script: str, env: dict[str, str], timeout: float = 300) -> Outcome:
    """Run a script with bash, which ends at the first command that fails; `svc` is the one under test."""
    path = f"{PREFIX}/bin:{env['PATH']}"
    return command(user, "bash", "-euo", "pipefail", "-c", script, env=env | {"PATH": path}, timeout=timeout)


class Guide(NamedTuple):
    """A page and its reader: who types its commands, and where its files are written."""

    page: str
    play: Callable[[str], Outcome]
    write: Callable[[str, str], None]
    replace: Mapping[str, str] = {}  # what the reader puts in place of the page's examples

    def filled(self, text: str) -> str:
        """A text with the reader's own names and addresses."""
        for example, own in self.replace.items():
            text = text.replace(example, own)
        return text

    def follow(
        self,
        files: Mapping[str, str],
        instead: Callable[[Block], bool] = lambda block: False,
        section: str = "",
    ) -> dict[str, str]:
        """Do all that the page or a section says, in its order; heading -> what its commands printed.

        Commands have to succeed. `files` names the file that a block holds, by "language heading"; `instead`
        is asked first, and does a block itself when it is true.
        """
        printed: dict[str, str] = {}
        for block in blocks(ROOT / "docs" / self.page, section):
            if instead(block):
                continue
            if block.kind == "sh":
                outcome = self.play(self.filled(block.text))
                assert outcome.code == 0, (
                    f"{self.page}, {block.heading}\n{block.text}{outcome.out}{outcome.err}"
                )
                printed[block.heading] = printed.get(block.heading, "") + outcome.out + outcome.err
            else:
                self.write(files[f"{block.kind} {block.heading}"], self.filled(block.text))
        return printed
