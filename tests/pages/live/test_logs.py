"""What a workspace prints, before a canned API."""

from __future__ import annotations

from typing import Any

import pytest
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.live.canned_logs import Log
from pages.visiting import NARROW, each_look, overflow, visit
from pages.workspace import records
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

PAGE = "/workspaces/train-7b/logs"
LAUNCHERS = [
    {"name": name, "title": "", "port": None, "autostart": False, "url": None}
    for name in ("train", "tensorboard")
]
EVENT = {"subject": {"type": "workspace", "id": records.ID, "name": "train-7b"}}


def line(driver: Driver) -> str:
    """The command at the foot."""
    return find(driver, "[data-command]").text


def printed(driver: Driver) -> list[str]:
    """The lines that are shown."""
    words = "document.querySelectorAll('[data-out] .part > div > :last-child')"
    script = f"return [...{words}].map(words => words.textContent.trimEnd())"
    return [str(text) for text in driver.execute_script(script)]


def state(driver: Driver, text: str) -> None:
    """Wait until it is said below the log."""
    says(driver, text, "[data-stream]")


@pytest.fixture
def log(canned: Canned) -> Log:
    """The running workspace of the mock-up with two launchers, and a log of four lines."""
    records.serve(canned, records.of_the_mock_up(launchers=LAUNCHERS))
    log = Log(canned)
    for step in range(3):
        log.write(f"step {step}  loss 2.11\n")
    log.write("WARNING  rank 1: loader waited 4.2 s\n", stream="stderr")
    return log


@each_look
def test_it_is_followed(browser: Driver, canned: Canned, log: Log, size: Any, theme: str) -> None:
    visit(browser, canned, PAGE, size=size, theme=theme)
    until(browser, lambda: len(printed(browser)) == 4, "four lines")
    state(browser, "Following")
    assert line(browser) == "svc ws logs train-7b --tail 1000 --follow"
    log.write("a line in ")
    log.write("two parts\nand ")
    until(browser, lambda: printed(browser)[-2:] == ["a line in two parts", "and"], "the parts")
    log.write("its end\n")
    until(browser, lambda: printed(browser)[-1] == "and its end", "the end")
    assert find(browser, ".out .err").text.startswith("WARNING")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_whose_output(browser: Driver, canned: Canned, log: Log) -> None:
    """A launcher's is an address of its own, which the list and the apps lead to."""
    visit(browser, canned, f"{PAGE}?launcher=train")
    until(browser, lambda: len(printed(browser)) == 4, "four lines")
    assert log.queries == ["tail=1000&launcher=train"]
    assert line(browser) == "svc ws logs train-7b --launcher train --tail 1000 --follow"
    assert find(browser, "[data-out]").get_attribute("aria-label") == "Output of train"
    press(browser, "[data-key='source-tensorboard']")
    until(browser, lambda: log.queries[-1] == "tail=1000&launcher=tensorboard", "the other")
    assert browser.current_url.endswith("?launcher=tensorboard")
    press(browser, "[data-key='source-']")
    until(browser, lambda: log.queries[-1] == "tail=1000", "the container's")
    until(browser, lambda: line(browser) == "svc ws logs train-7b --tail 1000 --follow", "the line")
    assert "LAST_EVENT_ID" not in canned.sent(f"GET {records.PATH}/logs/stream")[-1][1]


def test_many_launchers_are_a_list(browser: Driver, canned: Canned, log: Log) -> None:
    many = [LAUNCHERS[0] | {"name": f"app-{number}"} for number in range(9)]
    records.serve(canned, records.of_the_mock_up(launchers=many))
    visit(browser, canned, PAGE)
    until(browser, lambda: len(printed(browser)) == 4, "four lines")
    press(browser, "[data-sources] option[value=app-7]")
    until(browser, lambda: log.queries[-1] == "tail=1000&launcher=app-7", "its log")


def test_a_pause_loses_nothing(browser: Driver, canned: Canned, log: Log) -> None:
    visit(browser, canned, PAGE)
    until(browser, lambda: len(printed(browser)) == 4, "four lines")
    press(browser, "[data-follow]")
    state(browser, "Paused")
    assert line(browser) == "svc ws logs train-7b --tail 1000"
    log.streams.clear()
    log.write("meanwhile\n")
    press(browser, "[data-follow]")
    until(browser, lambda: printed(browser)[-1] == "meanwhile", "what came meanwhile")
    assert len(printed(browser)) == 5
    assert canned.sent(f"GET {records.PATH}/logs/stream")[-1][1]["LAST_EVENT_ID"] == "1.4.0"


