"""The static files of the pages, in memory, by the names that browsers ask for."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from svc.web.pages import content, modules
from svc.web.pages.content import Content

FOLDER = Path(__file__).with_name("static")
STYLES = ("tokens.css", "app.css")  # joined, in this order, as the second name
THEME = "theme.js"  # no module: it blocks the first paint, and so is as small as can be
ICON = "icon.svg"

_SCRIPT = "text/javascript; charset=utf-8"


class Assets(NamedTuple):
    """All static files; `digest` is that of all, and a part of their paths."""

    files: dict[str, Content]
    digest: str


def sources() -> dict[str, str]:
    """The modules, by their paths below FOLDER."""
    return {path.relative_to(FOLDER).as_posix(): path.read_text("utf-8") for path in FOLDER.glob("*/*.js")}


@cache
def load() -> Assets:
    """Read, join and compress the static files, once in the life of the process."""
    styles = "\n".join((FOLDER / name).read_text("utf-8") for name in STYLES)
    files = {name: content.of(text.encode(), _SCRIPT) for name, text in modules.join(sources()).items()}
    files[THEME] = content.of((FOLDER / THEME).read_bytes(), _SCRIPT)
    files[STYLES[-1]] = content.of(styles.encode(), "text/css; charset=utf-8")
    files[ICON] = content.of((FOLDER / ICON).read_bytes(), "image/svg+xml")
    tags = " ".join(f"{name}={files[name].tag}" for name in sorted(files))
    return Assets(files, hashlib.sha256(tags.encode()).hexdigest()[:16])
