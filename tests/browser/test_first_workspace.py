"""The story of a first workspace: signing in, choosing, starting, a command's output; no command line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser.chromium import Driver, complaints, find, press, says, until
from browser.signing_in import sign_in
from e2e.installation import Call
from e2e.surroundings import must
from selenium.webdriver.common.keys import Keys

NAME = "own-first"


@pytest.fixture
def nothing_left(svc: Call) -> Iterator[None]:
    """The user has no workspace of the name, and no image of the template: both come by the page."""
    svc("image", "remove", "base", "--yes")
    yield
    svc("ws", "delete", NAME, "--yes")


@pytest.mark.usefixtures("nothing_left")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_from_the_sign_in_to_the_output_of_a_command(
    browser: Driver, origin: str, svc: Call, theme: str
) -> None:
    """The page sets up, starts, and opens the shell; what is typed there is run in the workspace."""
    browser.set_window_size(1440, 900)
    sign_in(browser, origin, "/new", theme)
    assert browser.execute_script("return document.documentElement.dataset.theme") == theme
    says(browser, "base", "form")
    field = find(browser, "[name=name]")
    field.clear()
    field.send_keys(NAME)
    until(browser, lambda: NAME in find(browser, "[data-line]").text, "the line that follows the form")
    press(browser, "[data-key=go]:not([aria-disabled])")
    shell = f"{origin}/workspaces/{NAME}/terminal"
    until(browser, lambda: browser.current_url.split("?")[0] == shell, "the shell", 120)
    screen = ".screen:not([hidden]) .xterm-rows"
    until(browser, lambda: find(browser, screen).text.strip(), "a prompt")
    typing = ".screen:not([hidden]) .xterm-helper-textarea"
    until(
        browser,
        lambda: browser.execute_script("return document.activeElement.matches(arguments[0])", typing),
        "the focus",
    )
    browser.switch_to.active_element.send_keys("echo $((6 * 7)) herons" + Keys.ENTER)
    says(browser, "42 herons", screen)
    assert must(svc("ws", "get", NAME, "--json")).json()["status"] == "running"
    assert not complaints(browser)
    browser.get("about:blank")
