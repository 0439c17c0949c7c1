"""From the sign-in to a running workspace without a pointer: what has the focus is asked at every step."""

from __future__ import annotations

from typing import Any

from pages import records
from pages.canned import Canned
from pages.chromium import Driver, find, says, until
from pages.visiting import focused, visit
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

NAME = "vllm-serve"
MOST_TABS = 80


def types(driver: Driver, *keys: str) -> None:
    """Press keys, wherever the focus is."""
    ActionChains(driver).send_keys(*keys).perform()


def tab_to(driver: Driver, label: str) -> None:
    """Tab until the control of this name has the focus."""
    for _ in range(MOST_TABS):
        if focused(driver).strip() == label:
            return
        types(driver, Keys.TAB)
    raise AssertionError(f"{MOST_TABS} times Tab, and not at {label!r} but at {focused(driver)!r}")


def test_from_the_sign_in_to_a_running_workspace(browser: Driver, canned: Canned) -> None:
    def start() -> tuple[int, Any, dict[str, str]]:
        items = [item for item in records.of_the_mock_up() if item["name"] != NAME]
        running = records.workspace(NAME, "running", resources=records.size(16, 96, 1))
        canned.answers["GET /api/workspaces"] = records.page([*items, running])
        return 200, running, {}

    canned.answers[f"POST /api/workspaces/ws-{NAME}/start"] = start
    visit(browser, canned, "/sign-in", signed_in=False)
    until(browser, lambda: focused(browser) == "username", "the first field")
    types(browser, "ada", Keys.TAB, "three kites above the weir", Keys.ENTER)
    says(browser, "tensorboard", "tbody")

    types(browser, Keys.TAB)
    assert focused(browser) == "Skip to the content"
    types(browser, Keys.ENTER)
    until(browser, lambda: browser.switch_to.active_element.get_attribute("id") == "main", "the content")
    types(browser, "/", "vllm")
    until(browser, lambda: find(browser, "tbody").text.count("revision") == 1, "the search")
    tab_to(browser, f"Start {NAME}")
    assert find(browser, "[data-command]").text == f"svc ws start {NAME}"
    types(browser, Keys.ENTER)
    row = f'tr[data-id="ws-{NAME}"]'
    says(browser, "Running", row)
    until(
        browser,
        lambda: browser.execute_script(
            "return document.activeElement.closest('tr')?.dataset.id === arguments[0]", f"ws-{NAME}"
        ),
        "the focus in its row",
    )

    tab_to(browser, f"Stop {NAME}")  # and back again, but for the question
    types(browser, Keys.ENTER)
    says(browser, f"Stop {NAME}?", "dialog[open]")
    assert focused(browser) == "Let it run"
    types(browser, Keys.ENTER)
    until(browser, lambda: not browser.find_elements("css selector", "dialog[open]"), "no dialog")
    assert focused(browser) == f"Stop {NAME}"
    assert not canned.sent(f"POST /api/workspaces/ws-{NAME}/stop")
