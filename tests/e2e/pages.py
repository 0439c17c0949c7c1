"""The blocks of code on a page, run as a reader would: as a user, in that user's home, without a terminal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from e2e.installation import PREFIX, Outcome, command


class Block(NamedTuple):
    """One block of code: the heading above it, its language, its text."""

    heading: str
    kind: str
    text: str


def blocks(page: Path) -> list[Block]:
    """The blocks of a page that name a language, in their order."""
    found, heading = [], ""
    form = r"^#+ ([^\n]*)$|^```(\w+)\n(.*?)^```$"
    for match in re.finditer(form, page.read_text(), re.MULTILINE | re.DOTALL):
        if match[1]:
            heading = match[1]
        else:
            found.append(Block(heading, match[2], match[3]))
    return found


def play(user: str, script: str, env: dict[str, str], timeout: float = 300) -> Outcome:
    """Run a script with bash, which ends at the first command that fails; `svc` is the one under test."""
    path = f"{PREFIX}/bin:{env['PATH']}"
    return command(user, "bash", "-euo", "pipefail", "-c", script, env=env | {"PATH": path}, timeout=timeout)
