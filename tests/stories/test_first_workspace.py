"""The story of a first workspace: signing in, choosing, starting, a command's output; no command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from e2e.installation import Call
from e2e.surroundings import must
from pages.chromium import Driver, complaints, find, press, says, until
from selenium.webdriver.common.keys import Keys
from stories.signing_in import sign_in

NAME = "own-first"


@pytest.fixture
def nothing_left(svc: Call) -> Iterator[None]:
    """The user has no workspace of the name, and no image of the template: both come by the page."""
    svc("image", "remove", "base", "--yes")
    yield
    svc("ws", "delete", NAME, "--yes")


def from_the_form_to_the_output(driver: Driver, origin: str, name: str, theme: str) -> None:
    """Set up, start, and open the shell by the page of a new workspace; what is typed is run there."""
    driver.get(f"{origin}/new")
    assert driver.execute_script("return document.documentElement.dataset.theme") == theme
    field = find(driver, "[name=name]")
    until(driver, lambda: find(driver, "[data-command]").text, "the line")
    field.send_keys(Keys.CONTROL + "a")
    field.send_keys(name)
    until(driver, lambda: name in find(driver, "[data-command]").text, "the line that follows the form")
    press(driver, "[data-key=go]:not([aria-disabled])")
    shell = f"{origin}/workspaces/{name}/terminal"
    until(driver, lambda: driver.current_url.split("?")[0] == shell, "the shell", 120)
    screen = ".screen:not([hidden]) .xterm-rows"
    until(driver, lambda: find(driver, screen).text.strip(), "a prompt")
    typing = ".screen:not([hidden]) .xterm-helper-textarea"
    until(
        driver,
        lambda: driver.execute_script("return document.activeElement.matches(arguments[0])", typing),
        "the focus",
    )
    driver.switch_to.active_element.send_keys("echo $((6 * 7)) herons" + Keys.ENTER)
    says(driver, "42 herons", screen)
    assert not complaints(driver)
    driver.get("about:blank")


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_from_the_sign_in_to_the_output_of_a_command(
    browser: Driver, origin: str, svc: Call, theme: str
) -> None:
    """Before a service whose user has nothing yet, not even the image."""
    browser.set_window_size(1440, 900)
    sign_in(browser, origin, "/workspaces", theme)
    from_the_form_to_the_output(browser, origin, NAME, theme)
    assert must(svc("ws", "get", NAME, "--json")).json()["status"] == "running"
