"""Signing in to the installed service, as a person who was never there."""

from __future__ import annotations

from e2e.installation import PASSWORD
from pages.chromium import Driver, complaints, find, until
from selenium.webdriver.common.keys import Keys
from stories.conftest import USER


def sign_in(
    driver: Driver,
    origin: str,
    path: str = "/workspaces",
    theme: str = "",
    who: tuple[str, str] = (USER, PASSWORD),
) -> None:
    """Ask for a page without a session, and sign in on the way, by keyboard alone."""
    name, password = who
    driver.get(f"{origin}/api/version")
    driver.execute_script(
        "localStorage.clear(); if (arguments[0]) localStorage.setItem('svc.theme', arguments[0])", theme
    )
    driver.delete_all_cookies()
    complaints(driver)
    driver.get(f"{origin}{path}")
    find(driver, "[name=username]").send_keys(name + Keys.TAB)
    driver.switch_to.active_element.send_keys(password.strip() + Keys.ENTER)
    until(driver, lambda: driver.current_url == f"{origin}{path}", f"the page {path}")
