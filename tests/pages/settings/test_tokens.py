"""API tokens and sessions in the settings, before a canned API."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from conventions.command_lines import faults
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.records import page
from pages.settings import records
from pages.visiting import NARROW, WIDE, each_look, focused, line, overflow, visit
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

HOSTILE = "<script>alert(1)</script>'\u202egnp.exe"


@pytest.fixture(autouse=True)
def served(canned: Canned) -> None:
    """The mock-up's records."""
    records.serve(canned)


def row(number: int) -> str:
    """The selector of a token's row."""
    return f"tr[data-id='{records.tokens()[number]['id']}']"


def words_of(command: str) -> list[str]:
    """The words of a command as bash reads them, which knows $'...' too."""
    done = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True)
    return done.stdout.decode().split("\0")[:-1]


def commands(driver: Driver, selector: str = "#screen [data-cmd]") -> list[str]:
    """What the buttons would do."""
    script = "return [...document.querySelectorAll(arguments[0])].map(element => element.dataset.cmd)"
    return list(driver.execute_script(script, selector))


def answers_once(canned: Canned, request: str, answer: Any, lists: str, items: list[Any]) -> None:
    """Answer a request, and have another list from then on: not before, for a page reads it by itself too."""

    def done() -> Any:
        canned.answers[lists] = page(items)
        return answer

    canned.answers[request] = done


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW, (1000, 800)])
def test_tokens_as_the_mock_up_shows(
    browser: Driver, canned: Canned, theme: str, size: tuple[int, int]
) -> None:
    visit(browser, canned, "/settings/tokens", theme=theme, size=size)
    says(browser, "in 5 d", f"{row(0)} .state.warn")
    says(browser, "make its successor now", row(0))
    find(browser, f"{row(0)} [title='expires within seven days']")
    says(browser, "from 10.20.7.88", row(0))
    says(browser, "in 68 d", row(1))
    assert not browser.find_elements(By.CSS_SELECTOR, f"{row(1)} .state")
    says(browser, "never", row(2))
    says(browser, "expired", f"{row(3)} .state.stopped")
    says(browser, "svc_pat_4Kq9x", row(0))
    assert commands(browser, "[data-key^=revoke-]") == [
        "svc token revoke ci-eval", "svc token revoke laptop", "svc token revoke grafana",
        f"svc token revoke {records.tokens()[3]['id']}",
    ]  # fmt: skip
    assert line(browser) == "svc token list"
    says(browser, f"{canned.url}/api/workspaces", "#screen")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_revoking(browser: Driver, canned: Canned) -> None:
    """Its dialog says what is lost, and shows the command; the row goes, and the focus to the next."""
    visit(browser, canned, "/settings/tokens")
    press(browser, f"{row(0)} [data-key^=revoke-]")
    says(browser, "Revoke ci-eval?", "dialog[open]")
    says(browser, "It was last used 3 min ago from 10.20.7.88.", "dialog[open]")
    says(browser, "svc token revoke ci-eval", "dialog[open] .cmd")
    assert focused(browser) == "Cancel"
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "dialog[open]"), "no dialog")
    path = f"DELETE /api/tokens/{records.tokens()[0]['id']}"
    assert not canned.sent(path)
    answers_once(canned, path, (204, None, {}), "GET /api/tokens", records.tokens()[1:])
    press(browser, f"{row(0)} [data-key^=revoke-]")
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, row(0)), "no such row")
    until(browser, lambda: focused(browser) == "Revoke laptop", "the next")
    said = find(browser, "[data-said]")
    until(browser, lambda: said.get_property("textContent") == "ci-eval: Revoked", "what was done")
    assert not browser.find_elements(By.CSS_SELECTOR, ".tabs .count, .side [data-place=settings] .count")


