"""The static files of the pages, in memory, by the names that browsers ask for."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from svc.web import pieces
from svc.web.pages import content, modules
from svc.web.pages.content import Content

FOLDER = Path(__file__).with_name("static")
STYLES = ("tokens.css", "app.css")  # joined, in this order, as the second name
THEME = "theme.js"  # no module: it blocks the first paint, and so is as small as can be
ICON = "icon.svg"

# Comments and indentation of the style sheets, a tenth of what would be sent; no string of theirs has any.
_LEFT_OUT = re.compile(r"/\*.*?\*/\n?|^[ \t]+|^\n", re.DOTALL | re.MULTILINE)

_SCRIPT = "text/javascript; charset=utf-8"
_STYLE = "text/css; charset=utf-8"


class Assets(NamedTuple):
    """All static files; `digest` is that of all, and a part of their paths."""

    files: dict[str, Content]
    digest: str


def sources() -> dict[str, str]:
    """The modules, by their paths below FOLDER."""
    return {path.relative_to(FOLDER).as_posix(): path.read_text("utf-8") for path in FOLDER.glob("*/*.js")}


def pieces_of(page: str) -> list[str]:
    """The names of the pieces that a page loads besides its own files; none unless all are there."""
    if page not in pieces.PAGES or pieces.find_missing(page):
        return []
    return [PurePosixPath(name).name for name in pieces.PAGES[page]]


def _pieces() -> dict[str, Content]:
    return {
        PurePosixPath(path).name: content.of(
            (pieces.FOLDER / path).read_bytes(), _STYLE if path.endswith(".css") else _SCRIPT
        )
        for page, paths in pieces.PAGES.items()
        if pieces_of(page)
        for path in paths
    }


@cache
def load() -> Assets:
    """Read, join and compress the static files, once in the life of the process."""
    styles = _LEFT_OUT.sub("", "\n".join((FOLDER / name).read_text("utf-8") for name in STYLES))
    files = {name: content.of(text.encode(), _SCRIPT) for name, text in modules.join(sources()).items()}
    files[THEME] = content.of((FOLDER / THEME).read_bytes(), _SCRIPT)
    files[STYLES[-1]] = content.of(styles.encode(), _STYLE)
    files[ICON] = content.of((FOLDER / ICON).read_bytes(), "image/svg+xml")
    files |= _pieces()
    tags = " ".join(f"{name}={files[name].tag}" for name in sorted(files))
    return Assets(files, hashlib.sha256(tags.encode()).hexdigest()[:16])
