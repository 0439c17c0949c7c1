"""Static files: how long they are kept, and what a screen weighs."""

from __future__ import annotations

from typing import Any

from unit.web.pages.addresses import static

from svc.web.pages import assets, shells

# Transferred, compressed: what the guide allows for the workspaces screen, data and headers aside.
SHELL_MAX, STYLES_MAX, SCRIPT_MAX, THEME_MAX, ALL_MAX = 5_000, 12_000, 25_000, 400, 45_000


def test_static_files_are_kept_for_good_and_pages_are_asked_for(listeners: Any) -> None:
    assert "immutable" in listeners.ask(None, "GET", static("app.js")).headers["Cache-Control"]
    assert listeners.ask(None, "GET", "/workspaces").headers["Cache-Control"] == "no-cache"
    assert listeners.ask(None, "GET", "/api/version").headers["Cache-Control"] == "no-store"


def test_the_workspaces_screen_keeps_its_budget(listeners: Any) -> None:
    sizes = {name: len(content.compressed) for name, content in assets.load().files.items()}
    shell = len(shells.render()["workspaces"].compressed)
    assert shell <= SHELL_MAX
    assert sizes["app.css"] <= STYLES_MAX
    assert sizes["theme.js"] <= THEME_MAX
    for name in sizes:
        assert name in ("app.js", "app.css") or sizes["app.js"] + sizes[name] <= SCRIPT_MAX, name
    assert (
        shell + sum(sizes[name] for name in ("app.css", "theme.js", "app.js", "workspaces-screen.js"))
        <= ALL_MAX
    )