def test_a_token_that_was_not_revoked(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/settings/tokens")
    canned.refuse(f"DELETE /api/tokens/{records.tokens()[1]['id']}", 503, "busy", "the database is busy")
    press(browser, f"{row(1)} [data-key^=revoke-]")
    press(browser, "dialog[open] button[value=confirm]")
    says(browser, "laptop was not revoked. The database is busy.", "[data-answer]")
    press(browser, "[data-answer] [data-key=dismiss]")
    find(browser, row(1))


def test_a_token_that_was_revoked_elsewhere(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/settings/tokens")
    press(browser, f"{row(1)} [data-key^=revoke-]")
    canned.refuse(
        f"DELETE /api/tokens/{records.tokens()[1]['id']}", 404, "not_found", "there is no such token"
    )
    canned.answers["GET /api/tokens"] = page([*records.tokens()[:1], *records.tokens()[2:]])
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, row(1)), "no such row")
    assert not find(browser, "[data-answer]").is_displayed()


def test_the_command_that_makes_one_follows_the_form(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/settings/tokens")
    says(browser, "(umask 077; svc token create --name NAME --expires 90 >svc-token)", "[data-create]")
    find(browser, "#tn").send_keys("my laptop")
    days = find(browser, "#te")
    days.clear()
    days.send_keys("30")
    assert line(browser) == "svc token create --name 'my laptop' --expires 30"
    assert faults(line(browser)) == []
    says(browser, "svc token create --name 'my laptop' --expires 30 >svc-token", "[data-create]")
    press(browser, "#tf")
    assert line(browser) == "svc token create --name 'my laptop' --expires 30 --scope files"
    assert faults(line(browser)) == []
    press(browser, "#tf")
    name = find(browser, "#tn")
    for text, words in (("-x", ["--name=-x"]), ("a'b", ["--name", "a'b"]), (HOSTILE, ["--name", HOSTILE])):
        browser.execute_script("arguments[0].value = ''", name)
        name.send_keys(text)
        until(
            browser,
            lambda words=words: words_of(line(browser))[3:-2] == words,
            f"{words} in the line",
        )
    assert not complaints(browser)


@pytest.mark.parametrize(
    ("selector", "text", "says_"),
    [
        ("#tn", "laptop", "an active token has this name"),
        ("#tn", "x" * 65, "has at most 64 characters"),
        ("#te", "0", "is 1 to 365 days"),
        ("#te", "366", "is 1 to 365 days"),
        ("#te", "1.5", "is 1 to 365 days"),
    ],
)
def test_what_would_be_refused_is_said_while_it_is_typed(
    browser: Driver, canned: Canned, selector: str, text: str, says_: str
) -> None:
    visit(browser, canned, "/settings/tokens")
    find(browser, row(0))
    field = find(browser, selector)
    field.clear()
    field.send_keys(text)
    says(browser, says_, f"{selector}-e")
    assert field.get_attribute("aria-invalid") == "true"
    field.clear()
    field.send_keys("7")
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, f"{selector}-e"), "no error")


def test_one_that_is_made_on_the_host_is_seen_at_once(browser: Driver, canned: Canned) -> None:
    canned.answers["GET /api/tokens"] = page([])
    visit(browser, canned, "/settings/tokens")
    says(browser, "No tokens", "[data-list] .empty")
    until(browser, lambda: canned.streams, "the stream")
    find(browser, "#tn").send_keys("lap")
    canned.answers["GET /api/tokens"] = page(records.tokens()[1:2])
    canned.event("token.created", subject={"type": "token", "id": "tok-1", "name": "laptop"})
    find(browser, row(1))
    assert find(browser, "#tn").get_property("value") == "lap"
    assert browser.switch_to.active_element.get_attribute("id") == "tn"


def test_hostile_tokens(browser: Driver, canned: Canned) -> None:
    items = [records.token(HOSTILE, "svc_pat_aaaaa", 3), records.token("x" * 64, "svc_pat_bbbbb", 30)]
    canned.answers["GET /api/tokens"] = page(items)
    visit(browser, canned, "/settings/tokens", size=NARROW)
    says(browser, "<script>", "tbody")
    assert commands(browser, "[data-key^=revoke-]") == [
        f"svc token revoke {items[0]['id']}", f"svc token revoke {'x' * 64}",
    ]  # fmt: skip
    press(browser, "[data-key^=revoke-]")
    says(browser, "Revoke <script>", "dialog[open]")
    assert overflow(browser) == 0
    assert not complaints(browser)


