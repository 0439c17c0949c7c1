"""The pieces of the web pages that others have written: which page needs which, and whether it is there.

They are fetched by npm when the Debian package is built (packaging/frontend) and lie beside this module.
An installation from the sources has none unless somebody fetches them: everything else works without,
and a page that lacks a piece says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).with_name("frontend")
PAGES = {
    "terminal": (
        "@xterm/xterm/lib/xterm.mjs",
        "@xterm/xterm/css/xterm.css",
        "@xterm/addon-fit/lib/addon-fit.mjs",
    ),
    "monitor": ("uplot/dist/uPlot.iife.min.js", "uplot/dist/uPlot.min.css"),
}


class Missing(NamedTuple):
    """What a page lacks: files below FOLDER, and what its reader is told."""

    files: tuple[str, ...]
    message: str
    hint: str


def find_missing(page: str) -> Missing | None:
    """What the page `terminal` or `monitor` lacks in this installation; None when everything is there."""
    files = tuple(name for name in PAGES[page] if not (FOLDER / name).is_file())
    if not files:
        return None
    return Missing(
        files,
        f"The {page} page needs {', '.join(files)}, which this installation of svc does not have.",
        f"Install the Debian package; or, in the sources: sudo packaging/frontend/fetch {FOLDER}\n"
        "and restart the service, which reads them when it starts.",
    )
