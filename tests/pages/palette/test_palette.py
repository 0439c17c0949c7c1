"""Go to or run: what it finds, what it says, what it does, and that no key is taken from others."""

from __future__ import annotations

import pytest
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.palette import records
from pages.records import page, workspace
from pages.visiting import NARROW, each_look, focused, overflow, visit
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

HOSTILE = "<img src=x onerror=alert(1)>" + "'\u202egnp.exe" + "x" * 150


def keys(driver: Driver, *words: str, hold: str = "") -> None:
    """Type to whatever has the focus."""
    chain = ActionChains(driver)
    if hold:
        chain.key_down(hold)
    for word in words:
        chain.send_keys(word)
    if hold:
        chain.key_up(hold)
    chain.perform()


def opened(driver: Driver, canned: Canned, *, path: str = "/workspaces", **how: object) -> None:
    """The palette over a page, filled."""
    records.add_to(canned)
    visit(driver, canned, path, **how)  # type: ignore[arg-type]
    says(driver, "train-7b", "tbody")
    keys(driver, "k", hold=Keys.CONTROL)
    says(driver, "torch", ".palette [aria-label=Templates]")


def titles(driver: Driver) -> list[str]:
    """What is found, from top to bottom."""
    script = (
        "return [...document.querySelectorAll('.palette [role=option] > :first-child')].map(e => e.innerText)"
    )
    return list(driver.execute_script(script))


def foot(driver: Driver) -> str:
    """The command of the choice."""
    return str(
        driver.execute_script("return document.querySelector('.palette [data-palette-cmd]').textContent")
    )


def type_in(driver: Driver, text: str) -> None:
    """Into the field."""
    field = find(driver, ".palette input")
    field.clear()
    field.send_keys(text)


