"""Headless Chromium, driven over WebDriver, and what a test asks it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

EVERY_CERTIFICATE = "--ignore-certificate-errors"
BROWSER = "/usr/bin/chromium"
# Blink and the network alone, without the browser around it: a third less processor time. Not its wrapper,
# which chromedriver could not end.
SHELL = "/usr/lib/chromium/chromium-headless-shell"
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # the tests run as root
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    EVERY_CERTIFICATE,  # the listener's certificate is its own
    "--force-prefers-reduced-motion",
)
WAIT_S = 30.0
# Refused requests are what some tests are about; a new tab of its own says the next on a busy machine; the
# last is said of the page before, which a test leaves with work in it.
NO_COMPLAINTS = ("Failed to load resource", "Slow network is detected", "'beforeunload' confirmation panel")

Driver = webdriver.Chrome


@contextmanager
def chromium(
    width: int = 1440, height: int = 900, trusted: str = "", program: str = BROWSER
) -> Iterator[Driver]:
    """A browser with a profile of its own, which chromedriver makes and removes, and whose console is kept.

    It takes every certificate, or this one's key as good: only then does it keep what it was sent.
    """
    options = Options()
    options.binary_location = program
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    flags = [flag for flag in FLAGS if not trusted or flag != EVERY_CERTIFICATE]
    flags += [f"{EVERY_CERTIFICATE}-spki-list={trusted}"] if trusted else []
    for flag in (*flags, f"--window-size={width},{height}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    try:
        driver.set_script_timeout(4 * WAIT_S)  # axe-core, on a busy machine before a long list
        yield driver
    finally:
        driver.quit()


def until(driver: Driver, condition: Callable[[], Any], what: str, seconds: float = WAIT_S) -> Any:
    """Wait until a condition holds, and return its value; what was replaced meanwhile is asked again."""
    end = time.monotonic() + seconds
    while True:
        try:
            value = condition()
        except (WebDriverException, IndexError):  # replaced while it was asked, or not there yet
            value = None
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds:.0f} s for {what}; the page says:\n{text_of(driver)}")
        time.sleep(0.05)


def find(driver: Driver, selector: str) -> WebElement:
    """The element, once it is there."""
    found: WebElement = until(
        driver, lambda: driver.find_elements(By.CSS_SELECTOR, selector)[0], f"an element {selector}"
    )
    return found


def says(driver: Driver, text: str, selector: str = "body") -> None:
    """Wait until a place of the page has this text."""
    until(driver, lambda: text in find(driver, selector).text, f"{text!r} in {selector}")


def press(driver: Driver, selector: str) -> None:
    """Click on an element, once it is there and takes clicks."""

    def click() -> bool:
        element = find(driver, selector)
        # As far as the page itself scrolls for the focus: clear of the line at the foot, unlike the driver.
        driver.execute_script("arguments[0].scrollIntoView({block: 'nearest'})", element)
        element.click()
        return True

    until(driver, click, f"{selector} to be clicked")


def text_of(driver: Driver) -> str:
    """All text of the page."""
    try:
        return driver.find_element(By.TAG_NAME, "body").text
    except WebDriverException as error:
        return f"(no page: {error.msg})"


def complaints(driver: Driver) -> list[str]:
    """What the console has since the last call: violations of the policy, errors; not refused requests."""
    lines = [str(entry["message"]) for entry in driver.get_log("browser")]
    return [line for line in lines if not any(word in line for word in NO_COMPLAINTS)]