# ---- sessions ----


@each_look
def test_sessions(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    visit(browser, canned, "/settings/sessions", theme=theme, size=size)
    says(browser, "this browser", "tr[data-id=ses-1]")
    says(browser, "Firefox on Windows", "tr[data-id=ses-2]")
    says(browser, "from 10.20.4.2", "tr[data-id=ses-2]")
    says(browser, "if unused", "tr[data-id=ses-2]")
    says(browser, "at the latest", "tr[data-id=ses-2]")
    says(browser, "unknown browser", "tr[data-id=ses-3]")
    says(browser, "this browser and 2 others", "[data-count]")
    assert line(browser) == "svc api GET /api/auth/sessions"
    assert [command for command in commands(browser) for _ in faults(command)] == []
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_ending_one(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/settings/sessions")
    button = find(browser, "[data-key=end-ses-2]")
    assert button.get_attribute("data-cmd") == "svc api DELETE /api/auth/sessions/ses-2"
    this, _, third = records.sessions()
    path = "/api/auth/sessions"
    answers_once(canned, f"DELETE {path}/ses-2", (204, None, {}), f"GET {path}", [this, third])
    press(browser, "[data-key=end-ses-2]")
    says(browser, "svc api DELETE /api/auth/sessions/ses-2", "dialog[open] .cmd")
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "tr[data-id=ses-2]"), "no such row")
    until(browser, lambda: focused(browser) == "End unknown browser from 10.20.4.3", "the next")


def test_ending_all_others(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/settings/sessions")
    command = " && ".join(f"svc api DELETE /api/auth/sessions/ses-{number}" for number in (2, 3))
    assert find(browser, "[data-key=end-all]").get_attribute("data-cmd") == command
    press(browser, "[data-key=end-all]")
    says(browser, "2 browsers must sign in again", "dialog[open]")
    says(browser, command, "dialog[open] .cmd")
    path = "/api/auth/sessions"
    answers_once(canned, f"DELETE {path}", {"ended": 2}, f"GET {path}", records.sessions()[:1])
    press(browser, "dialog[open] button[value=confirm]")
    says(browser, "this browser alone", "[data-count]")
    assert not browser.find_elements(By.CSS_SELECTOR, "[data-key=end-all]")
    assert len(canned.sent("DELETE /api/auth/sessions")) == 1


def test_a_session_that_could_not_be_ended(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/settings/sessions")
    canned.refuse("DELETE /api/auth/sessions/ses-3", 503, "busy", "the database is busy")
    press(browser, "[data-key=end-ses-3]")
    press(browser, "dialog[open] button[value=confirm]")
    says(browser, "unknown browser was not ended. The database is busy.", "[data-answer]")


def test_signing_out_here(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/settings/sessions")
    press(browser, "[data-key=sign-out]")
    until(browser, lambda: browser.current_url.endswith("/sign-in"), "the sign-in screen")
    assert canned.sent("POST /api/auth/logout")


def test_while_the_service_is_away(browser: Driver, canned: Canned) -> None:
    """Nothing is sent, and the buttons say that they wait."""
    visit(browser, canned, "/settings/sessions")
    until(browser, lambda: canned.streams, "the stream")
    gone: dict[str, Any] = {"status": 503, "code": "unavailable", "message": "stopping", "retryable": True}
    for request in ("GET /api/health", "GET /api/events"):
        canned.refuse(request, **gone)
    canned.event("restarting")
    canned.streams[0].end()
    says(browser, "The service is restarting", ".banner")
    press(browser, "[data-key=end-ses-2][aria-disabled=true]")
    press(browser, "[data-key=end-all][aria-disabled=true]")
    assert not browser.find_elements(By.CSS_SELECTOR, "dialog[open]")
    assert not canned.sent("DELETE /api/auth/sessions/ses-2")
