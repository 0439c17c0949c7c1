"""The settings: name, colours, keys, password, quota; before a canned API."""

from __future__ import annotations

import shlex

import pytest
from pages.canned import REFUSED, Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.records import page
from pages.settings import records
from pages.visiting import NARROW, each_look, focused, line, overflow, visit
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

HOSTILE = "<img src=x onerror=alert(1)>\u202e\"'{{7*7}}" + "x" * 90


@pytest.fixture(autouse=True)
def served(canned: Canned) -> None:
    """The mock-up's records."""
    records.serve(canned)


@each_look
def test_as_the_mock_up_shows(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    visit(browser, canned, "/settings", theme=theme, size=size)
    says(browser, "ada, uid 1001", "[data-facts]")
    says(browser, "Your policy is lab", "[data-quota]")
    says(browser, "from 10.20.4.1; ends on", "[data-session]")
    says(browser, "2 other sessions", "[data-session]")
    says(browser, "A new password ends all your 3 sessions and your 4 API tokens.", "[data-ends]")
    meters = browser.find_elements(By.CSS_SELECTOR, "[role=meter]")
    shown = {meter.get_attribute("aria-label"): meter.get_attribute("aria-valuetext") for meter in meters}
    assert shown["GPUs"] == "3 of 4"
    assert shown["Images"] == "0 of 120 GiB"
    assert find(browser, "#dn").get_property("value") == "Ada Lovelace"
    assert browser.execute_script("return document.querySelector('[name=theme]:checked').value") == theme
    assert line(browser) == "svc whoami"
    assert len(browser.find_elements(By.CSS_SELECTOR, "main .btn.primary")) == 1
    says(browser, "1", "[data-tab-of=settings_tokens] .count")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_the_name(browser: Driver, canned: Canned) -> None:
    """The line follows it; a refusal stands at its field; what is saved is shown."""
    visit(browser, canned, "/settings")
    name = find(browser, "#dn")
    name.send_keys(Keys.END, "'s")
    command = line(browser)
    assert shlex.split(command) == [
        "svc", "api", "PATCH", "/api/users/ada", "--body", '{"display_name":"Ada Lovelace\'s"}',
    ]  # fmt: skip
    assert find(browser, "[data-key=save]").get_attribute("data-cmd") == command
    fields = [{"field": "display_name", "code": "invalid", "message": "must not contain control characters"}]
    canned.refuse("PATCH /api/users/ada", 422, "validation_failed", "display name: …", fields=fields)
    press(browser, "[data-key=save]")
    says(browser, "must not contain control characters", ".field-error")
    assert browser.switch_to.active_element.get_attribute("id") == "dn"
    assert name.get_attribute("aria-invalid") == "true"
    assert "dn-e" in str(name.get_attribute("aria-describedby"))
    canned.answers["PATCH /api/users/ada"] = {"name": "ada", "display_name": "Ada Lovelace's"}
    canned.answers["GET /api/users/me"] = records.me(display_name="Ada Lovelace's")
    name.send_keys(Keys.ENTER)
    says(browser, "Saved", ".toasts")
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, ".field-error"), "no error")
    assert canned.sent("PATCH /api/users/ada")[-1][0] == {"display_name": "Ada Lovelace's"}
    says(browser, "Ada Lovelace's", ".side .who")  # beside the account's
    ActionChains(browser).move_to_element(find(browser, "h1")).perform()  # away from the button
    until(browser, lambda: line(browser) == "svc whoami", "the screen's own command")