def test_restart_and_break(browser: Driver, canned: Canned, log: Log) -> None:
    """The service says that it restarts, or the connection breaks: it goes on after the last line."""
    visit(browser, canned, PAGE)
    until(browser, lambda: len(printed(browser)) == 4, "four lines")
    log.tell("restarting")
    state(browser, "The service restarts")
    log.break_off()
    log.write("after the restart\n")
    until(browser, lambda: printed(browser)[-1] == "after the restart", "what came after it")
    state(browser, "Following")
    canned.refuse(f"GET {records.PATH}/logs/stream", 503, "unavailable", "stopping", retryable=True)
    log.break_off()
    state(browser, "The connection is gone; trying again in")
    log.write("after the break\n")
    canned.answers[f"GET {records.PATH}/logs/stream"] = log._follow
    press(browser, "[data-stream] [data-key=now]")
    until(browser, lambda: printed(browser)[-1] == "after the break", "what came after that")
    assert len(printed(browser)) == 6
    assert not complaints(browser)


def test_its_end_and_another_beginning(browser: Driver, canned: Canned, log: Log) -> None:
    log.end = "end"
    visit(browser, canned, PAGE)
    state(browser, "It does not run")
    until(browser, lambda: len(printed(browser)) == 4, "what it has printed")
    assert line(browser) == "svc ws logs train-7b --tail 1000"
    until(browser, lambda: canned.streams, "the stream")
    log.end = ""
    canned.event("workspace.status_changed", **EVENT)
    state(browser, "Following")
    log.write("here again\n")
    until(browser, lambda: printed(browser)[4:] == ["it was started again", "here again"], "its new output")


def test_what_a_screen_would_show(browser: Driver, canned: Canned, log: Log) -> None:
    """Colours go, a bar that is written over itself is one line, and nothing else acts on the page."""
    log.write("started at 14:31", kind="marker")
    log.write("\x1b[1;32mgreen\x1b[0m \x1b]0;title\x07text\n")
    log.write(" 10 %\r 20 %")
    log.write("\r 30 %")
    log.write("<img src=x onerror=alert(1)>\u202egnp.exe\x08\x00" + "x" * 300 + "\n")
    visit(browser, canned, PAGE, size=NARROW)
    until(browser, lambda: len(printed(browser)) == 7, "all lines")
    _, _, _, _, mark, green, last = printed(browser)
    assert mark == "started at 14:31"
    assert green == "green text"
    assert last.startswith(" 30 %<img src=x onerror=alert(1)>\u202egnp.exe\u2408\u2400xxx")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_find(browser: Driver, canned: Canned, log: Log) -> None:
    for number in range(300):
        log.write(f"checkpoint {number}\n" if number % 100 == 0 else f"step {number}\n")
    visit(browser, canned, PAGE)
    until(browser, lambda: len(printed(browser)) == 304, "all lines")
    find(browser, "body").send_keys("/")
    browser.switch_to.active_element.send_keys("CHECK")
    says(browser, "3 of 3", "[data-found]")
    assert find(browser, ".out .now").text == "checkpoint 200"
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    says(browser, "2 of 3", "[data-found]")
    until(browser, lambda: find(browser, ".out .now").text == "checkpoint 100", "the one before")
    press(browser, "[data-after]")
    says(browser, "3 of 3", "[data-found]")
    log.write("checkpoint 300\n")
    says(browser, "3 of 4", "[data-found]")
    find(browser, "[data-search]").send_keys("zzz")
    says(browser, "not there", "[data-found]")


def test_nothing_moves_under_the_hand(browser: Driver, canned: Canned, log: Log) -> None:
    """Who has gone up stays there, and sees how much has come."""
    for number in range(300):
        log.write(f"line {number}\n")
    visit(browser, canned, PAGE)
    until(browser, lambda: len(printed(browser)) == 304, "all lines")
    at_end = (
        "const o = document.querySelector('.out'); return o.scrollHeight - o.scrollTop - o.clientHeight < 32"
    )
    until(browser, lambda: browser.execute_script(at_end), "the end")
    browser.execute_script("document.querySelector('[data-out]').scrollTop = 1000")
    until(browser, lambda: find(browser, "[data-newest]").is_displayed(), "the way back")
    top = browser.execute_script("return document.querySelector('[data-out]').scrollTop")
    log.write("one more\n")
    says(browser, "To the newest, 1 line further", "[data-newest]")
    assert browser.execute_script("return document.querySelector('[data-out]').scrollTop") == top
    press(browser, "[data-newest]")
    until(browser, lambda: browser.execute_script(at_end), "the end again")
    assert not find(browser, "[data-newest]").is_displayed()


