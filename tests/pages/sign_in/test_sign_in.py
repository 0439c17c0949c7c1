"""The sign-in screen in all its states."""

from __future__ import annotations

import pytest
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.visiting import each_look, focused, overflow, visit
from selenium.webdriver.common.keys import Keys


def sign_in(driver: Driver, name: str = "ada", password: str = "three kites above the weir") -> None:
    """Fill in the form and send it, by keyboard alone."""
    user = find(driver, "[name=username]")
    user.clear()
    user.send_keys(name + Keys.TAB)
    driver.switch_to.active_element.send_keys(password + Keys.ENTER)


@each_look
def test_the_form(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    visit(browser, canned, "/sign-in", signed_in=False, theme=theme, size=size)
    says(browser, "Service password")
    says(browser, "svc 0.1.0, cbb2249")
    assert focused(browser) == "username"
    assert overflow(browser) == 0
    ground = find(browser, "body").value_of_css_property("background-color")
    assert ("244" in ground) == (theme == "light")
    assert not complaints(browser)


def test_signing_in_leads_to_where_one_was_going(browser: Driver, canned: Canned) -> None:
    """The secret goes into this origin's storage, and comes with every request from then on."""
    visit(browser, canned, "/workspaces", signed_in=False)
    sign_in(browser)
    says(browser, "train-7b")
    ((body, _),) = canned.sent("POST /api/auth/login")
    assert body == {"username": "ada", "password": "three kites above the weir"}
    assert {headers["X_SVC_SESSION"] for _, headers in canned.sent("GET /api/workspaces")} == {"canned"}
    assert not complaints(browser)


@pytest.mark.parametrize(
    "next_",
    [
        "//evil.example/",
        "https://evil.example/",
        "/\\evil.example",
        "/.//evil.example/",
        "/%252e//evil.example/",
        "javascript:alert(1)",
        "/sign-in",
    ],
)
def test_nobody_is_sent_elsewhere(browser: Driver, canned: Canned, next_: str) -> None:
    visit(browser, canned, f"/sign-in?next={next_}", signed_in=False)
    sign_in(browser)
    until(browser, lambda: browser.current_url == f"{canned.url}/workspaces", "the first page")


def test_a_wrong_password(browser: Driver, canned: Canned) -> None:
    """The API's words; the name is kept, the password is typed anew."""
    canned.refuse("POST /api/auth/login", 401, "unauthenticated", "the name or the password is wrong")
    visit(browser, canned, "/sign-in", signed_in=False)
    sign_in(browser)
    says(browser, "The name or the password is wrong.", ".notice[role=alert]")
    says(browser, "unauthenticated, req-5b1c09aa41", ".notice .code")
    assert find(browser, "[name=username]").get_property("value") == "ada"
    assert find(browser, "[name=password]").get_property("value") == ""
    assert focused(browser) == "password"


def test_too_many_tries(browser: Driver, canned: Canned) -> None:
    """When the login opens again, and that the host itself is not closed."""
    canned.refuse("POST /api/auth/login", 429, "too_many_requests", "wait", after=600, retryable=True)
    visit(browser, canned, "/sign-in", signed_in=False, theme="dark")
    sign_in(browser)
    says(browser, "The login opens again at")
    says(browser, "svc ws list works without a password")
    assert find(browser, ".notice time").get_attribute("title").endswith("UTC")


def test_a_refusal_with_a_command(browser: Driver, canned: Canned) -> None:
    canned.refuse(
        "POST /api/auth/login",
        403,
        "password_reset_required",
        "too short",
        hint="sudo svc admin set-password ada",
    )
    visit(browser, canned, "/sign-in", signed_in=False)
    sign_in(browser)
    says(browser, "sudo svc admin set-password ada", ".notice .cmd code")


def test_no_answer(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/sign-in", signed_in=False)
    find(browser, "[name=username]")
    canned.break_off("POST /api/auth/login")
    sign_in(browser)
    says(browser, "The service does not answer.")


def test_no_password_yet(browser: Driver, canned: Canned) -> None:
    """The commands of whoever sets one, for the name that was typed; quoted where a shell needs it."""
    visit(browser, canned, "/sign-in", signed_in=False)
    press(browser, "details.more summary")
    find(browser, "[name=username]").send_keys("ada; rm -rf /")
    says(browser, "sudo svc admin set-password 'ada; rm -rf /'")
    says(browser, "sudo svc admin tls-fingerprint")


def test_signed_in_already(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/sign-in")
    says(browser, "train-7b")