def test_what_is_typed_stays_when_all_is_read_anew(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/settings")
    find(browser, "#dn").send_keys(" King")
    find(browser, "#p1").send_keys("half a pass")
    until(browser, lambda: canned.streams, "the stream")
    canned.answers["GET /api/tokens"] = page(records.tokens()[:1])
    canned.event("token.revoked", subject={"type": "token", "id": "tok-1", "name": "laptop"})
    says(browser, "and your 1 API token.", "[data-ends]")
    assert find(browser, "#dn").get_property("value") == "Ada Lovelace King"
    assert find(browser, "#p1").get_property("value") == "half a pass"


def test_colours_at_once_and_kept(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/settings")
    for value, shown in (("dark", "dark"), ("light", "light"), ("system", None)):
        press(browser, f".seg label:has([value={value}])")
        assert find(browser, "html").get_attribute("data-theme") == shown
        browser.refresh()
        find(browser, f"[value={value}]:checked")
        assert find(browser, "html").get_attribute("data-theme") == shown


def test_colours_of_another_tab(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/settings")
    find(browser, "#dn")
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.get(f"{canned.url}/settings")
    press(browser, ".seg label:has([value=dark])")
    browser.close()
    browser.switch_to.window(first)
    find(browser, "html[data-theme=dark]")
    find(browser, "[value=dark]:checked")


def test_single_keys_on_and_off(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/settings")
    until(browser, lambda: canned.streams, "the stream")
    press(browser, "[data-single-keys]")
    find(browser, "body").click()
    find(browser, "body").send_keys("?")
    assert not browser.find_elements(By.CSS_SELECTOR, "#keys[open]")
    browser.refresh()
    find(browser, "[data-single-keys]:not(:checked)").click()
    find(browser, "h1").click()
    find(browser, "body").send_keys("?")
    find(browser, "#keys[open]")


def test_digits_are_the_tabs(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/settings")
    until(browser, lambda: canned.streams, "the stream")
    find(browser, "body").send_keys("2")
    until(browser, lambda: browser.current_url.endswith("/settings/tokens"), "the tokens")
    until(browser, lambda: find(browser, "tbody"), "the list")
    find(browser, "body").send_keys("3")
    until(browser, lambda: browser.current_url.endswith("/settings/sessions"), "the sessions")


# ---- the password ----


def change(driver: Driver, present: str, fresh: str, *, sends: bool = True) -> None:
    """Fill in the form and send it."""
    for selector, text in (("#p0", present), ("#p1", fresh)):
        field = find(driver, selector)
        field.clear()
        field.send_keys(text)
    if sends:
        find(driver, "#p1").send_keys(Keys.ENTER)


def test_a_new_password_and_a_new_session(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/settings")
    says(browser, "A new password ends", "[data-ends]")
    assert find(browser, "[data-key=password]").get_attribute("data-cmd") == "sudo svc admin set-password ada"
    canned.answers["PUT /api/users/ada/password"] = (204, None, {})
    canned.answers["POST /api/auth/login"] = {
        "session_secret": "fresh", "session": records.session(9, "Chromium on Linux"),
        "user": {"name": "ada", "display_name": "", "superuser": False},
    }  # fmt: skip
    change(browser, "the old one", "a gate left open")
    says(browser, "The password has been changed. This browser has a new session", "[data-changed]")
    ((body, _),) = canned.sent("PUT /api/users/ada/password")
    assert body == {"current_password": "the old one", "password": "a gate left open"}
    ((body, _),) = canned.sent("POST /api/auth/login")
    assert body == {"username": "ada", "password": "a gate left open"}
    assert browser.execute_script("return localStorage.getItem('svc.session')") == "fresh"
    says(browser, "from 10.20.4.9", "[data-session]")
    assert find(browser, "#p0").get_property("value") == ""
    until(
        browser,
        lambda: canned.sent("GET /api/users/me")[-1][1].get("X_SVC_SESSION") == "fresh",
        "a request of the new session",
    )
    assert not browser.find_elements(By.ID, "signed-out")


@pytest.mark.parametrize(
    ("name", "id_", "message"),
    [
        ("current_password", "p0", "is not the current password"),
        ("password", "p1", "can be guessed from the user's name"),
    ],
)  # fmt: skip
def test_a_refused_password_says_so_at_its_field(
    browser: Driver, canned: Canned, name: str, id_: str, message: str
) -> None:
    visit(browser, canned, "/settings")
    fields = [{"field": name, "code": "x", "message": message}]
    canned.refuse("PUT /api/users/ada/password", 422, "validation_failed", "password: x", fields=fields)
    change(browser, "the old one", "ada-gpu-01")
    says(browser, message, f"#{id_}-e")
    assert browser.switch_to.active_element.get_attribute("id") == id_
    assert not canned.sent("POST /api/auth/login")
    assert browser.execute_script("return localStorage.getItem('svc.session')") == "canned"


def test_too_many_tries(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/settings")
    canned.refuse("PUT /api/users/ada/password", 429, "too_many_requests", "too many tries", after=60)
    change(browser, "x", "a gate left open")
    says(browser, "The password was not changed. Too many tries.", "[data-answer]")
    says(browser, "too_many_requests, req-5b1c09aa41", "[data-answer]")


def test_changed_but_not_signed_in_again(browser: Driver, canned: Canned) -> None:
    """To the sign-in screen, with a word why."""
    visit(browser, canned, "/settings")
    canned.answers["PUT /api/users/ada/password"] = (204, None, {})
    canned.refuse("POST /api/auth/login", 429, "too_many_requests", "too many tries", after=60)
    change(browser, "the old one", "a gate left open")
    until(browser, lambda: "/sign-in?why=password" in browser.current_url, "the sign-in screen")
    says(browser, "Your password has been changed", ".notice")
    assert focused(browser) == "username"


def test_the_session_had_ended_already(browser: Driver, canned: Canned) -> None:
    """Signed in again over the page, and what was typed is still there."""
    visit(browser, canned, "/settings")
    change(browser, "the old one", "a gate left open", sends=False)
    unauthenticated = (401, {"error": REFUSED | {"code": "unauthenticated", "message": "no"}}, {})
    canned.answers["PUT /api/users/ada/password"] = unauthenticated
    canned.answers["GET /api/users/me"] = unauthenticated
    find(browser, "#p1").send_keys(Keys.ENTER)
    says(browser, "What you typed is kept", "#signed-out")
    assert find(browser, "#p1").get_property("value") == "a gate left open"


def test_what_is_typed_can_be_shown(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/settings")
    press(browser, "form .check input")
    assert find(browser, "#p1").get_attribute("type") == "text"


# ---- refusals and hostile records ----


def test_settings_that_could_not_be_read(browser: Driver, canned: Canned) -> None:
    canned.refuse("GET /api/usage/me", 503, "busy", "the database is busy", after=2, retryable=True)
    visit(browser, canned, "/settings")
    says(browser, "Your settings could not be read. The database is busy.")
    canned.answers["GET /api/usage/me"] = records.usage()
    says(browser, "Your policy is lab")


def test_no_limits(browser: Driver, canned: Canned) -> None:
    unlimited = {name: None for name in records.usage()["quota"] if name != "name"}
    canned.answers["GET /api/usage/me"] = records.usage(quota={"name": "all"} | unlimited)
    visit(browser, canned, "/settings")
    says(browser, "3, no limit", "[data-quota]")


def test_hostile_records(browser: Driver, canned: Canned) -> None:
    canned.answers["GET /api/users/me"] = records.me(display_name=HOSTILE)
    canned.answers["GET /api/usage/me"] = records.usage(quota=records.usage()["quota"] | {"name": HOSTILE})
    visit(browser, canned, "/settings", size=NARROW)
    says(browser, "Your policy is <img", "[data-quota]")
    assert find(browser, "#dn").get_property("value") == HOSTILE
    assert (
        shlex.split(find(browser, "[data-key=save]").get_attribute("data-cmd") or "")[3] == "/api/users/ada"
    )
    assert overflow(browser) == 0
    assert not browser.find_elements(By.CSS_SELECTOR, "main img")
    assert not complaints(browser)


def test_an_address_without_a_page(browser: Driver, canned: Canned) -> None:
    """It names the address as text, and the way home; nothing is asked of the API."""
    visit(browser, canned, "/workspaces/x/<img src=x>/y", signed_in=False)
    says(browser, "There is nothing here", "h1")
    says(browser, "/workspaces/x/", "[data-path]")
    assert not browser.find_elements(By.CSS_SELECTOR, "main img")
    assert not canned.requests
    assert overflow(browser) == 0
    assert [line for line in complaints(browser) if "404" not in line] == []
    press(browser, "main .primary")
    until(browser, lambda: browser.current_url == f"{canned.url}/sign-in", "the sign-in screen")
