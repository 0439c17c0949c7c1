"""How a test comes to a page: with a session or without, with empty storage, in one colour scheme."""

from __future__ import annotations

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
    driver.get(f"{server.url}/api/version")  # of the same origin, and without a script
    driver.execute_script(
        "localStorage.clear(); sessionStorage.clear();"
        "if (arguments[0]) localStorage.setItem('svc.session', 'canned');"
        "if (arguments[1]) localStorage.setItem('svc.theme', arguments[1]);",
        signed_in,
        theme,
    )
    complaints(driver)
    server.requests.clear()
    driver.get(f"{server.url}{path}")


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
