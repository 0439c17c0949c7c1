"""The activity screen: sentences, filters, older rows and new ones, before a canned API."""

from __future__ import annotations

import pytest
from pages.activity.records import answers, audited, of_the_mock_up
from pages.activity.states import HOSTILE, STATES
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.records import page, workspace
from pages.visiting import NARROW, each_look, overflow, visit
from selenium.webdriver.common.by import By

SENTENCES = {
    99: ("Uploaded work/runs/7b/corpus-02.parquet, 12.6 GiB", "Done", "a browser, 10.20.4.17"),
    97: ("Began to pull the image of vllm", "Under way", "a browser, 10.20.4.17"),
    96: ("Tried to start vllm-serve", "No free GPU", "the host, 10.20.4.17"),
    95: ("Tried to build the image of my-torch", "Build failed", "a browser, 10.20.4.17"),
    94: ("vllm-serve was found stopped: killed by its memory limit", "Stopped", "svc itself"),
    92: ("Ran pytest in train-7b, exit 0", "Done", "token tok-ab12cd34, 10.20.4.17"),
    91: ("notebook was idle for 2 h", "Stops", "svc itself, 10.20.4.17"),
    90: ("Revoked the token old-laptop", "Done", "a browser, 10.20.4.17"),
    89: ("grace stopped your label-tool", "Done", "a browser"),
    88: ("root, on the host, set the password of ada", "Done", "svc admin"),
    87: ("Signed in", "Done", "a browser, 10.20.4.17"),
    86: ("Tried to sign in", "Wrong password", "a browser, 10.20.4.17"),
    85: ("Moved work/a to work/b", "Done", "a browser, 10.20.4.17"),
    84: ("Tried to delete lost", "Interrupted", "a browser, 10.20.4.17"),
    83: ("Listed files 1234 more times, counted together", "Counted", "a browser, 10.20.4.17"),
    82: ("future.deed thing", "Done", "a browser, 10.20.4.17"),
}


def rows(driver: Driver) -> dict[int, tuple[str, ...]]:
    """What, how it ended and through what, of each row that is shown."""
    script = (
        "return [...document.querySelectorAll('tbody tr[data-id]')].map(row => [Number(row.dataset.id),"
        " ...[...row.children].slice(1, 4).map(cell => cell.innerText)])"
    )
    return {number: tuple(texts) for number, *texts in driver.execute_script(script)}


def line(driver: Driver) -> str:
    """The command at the foot."""
    return str(driver.execute_script("return document.querySelector('[data-command]').innerText"))


@each_look
def test_in_sentences(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    """Begun and ended are one row; what others did is told as theirs."""
    STATES["rows"].prepare(canned)
    visit(browser, canned, "/activity", theme=theme, size=size)
    until(browser, lambda: rows(browser), "the rows")
    assert rows(browser) == SENTENCES
    says(browser, "16 rows", "[data-count]")
    assert line(browser) == "svc api GET '/api/audit?limit=200'"
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_filters(browser: Driver, canned: Canned) -> None:
    """By kind, workspace, text and day: in the line and in the address, which can be kept."""
    STATES["rows"].prepare(canned)
    canned.answers["GET /api/workspaces"] = page([workspace("notebook") | {"id": "ws-3"}])
    visit(browser, canned, "/activity")
    press(browser, "[data-kind=fs]")
    until(browser, lambda: set(rows(browser)) == {99, 85}, "files")
    assert line(browser) == "svc api GET '/api/audit?limit=200&action=fs'"
    assert browser.current_url.endswith("/activity?kind=fs")
    browser.refresh()
    until(browser, lambda: set(rows(browser)) == {99, 85}, "the same")
    press(browser, "[data-kind='']")
    browser.execute_script(
        "const s = document.querySelector('[data-key=workspace]'); s.value = 'ws-3';"
        "s.dispatchEvent(new Event('change'))"
    )
    until(browser, lambda: set(rows(browser)) == {91}, "one workspace")
    assert line(browser) == "svc api GET '/api/audit?limit=200&q=ws-3'"
    find(browser, "[data-search]").send_keys("it's nothing")
    says(browser, "Nothing like that", ".empty")
    assert line(browser) == "svc api GET '/api/audit?limit=200&q=it'\\''s%20nothing'"
    press(browser, ".empty button")
    until(browser, lambda: len(rows(browser)) == 16, "all")
    browser.execute_script(
        "const s = document.querySelector('[data-key=time]'); s.value = 'day';"
        "s.dispatchEvent(new Event('change'))"
    )
    says(browser, "Nothing like that", ".empty")
    assert "/api/audit?limit=200&since=20" in line(browser)
    assert browser.current_url.endswith("/activity?time=day")


def test_thousands_of_rows(browser: Driver, canned: Canned) -> None:
    """A page at a time, when the end is scrolled to."""
    items = [audited(number, "fs.list", "work") for number in range(3000, 0, -1)]
    canned.answers["GET /api/audit"] = answers(canned, items)
    visit(browser, canned, "/activity")
    says(browser, "of 3000 rows", "[data-count]")
    before = len(rows(browser))
    assert before < 1000
    items.insert(
        0, audited(3001, "auth.login", "ada")
    )  # pages move; nothing is shown twice, and none left out
    browser.execute_script("scrollTo(0, document.body.scrollHeight)")
    until(browser, lambda: len(rows(browser)) > before, "more")
    found = list(rows(browser))
    assert found == list(range(3000, 3000 - len(found), -1))


def test_what_is_new_is_said_and_comes_when_it_is_asked_for(browser: Driver, canned: Canned) -> None:
    items = of_the_mock_up()
    canned.answers["GET /api/audit"] = answers(canned, items)
    visit(browser, canned, "/activity")
    until(browser, lambda: len(rows(browser)) == 16 and canned.streams, "the rows")
    items[:0] = [audited(101, "workspace.start", "ws-2", target_name="train-7b")]
    canned.event("workspace.status_changed", subject={"type": "workspace", "id": "ws-2", "name": "train-7b"})
    says(browser, "1 row is new.", "[data-fresh]")
    assert 101 not in rows(browser)
    press(browser, "[data-fresh] button")
    until(browser, lambda: 101 in rows(browser), "the new row")
    assert not find(browser, "[data-fresh]").is_displayed()


@pytest.mark.parametrize(
    "name, text",
    [
        ("nothing-yet", "Nothing yet"),
        ("refused", "Your activity could not be read. The account is disabled."),
        ("unavailable", "by itself in 60 s"),
    ],
)
def test_other_states(browser: Driver, canned: Canned, name: str, text: str) -> None:
    STATES[name].prepare(canned)
    visit(browser, canned, STATES[name].path)
    says(browser, text, "#screen")


def test_hostile_text_is_text(browser: Driver, canned: Canned) -> None:
    STATES["hostile"].prepare(canned)
    visit(browser, canned, "/activity", size=NARROW)
    until(browser, lambda: len(rows(browser)) == 3, "the rows")
    says(browser, HOSTILE[:28], "tbody")
    assert not browser.find_elements(By.CSS_SELECTOR, "main img")
    assert overflow(browser) == 0
    assert not complaints(browser)