@each_look
def test_what_it_finds(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    opened(browser, canned, theme=theme, size=size)
    says(browser, "running 3 h 12 min, 2 GPUs", ".palette [aria-label=Workspaces]")
    says(browser, "stopped, killed by its memory limit", ".palette [aria-label=Workspaces]")
    says(browser, "yours, revision 2, cannot be used yet", ".palette [aria-label=Templates]")
    says(browser, "API tokens", ".palette [aria-label=Screens]")
    field = find(browser, ".palette input[role=combobox]")
    assert focused(browser) == "Workspaces, templates, screens and actions"
    chosen = find(browser, ".palette [aria-selected=true]")
    assert field.get_attribute("aria-activedescendant") == chosen.get_attribute("id")
    assert foot(browser) == "$ svc ws get label-tool"
    assert "New workspace" in titles(browser)
    assert browser.execute_script(
        "return document.querySelector('.palette [role=status]').textContent"
    ).endswith(" found")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_its_file_is_loaded_when_it_is_wanted(browser: Driver, canned: Canned) -> None:
    records.add_to(canned)
    visit(browser, canned, "/workspaces")
    until(browser, lambda: canned.streams, "the stream")
    script = (
        "return performance.getEntriesByType('resource').map(e => e.name).filter(e => e.includes('palette'))"
    )
    assert browser.execute_script(script) == []
    assert not canned.sent("GET /api/templates")
    press(browser, ".side [data-palette]")
    says(browser, "jupyter", ".palette [aria-label=Templates]")
    assert len(browser.execute_script(script)) == 1
    keys(browser, Keys.ESCAPE)
    press(browser, ".side [data-palette]")
    says(browser, "jupyter", ".palette [aria-label=Templates]")
    assert len(canned.sent("GET /api/templates")) == 1  # the stream says what changes


def test_from_the_top_bar(browser: Driver, canned: Canned) -> None:
    records.add_to(canned)
    visit(browser, canned, "/workspaces", size=NARROW)
    press(browser, ".top [data-palette]")
    says(browser, "jupyter", ".palette [aria-label=Templates]")
    keys(browser, Keys.ESCAPE)
    assert focused(browser) == "Go to or run (Ctrl K)"  # where it was


def test_by_arrows_and_words(browser: Driver, canned: Canned) -> None:
    opened(browser, canned)
    keys(browser, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP)
    assert foot(browser) == "$ svc ws get notebook"
    keys(browser, Keys.ARROW_UP, Keys.ARROW_UP)  # around
    assert foot(browser) == "$ svc api GET /api/auth/sessions"
    type_in(browser, "train")
    until(browser, lambda: foot(browser) == "$ svc ws get train-7b", "the first that is found")
    assert titles(browser) == [
        "train-7b", "Open a terminal in train-7b", "Stop train-7b", "Restart train-7b", "Logs of train-7b",
        "Settings of train-7b",
    ]  # fmt: skip
    type_in(browser, "new torch")
    until(browser, lambda: titles(browser) == ["New workspace from torch"], "the template's")
    assert foot(browser) == "$ svc ws setup --template torch --name NAME"
    type_in(browser, "no such thing")
    says(browser, "Nothing here is called no such thing.", ".palette")
    assert not titles(browser)
    assert foot(browser) == ""


@pytest.mark.parametrize(
    ("words", "path"),
    [
        ("paper-figures", "/workspaces/paper-figures"),
        ("terminal notebook", "/workspaces/notebook/terminal"),
        ("my-torch", "/templates/my-torch"),
        ("new jupyter", "/new?template=jupyter"),
        ("activity", "/activity"),
        ("tokens", "/settings/tokens"),
        ("docker.io jupyter", "/images"),
    ],
)
def test_enter_goes_there(browser: Driver, canned: Canned, words: str, path: str) -> None:
    opened(browser, canned)
    type_in(browser, words + Keys.ENTER)
    until(browser, lambda: browser.current_url == canned.url + path, path)


def test_it_starts_and_stops(browser: Driver, canned: Canned) -> None:
    """What cannot be undone is asked for first; what was done is said."""
    opened(browser, canned)
    canned.answers["POST /api/workspaces/ws-paper-figures/start"] = workspace("paper-figures", "starting")
    type_in(browser, "start paper" + Keys.ENTER)
    until(browser, lambda: canned.sent("POST /api/workspaces/ws-paper-figures/start"), "the start")
    says(browser, "paper-figures: Started", ".toasts")
    canned.answers["POST /api/workspaces/ws-train-7b/stop"] = workspace("train-7b")
    keys(browser, "k", hold=Keys.CONTROL)
    type_in(browser, "stop train")
    until(browser, lambda: foot(browser) == "$ svc ws stop train-7b", "its command")
    keys(browser, Keys.ENTER)
    says(browser, "Stop train-7b?", "dialog[open]")
    assert focused(browser) == "Let it run"
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: canned.sent("POST /api/workspaces/ws-train-7b/stop"), "the stop")


def test_a_refusal_is_a_next_step(browser: Driver, canned: Canned) -> None:
    opened(browser, canned)
    action = {
        "label": "Pull the image",
        "method": "POST",
        "path": "/api/templates/torch/image/pull",
        "body": {},
    }
    canned.refuse(
        "POST /api/workspaces/ws-paper-figures/start", 409, "image_missing", "its image is not there",
        hint="svc image pull torch --wait", action=action,
    )  # fmt: skip
    canned.answers["POST /api/templates/torch/image/pull"] = (202, {"id": "op-1"}, {})
    type_in(browser, "start paper" + Keys.ENTER)
    says(browser, "paper-figures was not started. Its image is not there.", "dialog[open]")
    says(browser, "svc image pull torch --wait", "dialog[open] .cmd")
    press(browser, "dialog[open] [data-key=act]")
    says(browser, "Pull the image: begun", ".toasts")
    assert not browser.find_elements(By.CSS_SELECTOR, "dialog[open]")


def test_it_switches_colours(browser: Driver, canned: Canned) -> None:
    opened(browser, canned)
    type_in(browser, "dark")
    until(browser, lambda: foot(browser) == "in this browser only", "its place")
    keys(browser, Keys.ENTER)
    until(browser, lambda: find(browser, "html").get_attribute("data-theme") == "dark", "dark colours")
    assert browser.execute_script("return localStorage.getItem('svc.theme')") == "dark"


