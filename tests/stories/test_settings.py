"""The settings of the installed service: what one side does, browser or command line, the other sees."""

from __future__ import annotations

import json
import shlex
import ssl
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from e2e.installation import PASSWORD, Call, Service, run
from e2e.surroundings import must
from pages.chromium import Driver, complaints, find, press, says, until
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from stories.conftest import USER

FRESH = "eleven grey stones under a gate"
CONTEXT = ssl._create_unverified_context()


@pytest.fixture
def signed_in(browser: Driver, origin: str, svc: Call) -> Iterator[Driver]:
    """The settings, in a browser that was never there and has just signed in, as the only one."""
    must(svc("api", "DELETE", "/api/auth/sessions"))
    browser.set_window_size(1440, 900)
    browser.get(f"{origin}/api/version")
    browser.execute_script("localStorage.clear()")
    browser.delete_all_cookies()
    complaints(browser)
    browser.get(f"{origin}/settings")
    sign_in(browser)
    says(browser, USER, "[data-facts]")
    yield browser
    browser.get("about:blank")


def sign_in(driver: Driver, password: str = PASSWORD.strip()) -> None:
    """By keyboard alone."""
    find(driver, "[name=username]").send_keys(USER + Keys.TAB)
    driver.switch_to.active_element.send_keys(password + Keys.ENTER)


def line(driver: Driver) -> str:
    """The command at the foot, with nothing under the pointer."""
    ActionChains(driver).move_to_element(find(driver, "h1")).perform()
    return str(driver.execute_script("return document.querySelector('[data-command]').textContent"))


def typed(svc: Call, command: str, **more: Any) -> Any:
    """The outcome of a command that the page shows, as a shell would take it."""
    words = shlex.split(command)
    assert words[0] == "svc"
    return must(svc(*words[1:], **more))