def test_so_many_lines_are_kept(browser: Driver, canned: Canned, log: Log) -> None:
    """The newest; those before go."""
    log.write("".join(f"line {number}\n" for number in range(6000)))
    visit(browser, canned, PAGE)
    until(browser, lambda: printed(browser)[-1:] == ["line 5999"], "the last line")
    count = len(printed(browser))
    assert 5000 <= count <= 5200
    assert printed(browser)[0] == f"line {6000 - count}"


def test_times_wrapping_and_how_much(browser: Driver, canned: Canned, log: Log) -> None:
    log.write("x" * 2000 + "\n")
    visit(browser, canned, PAGE)
    until(browser, lambda: len(printed(browser)) == 5, "five lines")
    stamp = find(browser, ".out time")
    assert not stamp.is_displayed()
    press(browser, "[data-times]")
    until(browser, stamp.is_displayed, "their times")
    assert stamp.get_attribute("title").startswith("2026-11-24 14:31:07")
    assert line(browser) == "svc ws logs train-7b --timestamps --tail 1000 --follow"
    press(browser, "[data-tail] option[value='200']")
    until(browser, lambda: log.queries[-1] == "tail=200", "fewer")
    until(
        browser, lambda: line(browser) == "svc ws logs train-7b --timestamps --tail 200 --follow", "the line"
    )
    wide = "const o = document.querySelector('[data-out]'); return o.scrollWidth > o.clientWidth"
    until(browser, lambda: len(printed(browser)) == 5, "five lines")
    assert not browser.execute_script(wide)
    press(browser, "[data-wrap]")
    until(browser, lambda: browser.execute_script(wide), "a long line")
    assert overflow(browser) == 0


def test_save(browser: Driver, canned: Canned, log: Log) -> None:
    """A plain link with a ticket: the file does not go through the page's memory."""
    url = f"{records.PATH}/logs/raw?launcher=train&ticket=svc_tkt_once"
    canned.answers["POST /api/tickets"] = (201, {"url": url, "expires_at": ""}, {})
    canned.answers[f"GET {records.PATH}/logs/raw"] = (200, "all of it", {"Content-Disposition": "attachment"})
    visit(browser, canned, f"{PAGE}?launcher=train")
    until(browser, lambda: len(printed(browser)) == 4, "four lines")
    assert (
        find(browser, "[data-save]").get_attribute("data-cmd")
        == "svc ws logs train-7b --launcher train > train.log"
    )
    press(browser, "[data-save]")
    saved = until(browser, lambda: canned.sent(f"GET {records.PATH}/logs/raw"), "the file")
    assert saved[0][1]["QUERY"] == "launcher=train&ticket=svc_tkt_once"
    assert canned.sent("POST /api/tickets")[0][0] == {"url": f"{records.PATH}/logs/raw?launcher=train"}
    assert printed(browser)
    canned.refuse("POST /api/tickets", 429, "too_many_requests", "too many tickets", retryable=True)
    press(browser, "[data-save]")
    says(browser, "The log was not saved. Too many tickets.", ".notice[role=alert]")


def test_what_is_refused_and_nothing(browser: Driver, canned: Canned, log: Log) -> None:
    canned.refuse(f"GET {records.PATH}/logs/stream", 404, "not_found", "no such launcher")
    visit(browser, canned, f"{PAGE}?launcher=nobody")
    says(browser, "The log could not be read. No such launcher.", ".notice")
    log.lines.clear()
    canned.answers[f"GET {records.PATH}/logs/stream"] = log._follow
    press(browser, "[data-key='source-']")
    says(browser, "Nothing was printed.", ".out-box")
    assert not browser.find_elements(By.CSS_SELECTOR, ".notice")
    log.tell(
        "error",
        {"error": {"code": "engine_failed", "message": "the engine failed", "hint": "svc admin doctor"}},
    )
    says(browser, "The engine failed.", ".notice")