def test_events_refresh_it_and_the_choice_stays(browser: Driver, canned: Canned) -> None:
    opened(browser, canned)
    until(browser, lambda: canned.streams, "the stream")
    keys(browser, Keys.ARROW_UP, Keys.ARROW_DOWN)
    assert foot(browser) == "$ svc ws get label-tool"
    canned.answers["GET /api/workspaces"] = page([workspace("aaa"), workspace("label-tool")])
    canned.event("workspace.created", subject={"type": "workspace", "id": "ws-aaa", "name": "aaa"})
    until(browser, lambda: titles(browser)[0] == "aaa", "the new one")
    assert foot(browser) == "$ svc ws get label-tool"


def test_what_could_not_be_read(browser: Driver, canned: Canned) -> None:
    """It is said, and the rest is there; a root without workspaces has screens."""
    records.add_to(canned)
    canned.refuse("GET /api/templates", 503, "busy", "the database is busy", retryable=True)
    canned.refuse("GET /api/images", 403, "root_not_allowed", "root has no images")
    visit(browser, canned, "/workspaces")
    press(browser, ".side [data-palette]")
    says(browser, "Not all could be read: the database is busy", ".palette")
    assert "train-7b" in titles(browser)


def test_hostile_names(browser: Driver, canned: Canned) -> None:
    records.add_to(canned)
    canned.answers["GET /api/workspaces"] = page([workspace(HOSTILE, "running")])
    canned.answers["GET /api/templates"] = page([records.template(HOSTILE)])
    visit(browser, canned, "/workspaces", size=NARROW)
    press(browser, ".top [data-palette]")
    says(browser, HOSTILE[:20], ".palette [aria-label=Templates]")
    assert foot(browser).startswith("$ svc ws get $'<img")  # as bash writes what is not seen
    assert "\\x27" in foot(browser)
    assert overflow(browser) == 0
    assert not browser.find_elements(By.CSS_SELECTOR, ".palette img")
    assert not complaints(browser)


def test_two_templates_of_one_name_are_told_apart(browser: Driver, canned: Canned) -> None:
    opened(browser, canned)
    canned.answers["GET /api/templates"] = page(
        [records.template("torch", "global"), records.template("torch")]
    )
    until(browser, lambda: canned.streams, "the stream")
    canned.event("template.created", subject={"type": "template", "id": "x", "name": "torch"})
    type_in(browser, "template torch yours")
    until(browser, lambda: foot(browser) == "$ svc template get tpl-torch-private", "its id")


def test_while_the_service_is_away(browser: Driver, canned: Canned) -> None:
    """Places can be gone to; actions say why they wait."""
    opened(browser, canned)
    until(browser, lambda: canned.streams, "the stream")
    for request in ("GET /api/health", "GET /api/events"):
        canned.refuse(request, 503, "unavailable", "stopping", retryable=True)
    canned.event("restarting")
    canned.streams[0].end()
    says(browser, "The service is restarting", ".banner")
    type_in(browser, "stop train")
    says(browser, "not now: the service does not answer", ".palette [role=option][aria-disabled=true]")
    keys(browser, Keys.ENTER)
    assert find(browser, ".palette").is_displayed()
    assert not canned.sent("POST /api/workspaces/ws-train-7b/stop")


def test_when_its_file_cannot_be_loaded(browser: Driver, canned: Canned) -> None:
    """It is said; and once the service answers, the same key opens it."""
    records.add_to(canned)
    visit(browser, canned, "/workspaces")
    until(browser, lambda: canned.streams, "the stream")
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*palette-dialog.js*"]})
    try:
        press(browser, ".side [data-palette]")
        says(browser, "could not be loaded", ".toasts")
    finally:
        browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
    press(browser, ".side [data-palette]")
    says(browser, "jupyter", ".palette [aria-label=Templates]")


