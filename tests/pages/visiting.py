"""How a test comes to a page: with a session or without, with empty storage, in one colour scheme."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pages.canned import Canned
from pages.chromium import Driver, complaints

WIDE, NARROW = (1440, 900), (500, 900)
OTHER_PAIRS = ((WIDE, "dark"), (NARROW, "light"))


def each_look(test: Any) -> Any:
    """A test of each `theme` and `size` that a screen is drawn for; at a change each of them once."""
    later = pytest.mark.depth("merge", "each size and each scheme is seen at a change, but not every pair")
    pairs = [(WIDE, "light"), (NARROW, "dark"), *(pytest.param(*pair, marks=later) for pair in OTHER_PAIRS)]
    return pytest.mark.parametrize(("size", "theme"), pairs)(test)


def visit(
    driver: Driver, server: Canned, path: str, *, signed_in: bool = True, theme: str = "", size: Any = WIDE
) -> None:
    """Open a page of the canned service, as in a browser that was never there."""
    driver.set_window_size(*size)
    come(driver, server, path, signed_in=signed_in, theme=theme)


# Ends what a page does by itself: what it waits for, its timers and those that follow.
REST = """
const done = arguments[0];
const rest = () => {
  window.stop();
  for (let id = setTimeout(() => {}); id > 0; id--) clearTimeout(id);
};
const { port1, port2 } = new MessageChannel();
port1.onmessage = () => { rest(); done(); };
rest();
port2.postMessage(null);
"""


def come(driver: Driver, server: Canned, path: str, *, signed_in: bool, theme: str = "") -> None:
    """Load a page with empty storage, into a window of the present size.

    The page before it asks nothing more, and the new one empties the storage before its own scripts: a page
    in between would cost as much as the page itself.
    """
    driver.execute_async_script(REST)
    kept = {"svc.session": "canned" if signed_in else "", "svc.theme": theme}
    script = "if (window === top) { localStorage.clear(); sessionStorage.clear();" + "".join(
        f"localStorage.setItem({json.dumps(key)}, {json.dumps(value)});"
        for key, value in kept.items()
        if value
    )
    added = driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script + "}"})
    complaints(driver)
    server.requests.clear()
    try:
        driver.get(f"{server.url}{path}")
    finally:
        driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def line(driver: Driver) -> str:
    """The command at the foot."""
    return str(driver.execute_script("return document.querySelector('[data-command]').textContent"))


def focused(driver: Driver) -> str:
    """What has the focus: its label, or its text."""
    return str(
        driver.execute_script(
            "const e = document.activeElement; return e.getAttribute('aria-label') ?? e.name ?? e.textContent"
        )
        or driver.execute_script("return document.activeElement.textContent")
    )


def overflow(driver: Driver) -> int:
    """By how many pixels the page is wider than its window."""
    return int(
        driver.execute_script(
            "const r = document.documentElement; return Math.max(0, r.scrollWidth - r.clientWidth)"
        )
    )