def ask(
    origin: str, method: str, path: str, headers: dict[str, str], body: Any = None
) -> tuple[int, Any, Any]:
    """One request of another client."""
    data = None if body is None else json.dumps(body).encode()
    headers = headers | ({"Content-Type": "application/json"} if data else {})
    request = urllib.request.Request(f"{origin}{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request, context=CONTEXT) as answer:
            return answer.status, answer.headers, json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, json.loads(error.read() or b"null")


def another_browser(origin: str, password: str = PASSWORD.strip()) -> dict[str, str]:
    """The headers of a session that another browser has begun."""
    agent = {"User-Agent": "Mozilla/5.0 (Windows NT 10.0) Gecko/20100101 Firefox/140.0"}
    status, headers, body = ask(
        origin, "POST", "/api/auth/login", agent, {"username": USER, "password": password}
    )
    assert status == 200, body
    return agent | {"Cookie": headers["Set-Cookie"].split(";")[0], "X-Svc-Session": body["session_secret"]}


def test_colours_stay(signed_in: Driver, origin: str) -> None:
    press(signed_in, ".seg label:has([value=dark])")
    find(signed_in, "html[data-theme=dark]")
    signed_in.refresh()
    find(signed_in, "html[data-theme=dark]")
    signed_in.get(f"{origin}/workspaces")
    find(signed_in, "html[data-theme=dark]")
    assert not complaints(signed_in)


def test_a_name(signed_in: Driver, svc: Call) -> None:
    """The line, run by the command line, does what Save does."""
    name = find(signed_in, "#dn")
    name.send_keys(Keys.CONTROL, "a")  # another story may have given one
    name.send_keys(Keys.NULL, "Ada's one")
    press(signed_in, "[data-key=save]")
    says(signed_in, "Saved", ".toasts")
    assert must(svc("whoami", "--json")).json()["display_name"] == "Ada's one"
    name.send_keys(Keys.CONTROL, "a")  # clear() is no input: the page, which reads anew, may fill it again
    name.send_keys(Keys.NULL, "Ada's other")
    typed(svc, line(signed_in))
    assert must(svc("whoami", "--json")).json()["display_name"] == "Ada's other"


def test_a_token_from_its_line_to_its_end(signed_in: Driver, origin: str, svc: Call) -> None:
    """Made by the line, seen at once, used from elsewhere, revoked; the list of the command line agrees."""
    press(signed_in, "[data-tab-of=settings_tokens]")
    says(signed_in, "No tokens", "[data-list]")
    find(signed_in, "#tn").send_keys("my laptop")
    days = find(signed_in, "#te")
    days.clear()
    days.send_keys("5")
    secret = typed(svc, line(signed_in)).out.strip()
    says(signed_in, "my laptop", "tbody")
    says(signed_in, "make its successor now", "tbody .state.warn + .muted")
    says(signed_in, "1", ".side [data-place=settings] .count")
    bearer = {"Authorization": f"Bearer {secret}"}
    assert ask(origin, "GET", "/api/workspaces", bearer)[0] == 200
    assert "my laptop" in must(svc("token", "list")).out

    press(signed_in, "[data-key^=revoke-]")
    press(signed_in, "dialog[open] button[value=confirm]")
    says(signed_in, "No tokens", "[data-list]")
    assert "my laptop" not in must(svc("token", "list")).out
    assert ask(origin, "GET", "/api/workspaces", bearer)[0] == 401

    must(svc("token", "create", "--name", "ci"))
    command = find(signed_in, "[data-key^=revoke-]").get_attribute("data-cmd")
    assert command == "svc token revoke ci"
    typed(svc, command)
    says(signed_in, "No tokens", "[data-list]")
    typed(svc, "svc token list")


def test_other_sessions_end(signed_in: Driver, origin: str, svc: Call) -> None:
    """One by its button, one by its button's command, the rest together; this browser's goes on."""
    others = [another_browser(origin) for _ in range(4)]
    press(signed_in, "[data-tab-of=settings_sessions]")
    says(signed_in, "this browser and 4 others", "[data-count]")
    says(signed_in, "Firefox on Windows", "tbody")
    alive = [headers for headers in others if ask(origin, "GET", "/api/auth/session", headers)[0] == 200]
    assert len(alive) == 4

    def left() -> int:
        return sum(ask(origin, "GET", "/api/auth/session", headers)[0] == 200 for headers in others)

    press(signed_in, "[data-key^=end-ses]")
    press(signed_in, "dialog[open] button[value=confirm]")
    says(signed_in, "this browser and 3 others", "[data-count]")
    assert left() == 3
    typed(svc, find(signed_in, "[data-key^=end-ses]").get_attribute("data-cmd") or "")
    assert left() == 2
    signed_in.refresh()
    says(signed_in, "this browser and 2 others", "[data-count]")
    press(signed_in, "[data-key=end-all]")
    press(signed_in, "dialog[open] button[value=confirm]")
    says(signed_in, "this browser alone", "[data-count]")
    assert left() == 0
    typed(svc, line(signed_in))


@pytest.fixture
def own_password(service: Service) -> Iterator[None]:
    """Afterwards the password is what it was."""
    yield
    must(run("root", "admin", "set-password", USER, env=service.env, stdin=PASSWORD))


def test_a_new_password(signed_in: Driver, origin: str, svc: Call, own_password: None) -> None:
    """All sessions and tokens end, and this browser goes on; the old one is of no use."""
    secret = must(svc("token", "create", "--name", "ends")).out.strip()
    other = another_browser(origin)
    says(signed_in, "your 1 API token", "[data-ends]")
    find(signed_in, "#p0").send_keys("not the present one")
    find(signed_in, "#p1").send_keys(FRESH + Keys.ENTER)
    says(signed_in, "is not the current password", "#p0-e")
    find(signed_in, "#p0").clear()
    find(signed_in, "#p0").send_keys(PASSWORD.strip())
    find(signed_in, "#p1").send_keys(Keys.ENTER)
    says(signed_in, "The password has been changed.", "[data-changed]")
    assert ask(origin, "GET", "/api/workspaces", {"Authorization": f"Bearer {secret}"})[0] == 401
    assert ask(origin, "GET", "/api/auth/session", other)[0] == 401
    until(signed_in, lambda: "token" not in find(signed_in, "[data-ends]").text, "no token left")
    assert not signed_in.find_elements(By.ID, "signed-out")
    press(signed_in, "[data-tab-of=settings_sessions]")
    says(signed_in, "this browser alone", "[data-count]")
    refused = {"username": USER, "password": PASSWORD.strip()}
    assert ask(origin, "POST", "/api/auth/login", {}, refused)[0] == 401
    another_browser(origin, FRESH)


def test_go_to_or_run(signed_in: Driver, workspaces: list[str], svc: Call, origin: str) -> None:
    """By keyboard alone: start one, and go to the other's page; each with its command."""
    chain = ActionChains(signed_in)
    chain.key_down(Keys.CONTROL).send_keys("k").key_up(Keys.CONTROL).perform()
    says(signed_in, "first", ".palette [aria-label=Workspaces]")
    field = find(signed_in, ".palette input")
    field.send_keys("start second")
    says(signed_in, "$ svc ws start second", ".palette .foot")
    field.send_keys(Keys.ENTER)
    says(signed_in, "second: Started", ".toasts")
    assert must(svc("ws", "get", "second", "--json")).json()["status"] == "running"
    chain.key_down(Keys.CONTROL).send_keys("k").key_up(Keys.CONTROL).perform()
    find(signed_in, ".palette input").send_keys("first")
    says(signed_in, "$ svc ws get first", ".palette .foot")
    typed(svc, find(signed_in, ".palette .cmdline").text.removeprefix("$ "))
    find(signed_in, ".palette input").send_keys(Keys.ENTER)
    until(signed_in, lambda: signed_in.current_url == f"{origin}/workspaces/first", "its page")


def test_an_address_that_nothing_has(signed_in: Driver, origin: str) -> None:
    signed_in.get(f"{origin}/no/such/page")
    says(signed_in, "There is nothing here", "h1")
    press(signed_in, "main .primary")
    until(signed_in, lambda: signed_in.current_url == f"{origin}/workspaces", "the list")
