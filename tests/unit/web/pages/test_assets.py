"""Static files: how long they are kept, and what a screen weighs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from unit.web.pages.addresses import static

from svc.web import pieces
from svc.web.pages import assets, modules, shells

# Transferred, compressed: what the guide allows for the workspaces screen, data and headers aside.
SHELL_MAX, STYLES_MAX, SCRIPT_MAX, THEME_MAX, ALL_MAX = 5_000, 11_500, 25_000, 400, 45_000

NAMES = ["xterm.mjs", "xterm.css", "addon-fit.mjs", "uPlot.iife.min.js", "uPlot.min.css"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the pieces of others lie, in an installation that has none yet."""
    monkeypatch.setattr(pieces, "FOLDER", tmp_path)
    for cached in (assets.load, shells.render):
        cached.cache_clear()
    yield tmp_path
    for cached in (assets.load, shells.render):
        cached.cache_clear()


def fill(folder: Path, page: str) -> None:
    """Put something in the place of each piece of a page."""
    for name in pieces.PAGES[page]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"/* {name} */")


def test_without_the_pieces_of_others_a_page_says_so(folder: Path) -> None:
    assert not set(NAMES) & assets.load().files.keys()
    for page in pieces.PAGES:
        text = shells.render()[page].body.decode()
        missing = pieces.find_missing(page)
        assert missing and missing.message in text and missing.hint in text
    assert "data-missing" not in shells.render()["workspaces"].body.decode()


def test_a_piece_is_served_when_its_page_has_all(folder: Path) -> None:
    """With the digest of all files in its path, as every static file; and loaded by its page alone."""
    fill(folder, "terminal")
    (folder / "uplot/dist").mkdir(parents=True)
    (folder / pieces.PAGES["monitor"][0]).write_text("half of it")
    found = assets.load()
    assert [name for name in NAMES if name in found.files] == NAMES[:3]
    assert found.files["xterm.css"].media_type.startswith("text/css")
    assert found.files["xterm.mjs"].media_type.startswith("text/javascript")
    before = found.digest
    text = shells.render()["terminal"].body.decode()
    assert f'<link rel="modulepreload" href="/static/{before}/xterm.mjs">' in text
    assert f'<link rel="stylesheet" href="/static/{before}/xterm.css">' in text
    assert "data-missing" not in text
    assert "xterm" not in shells.render()["workspaces"].body.decode()
    assert "uPlot" not in shells.render()["monitor"].body.decode().split("data-missing")[0]
    fill(folder, "monitor")
    assets.load.cache_clear()
    shells.render.cache_clear()
    assert assets.load().digest != before
    script = f'<script src="/static/{assets.load().digest}/uPlot.iife.min.js" defer>'
    assert script in shells.render()["monitor"].body.decode()


def test_static_files_are_kept_for_good_and_pages_are_asked_for(listeners: Any) -> None:
    assert "immutable" in listeners.ask(None, "GET", static("app.js")).headers["Cache-Control"]
    assert listeners.ask(None, "GET", "/workspaces").headers["Cache-Control"] == "no-cache"
    assert listeners.ask(None, "GET", "/api/version").headers["Cache-Control"] == "no-store"


def test_the_style_sheet_is_sent_without_comments() -> None:
    """And with all rules: as many braces as the sources have outside them."""
    sent = assets.load().files["app.css"].body.decode()
    sources = "".join((assets.FOLDER / name).read_text() for name in assets.STYLES)
    outside = [part.split("*/")[-1] for part in sources.split("/*")]
    assert "/*" not in sent and "*/" not in sent
    assert sent.count("{") == sent.count("}") == "".join(outside).count("{")
    assert not [line for line in sent.splitlines() if not line or line[0] == " "]


def test_the_workspaces_screen_keeps_its_budget(listeners: Any) -> None:
    sizes = {name: len(content.compressed) for name, content in assets.load().files.items()}
    shell = len(shells.render()["workspaces"].compressed)
    assert shell <= SHELL_MAX
    assert sizes["app.css"] <= STYLES_MAX
    assert sizes["theme.js"] <= THEME_MAX
    for name in modules.parts(assets.sources()):  # what xterm.js and uPlot weigh is theirs
        assert name == "app.js" or sizes["app.js"] + sizes[name] <= SCRIPT_MAX, name
    assert (
        shell + sum(sizes[name] for name in ("app.css", "theme.js", "app.js", "workspaces-screen.js"))
        <= ALL_MAX
    )