# ---- keys ----


@pytest.mark.parametrize(
    ("typed", "path"),
    [("c", "/new"), ("gw", "/workspaces"), ("gt", "/templates"), ("gi", "/images"), ("gf", "/files"),
     ("ga", "/activity"), ("gs", "/settings")],
)  # fmt: skip
def test_single_keys_go_places(browser: Driver, canned: Canned, typed: str, path: str) -> None:
    visit(browser, canned, "/activity" if path == "/workspaces" else "/workspaces")
    until(browser, lambda: canned.streams, "the stream")
    keys(browser, typed)
    until(browser, lambda: browser.current_url == canned.url + path, path)


def test_a_letter_long_after_g_is_a_key_of_its_own(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/workspaces")
    until(browser, lambda: canned.streams, "the stream")
    script = """
        const press = (key, at) => {
          const event = new KeyboardEvent('keydown', { key, bubbles: true });
          Object.defineProperty(event, 'timeStamp', { value: at });
          document.body.dispatchEvent(event);
        };
        window.same = true;
        press('g', 10_000); press('f', 11_600); press('g', 20_000); press('x', 20_100); press('f', 20_200);
    """
    browser.execute_script(script)
    keys(browser, "?")
    says(browser, "Leave the terminal", "#keys[open]")
    assert browser.execute_script("return window.same")


def test_rows_search_and_the_dialog_of_keys(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/workspaces")
    says(browser, "train-7b", "tbody")
    keys(browser, "j", "j", "k")
    row = browser.execute_script("return document.activeElement.dataset.id")
    assert row == "ws-cuda-samples"
    keys(browser, "/")
    assert focused(browser) == "Search workspaces"
    keys(browser, "g", "t", "c", "?")  # text, in a field
    assert find(browser, "[data-search]").get_property("value") == "gtc?"
    assert browser.current_url == f"{canned.url}/workspaces"
    browser.execute_script("document.activeElement.blur()")
    keys(browser, "?")
    find(browser, "#keys[open]")
    keys(browser, "c")  # not in dialogs
    keys(browser, Keys.ESCAPE)
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "#keys[open]"), "no dialog")
    assert browser.current_url == f"{canned.url}/workspaces"


def test_single_keys_are_off_by_choice_and_the_palette_is_not(browser: Driver, canned: Canned) -> None:
    records.add_to(canned)
    visit(browser, canned, "/workspaces")
    until(browser, lambda: canned.streams, "the stream")
    browser.execute_script("localStorage.setItem('svc.keys', 'off')")
    keys(browser, "?", "c")
    assert not browser.find_elements(By.CSS_SELECTOR, "#keys[open]")
    keys(browser, "k", hold=Keys.CONTROL)
    says(browser, "jupyter", ".palette [aria-label=Templates]")
    assert not browser.find_elements(By.CSS_SELECTOR, ".palette [role=option] kbd")
    keys(browser, "k", hold=Keys.CONTROL)  # and closes it
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "dialog[open]"), "no palette")
    assert browser.current_url == f"{canned.url}/workspaces"


def test_a_terminal_keeps_its_keys(browser: Driver, canned: Canned) -> None:
    """What is marked takes all keys, Ctrl K too."""
    records.add_to(canned)
    visit(browser, canned, "/workspaces")
    until(browser, lambda: canned.streams, "the stream")
    browser.execute_script(
        "const box = document.createElement('div'); box.dataset.ownKeys = ''; box.tabIndex = 0;"
        "document.querySelector('#main').append(box); box.focus(); window.taken = [];"
        "addEventListener('keydown', event => window.taken.push(event.defaultPrevented));"
    )
    keys(browser, "k", hold=Keys.CONTROL)
    keys(browser, "?", "c")
    assert browser.execute_script("return window.taken").count(True) == 0
    assert not browser.find_elements(By.CSS_SELECTOR, "dialog[open]")
    assert browser.current_url == f"{canned.url}/workspaces"
