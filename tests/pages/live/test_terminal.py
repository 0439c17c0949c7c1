"""The shells of a workspace in their tabs, before a canned API."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.live.canned_terminal import Terminals
from pages.visiting import NARROW, each_look, focused, overflow, visit
from pages.workspace import records
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

PAGE = "/workspaces/train-7b/terminal"
LEAVE = Keys.CONTROL + Keys.SHIFT + Keys.ARROW_UP + Keys.NULL


def line(driver: Driver) -> str:
    """The command at the foot."""
    return find(driver, "[data-command]").text


def screen(driver: Driver) -> str:
    """What the chosen shell shows."""
    return find(driver, ".screen:not([hidden]) .xterm-rows").text


def shows(driver: Driver, text: str) -> None:
    """Wait until the chosen shell shows it."""
    until(driver, lambda: text in screen(driver), f"{text!r} on the screen")


@pytest.fixture
def terminals(canned: Canned) -> Terminals:
    """The running workspace of the mock-up, without a terminal."""
    records.serve(canned, records.of_the_mock_up())
    return Terminals(canned)


@each_look
def test_without_a_shell_one_is_opened(
    browser: Driver, canned: Canned, terminals: Terminals, size: Any, theme: str
) -> None:
    """At once, with the size of the window, and one can type; nothing of it is against the policy."""
    visit(browser, canned, PAGE, size=size, theme=theme)
    shows(browser, "root@train-7b:/work#")
    says(browser, "Connected", "[data-status]")
    (viewer,) = terminals.viewers
    assert viewer.query["ticket"] == "svc_tkt_first"
    assert not canned.sent("POST /api/tickets")
    until(browser, lambda: focused(browser).startswith("Terminal 1."), "the focus")
    browser.switch_to.active_element.send_keys("ls -l" + Keys.TAB + Keys.ENTER)
    until(browser, lambda: viewer.typed == b"ls -l\t\r", "what was typed")
    viewer.show(b"\x1b[38;2;255;120;10mtrue colour\x1b[0m \x1b[1;32mgreen\x1b[0m\r\n")
    shows(browser, "true colour")
    assert line(browser) == "svc ws shell train-7b --attach t-1k2m9x"
    assert overflow(browser) == 0
    assert not complaints(browser)


def status(driver: Driver, text: str) -> None:
    """Wait until it is said below the shell."""
    says(driver, text, "[data-status]")


def tabs(driver: Driver) -> list[str]:
    """The shells, the chosen one with a star."""
    found = driver.find_elements(By.CSS_SELECTOR, "[role=tab]")
    return [
        f"{' '.join(tab.text.split())}{'*' * (tab.get_attribute('aria-selected') == 'true')}" for tab in found
    ]


def test_shells_are_tabs(browser: Driver, canned: Canned, terminals: Terminals) -> None:
    """By keyboard: arrows choose, Delete closes, and every shell has its own screen and connection."""
    terminals.add("vim train.py")
    terminals.add("", command=["nvidia-smi", "-l", "1"])
    terminals.add("was", state="exited")
    visit(browser, canned, PAGE)
    shows(browser, "root@")
    assert tabs(browser) == ["1 vim train.py*", "2 nvidia-smi -l 1"]
    until(browser, lambda: focused(browser).startswith("Terminal 1."), "the focus")
    assert browser.execute_script("return location.search") == "?shell=t-1k2m9x"
    browser.switch_to.active_element.send_keys(LEAVE)
    assert focused(browser).split() == ["1", "vim", "train.py"]
    browser.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    until(browser, lambda: tabs(browser)[1].endswith("*"), "the second")
    until(browser, lambda: len(terminals.viewers) == 2, "its connection")
    assert line(browser) == "svc ws shell train-7b --attach t-2k2m9x"
    terminals.viewers[1].show(b"GPU 97 %")
    shows(browser, "GPU 97 %")
    browser.switch_to.active_element.send_keys(Keys.HOME)
    until(browser, lambda: "GPU" not in screen(browser), "the screen of the first")
    assert len(terminals.viewers) == 2  # it was there all the time
    browser.switch_to.active_element.send_keys(Keys.DELETE)
    says(browser, "Close 1 vim train.py?", "dialog[open]")
    says(browser, "svc ws shell train-7b --close t-1k2m9x", "dialog[open] code")
    assert focused(browser) == "Let it run"
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: tabs(browser) == ["2 nvidia-smi -l 1*"], "one tab")
    assert canned.sent(f"DELETE {records.PATH}/terminals/t-1k2m9x")
    press(browser, "[data-another]")
    until(browser, lambda: tabs(browser)[-1] == "3 shell*", "another one")
    assert not complaints(browser)


def test_all_keys_are_the_shells(browser: Driver, canned: Canned, terminals: Terminals) -> None:
    """Those of the page and of its palette too; the one that leaves it is written below it."""
    terminals.add("")
    visit(browser, canned, PAGE)
    shows(browser, "root@")
    until(browser, lambda: focused(browser).startswith("Terminal 1."), "the focus")
    says(browser, "Leave the terminal Ctrl Shift", ".term .foot")
    keys = browser.switch_to.active_element
    keys.send_keys("gt?/3" + Keys.ESCAPE + Keys.CONTROL + "k" + Keys.NULL + Keys.TAB)
    (viewer,) = terminals.viewers
    until(browser, lambda: viewer.typed == b"gt?/3\x1b\x0b\t", "all of it")
    assert not browser.find_elements(By.CSS_SELECTOR, "dialog[open]")
    assert browser.current_url.split("?")[0].endswith("/terminal")
    keys.send_keys(LEAVE)
    assert focused(browser).split() == ["1", "shell"]
    assert viewer.typed == b"gt?/3\x1b\x0b\t"


def test_a_connection_that_breaks(browser: Driver, canned: Canned, terminals: Terminals) -> None:
    """The last screen stays, dimmed; then it is as it was, and old questions are not answered again."""
    terminals.add("")
    visit(browser, canned, PAGE)
    shows(browser, "root@")
    (viewer,) = terminals.viewers
    assert viewer.query["ticket"] == "svc_tkt_again"
    canned.refuse("POST /api/tickets", 503, "unavailable", "stopping", retryable=True)

    def ask() -> bool:  # what terminal it is, after a pause by which the page knows that the replay has ended
        time.sleep(0.2)
        viewer.show(b"\x1b[c")
        return viewer.typed.startswith(b"\x1b[?")

    until(browser, ask, "the answer")
    terminals.kept = b"\x1b[c\x1b[6nthe same screen\r\nroot@train-7b:/work# "
    viewer.end()
    status(browser, "The connection is gone; trying again in")
    assert "root@" in screen(browser)
    assert find(browser, "[data-screens]").get_attribute("data-dim") is not None
    del canned.answers["POST /api/tickets"]
    canned.answers["POST /api/tickets"] = terminals._ticket
    press(browser, "[data-status] [data-key=now]")
    shows(browser, "the same screen")
    status(browser, "Connected")
    assert terminals.viewers[-1].typed == b""
    browser.execute_script("document.querySelector('.xterm-helper-textarea').focus()")
    browser.switch_to.active_element.send_keys("x")
    until(browser, lambda: terminals.viewers[-1].typed == b"x", "that one can type")
    assert find(browser, "[data-screens]").get_attribute("data-dim") is None
    assert not complaints(browser)


def test_the_service_restarts(browser: Driver, canned: Canned, terminals: Terminals) -> None:
    terminals.add("")
    visit(browser, canned, PAGE)
    shows(browser, "root@")
    terminals.viewers[0].close(1012, "restart")
    until(browser, lambda: len(terminals.viewers) == 2, "another connection")
    status(browser, "Connected")


@pytest.mark.parametrize(
    ("code", "reason", "exit_code", "words"),
    [
        (4000, "exited", 3, "Its program has ended with exit code 3."),
        (4001, "closed", None, "It was closed."),
        (4001, "idle", None, "It was closed after a day without use."),
        (4001, "stopped", None, "It ended with the workspace."),
        (4001, "lost", None, "It is lost"),
    ],
)
def test_how_it_ended(
    browser: Driver, canned: Canned, terminals: Terminals, code: int, reason: str, exit_code: Any, words: str
) -> None:
    """Its last screen stays; another one is a press away, and so is its end."""
    terminals.add("")
    visit(browser, canned, PAGE)
    shows(browser, "root@")
    terminals.viewers[0].tell("exit", reason=reason, exit_code=exit_code)
    terminals.viewers[0].close(code, reason)
    status(browser, words)
    assert "root@" in screen(browser)
    terminals.items[0]["state"] = "exited"
    press(browser, "[data-status] [data-key=again]")
    until(browser, lambda: tabs(browser) == ["1 shell , ended", "2 shell*"], "a second one")
    press(browser, "[role=tab]")
    press(browser, "[data-status] [data-key=close]")
    until(browser, lambda: tabs(browser) == ["2 shell*"], "the second one alone")
    assert not browser.find_elements(By.CSS_SELECTOR, "dialog[open]")  # there was nothing to lose


def test_one_that_is_no_longer_there(browser: Driver, canned: Canned, terminals: Terminals) -> None:
    """The browser does not say why a connection was refused: the list does."""
    terminals.add("")
    visit(browser, canned, PAGE)
    shows(browser, "root@")
    terminals.items.clear()
    canned.refuse(f"GET {records.PATH}/terminal", 404, "not_found", "no such terminal")
    terminals.viewers[0].end()
    status(browser, "It is no longer there.")


def test_a_viewer_that_was_too_slow(browser: Driver, canned: Canned, terminals: Terminals) -> None:
    terminals.add("")
    visit(browser, canned, PAGE)
    shows(browser, "root@")
    terminals.viewers[0].show(b"the first lines\r\n")
    shows(browser, "the first lines")
    terminals.viewers[0].tell("skipped", bytes=1234)
    terminals.viewers[0].show(b"and much later ones")
    shows(browser, "and much later ones")
    assert "first" not in screen(browser)


def test_another_window_has_another_size(browser: Driver, canned: Canned, terminals: Terminals) -> None:
    terminals.add("")
    visit(browser, canned, PAGE)
    shows(browser, "root@")
    (viewer,) = terminals.viewers
    viewer.tell("state", title="", cols=40, rows=10)
    says(browser, "40 \u00d7 10, the size of another window until you type", "[data-size]")
    cols, rows = viewer.sizes[-1]
    viewer.tell("state", title="", cols=cols, rows=rows)
    until(browser, lambda: find(browser, "[data-size]").text == f"{cols} \u00d7 {rows}", "its own size")
    browser.set_window_size(900, 700)
    until(browser, lambda: viewer.sizes[-1] != (cols, rows), "the new size")
    until(browser, lambda: f"{viewer.sizes[-1][0]} \u00d7" in find(browser, "[data-size]").text, "it shown")


def test_much_is_pasted(browser: Driver, canned: Canned, terminals: Terminals) -> None:
    """In messages that the service takes, none of them lost."""
    terminals.add("")
    visit(browser, canned, PAGE)
    shows(browser, "root@")
    text = "ä" * 100_000
    browser.execute_script(
        "const data = new DataTransfer(); data.setData('text/plain', arguments[0]);"
        "document.querySelector('.xterm-helper-textarea').dispatchEvent("
        "new ClipboardEvent('paste', { clipboardData: data, bubbles: true }))",
        text,
    )
    until(browser, lambda: terminals.viewers[0].typed.decode() == text, "all of it")


def test_what_is_read_aloud(browser: Driver, canned: Canned, terminals: Terminals) -> None:
    """A switch, which this browser keeps."""
    terminals.add("")
    visit(browser, canned, PAGE)
    shows(browser, "root@")
    press(browser, "[data-reader]")
    assert find(browser, "[data-reader]").get_attribute("aria-pressed") == "true"
    terminals.viewers[0].show(b"a new line\r\n")
    says(browser, "a new line", ".xterm-accessibility")
    browser.refresh()
    says(browser, "root@", ".xterm-accessibility")
    assert not complaints(browser)


def test_no_more_than_there_may_be(browser: Driver, canned: Canned, terminals: Terminals) -> None:
    terminals.most = 2
    terminals.add("a")
    terminals.add("b")
    visit(browser, canned, PAGE)
    shows(browser, "root@")
    assert find(browser, "[data-another]").get_attribute("aria-disabled") == "true"
    assert find(browser, "[data-another]").get_attribute("title") == "2 shells are open; close one first."
    press(browser, "[data-another]")
    assert not canned.sent(f"POST {records.PATH}/terminals")


def test_what_is_refused(browser: Driver, canned: Canned, terminals: Terminals) -> None:
    hint = "svc ws restart train-7b"
    canned.refuse(
        f"POST {records.PATH}/terminals", 409, "workspace_outdated", "it began before an upgrade", hint=hint
    )
    visit(browser, canned, PAGE)
    says(browser, "No shell was opened. It began before an upgrade.", ".notice[role=alert]")
    says(browser, hint, ".notice .cmd")
    status(browser, "No shell is open")
    canned.refuse(f"GET {records.PATH}/terminals", 403, "owner_only", "only its owner may")
    browser.refresh()
    says(browser, "The shells could not be read. Only its owner may.", ".notice")


def test_it_does_not_run(browser: Driver, canned: Canned, terminals: Terminals) -> None:
    """It says so with the command, and begins by itself once it runs."""
    records.serve(canned, records.of_the_mock_up(status="stopped", allowed_actions=["start", "logs"]))
    visit(browser, canned, PAGE)
    says(browser, "It does not run", "[data-not-running]")
    says(browser, "svc ws start train-7b", "[data-not-running] code")
    until(browser, lambda: canned.streams, "the stream")
    records.serve(canned, records.of_the_mock_up())
    canned.event(
        "workspace.status_changed", subject={"type": "workspace", "id": records.ID, "name": "train-7b"}
    )
    shows(browser, "root@")
    assert not find(browser, "[data-not-running]").is_displayed()


def test_a_hostile_title_is_text(browser: Driver, canned: Canned, terminals: Terminals) -> None:
    terminals.add("<img src=x onerror=alert(1)>\u202egnp.exe" + "long " * 50)
    visit(browser, canned, PAGE, size=NARROW)
    shows(browser, "root@")
    assert tabs(browser)[0].startswith("1 <img src=x")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_without_the_pieces_of_others(browser: Driver, bare: Canned) -> None:
    """The page says what is missing and what brings it; the command line needs nothing of it."""
    records.serve(bare, records.of_the_mock_up())
    visit(browser, bare, PAGE)
    says(browser, "The terminal page needs @xterm/xterm/lib/xterm.mjs", "[data-missing]")
    says(browser, "packaging/frontend/fetch", "[data-missing]")
    says(browser, "svc ws shell train-7b", "[data-own-command]")
    until(browser, lambda: line(browser) == "svc ws shell train-7b", "the line")
    assert not complaints(browser)
