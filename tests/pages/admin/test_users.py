"""The accounts, before a canned API."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pages.admin import records
from pages.admin.records import HOSTILE, account
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.records import page
from pages.visiting import NARROW, WIDE, focused, overflow, visit
from pages.workspaces.test_workspaces import line, texts
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

ADMINISTRATION = ["Users", "Template review2", "Registries", "GPUs1", "Audit", "Host"]


@pytest.fixture
def users(browser: Driver, canned: Canned) -> Driver:
    """The screen, before the mock-up's accounts."""
    records.administrator(canned)
    visit(browser, canned, "/admin/users")
    says(browser, "Ada Lovelace", "tbody")
    return browser


def names(driver: Driver) -> list[str]:
    """The accounts in the list, from top to bottom."""
    return texts(driver, "tbody .name")


def menu(driver: Driver, name: str, label: str) -> None:
    """Open a row's menu and press an item of it."""
    press(driver, f'tr[data-id="{name}"] [data-key=more]')
    items = driver.find_elements(By.CSS_SELECTOR, f'tr[data-id="{name}"] details li > *')
    next(item for item in items if item.text.startswith(label)).click()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW, (1920, 1080)])
def test_as_the_mock_up_shows(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    records.administrator(canned)
    visit(browser, canned, "/admin/users", theme=theme, size=size)
    says(browser, "8 accounts, 1 administrator", ".lede")
    for name, text in {
        "ada": "2 sessions, 1 token",
        "alan": "Disabled",
        "grace": "administrator",
        "katherine": "closed: too short",
        "joan:1012": "Retired",
        "hedy": "Cleanup required",
        "hedy remedy": "sudo svc admin create-user hedy",
        "katherine remedy": "sudo svc admin set-password katherine",
        "joan:1012 remedy": "sudo svc admin delete-user joan:1012",
    }.items():
        says(browser, text, f'tr[data-id="{name}"]')
    assert texts(browser, 'tr[data-id="ada"] .chip-n') == ["0", "1", "4"]
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_the_navigation_of_administrators(users: Driver) -> None:
    """In the sidebar and in the drawer, with what should be looked at."""
    shown = texts(users, ".side [data-admin] a .t, .side [data-admin] .count")
    words = ["Users", "Template", "2", "Registries", "GPUs", "1", "Audit", "Host"]
    assert [text.split()[0].removesuffix("templates").removesuffix("running") for text in shown] == words
    assert find(users, ".side a[href='/admin/users']").get_attribute("aria-current") == "page"
    assert find(users, ".side [data-place=admin-gpus] .count").get_attribute("title") == (
        "1 running workspace lost a GPU"
    )


def test_no_permission(browser: Driver, canned: Canned) -> None:
    """Others have no such navigation, are told so, and nothing is asked for them."""
    visit(browser, canned, "/admin/users")
    says(browser, "For administrators", "[data-no-permission]")
    says(browser, "sudo svc admin edit-user ada --superuser", "[data-no-permission] .cmd")
    assert not [one for one in browser.find_elements(By.CSS_SELECTOR, "[data-admin]") if one.is_displayed()]
    assert not canned.sent("GET /api/admin/users")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_who_is_no_administrator_any_more(users: Driver, canned: Canned) -> None:
    """The role was taken away meanwhile: the next reading is refused, and the page says so."""
    until(users, lambda: canned.streams, "the stream")
    canned.refuse("GET /api/admin/users", 403, "admin_only", "this is for administrators")
    canned.event("gap")
    says(users, "This account is none any more", "[data-no-permission]")


def test_while_it_loads_and_when_it_fails(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    come = threading.Event()

    def late() -> tuple[int, Any, dict[str, str]]:
        come.wait(20)
        return 503, {"error": records.away()}, {"Retry-After": "2"}

    canned.answers["GET /api/admin/users"] = late
    visit(browser, canned, "/admin/users")
    find(browser, "section[aria-busy=true][aria-label='Loading accounts'] .skel")
    come.set()
    says(browser, "The accounts could not be read. The database is busy.")
    says(browser, "by itself in")
    canned.answers["GET /api/admin/users"] = page(records.accounts())
    says(browser, "Ada Lovelace")


def test_search_and_filters(users: Driver) -> None:
    """By name and person; the line follows what the API can do too."""
    find(users, "[data-search]").send_keys("love")
    until(users, lambda: names(users) == ["ada"], "the search")
    assert line(users) == "svc api GET '/api/admin/users?q=love'"
    find(users, "[data-search]").send_keys(Keys.BACKSPACE * 4)
    press(users, "[data-filter=need]")
    until(users, lambda: names(users) == ["hedy", "katherine", "joan:1012"], "who needs something")
    press(users, "[data-filter=disabled]")
    until(users, lambda: names(users) == ["alan"], "the disabled one")
    find(users, "[data-search]").send_keys("ada")
    says(users, "No account matches.")


def test_edit(users: Driver, canned: Canned) -> None:
    """Only what changed is sent; the line follows the form; an error of a field is beside it."""
    press(users, '[data-id="ada"] [data-key=edit]')
    says(users, "Edit ada", "dialog[open]")
    says(users, "At most 12 workspaces, 4 running, 4 GPUs, 64 CPUs, 512 GiB memory", "dialog[open]")
    says(users, "sudo svc admin edit-user ada --superuser", "dialog[open]")
    person = find(users, "dialog[open] [name=display_name]")
    person.clear()
    person.send_keys("Augusta Ada")
    says(users, """svc api PATCH /api/users/ada --body '{ "display_name": "Augusta Ada" }'""", "dialog[open]")
    find(users, "dialog[open] [name=quota]").send_keys("default")
    says(users, '"quota": null', "dialog[open] .cmd")
    wrong = {"field": "display_name", "code": "invalid", "message": "must not contain control characters"}
    canned.refuse("PATCH /api/users/ada", 422, "validation_failed", "display_name: no", fields=[wrong])
    press(users, "dialog[open] [data-key=confirm]")
    says(users, "must not contain control characters", "dialog[open] .field:has([data-field=display_name])")
    assert focused(users) == "display_name"
    canned.answers["PATCH /api/users/ada"] = account("ada", "Augusta Ada", superuser=False)
    canned.answers["GET /api/admin/users"] = page([account("ada", "Augusta Ada"), *records.accounts()[1:]])
    find(users, "dialog[open] [name=display_name]").send_keys(Keys.ENTER)
    until(users, lambda: not users.find_elements(By.CSS_SELECTOR, "dialog[open]"), "no dialog")
    says(users, "Augusta Ada", '[data-id="ada"]')
    assert canned.sent("PATCH /api/users/ada")[-1][0] == {"display_name": "Augusta Ada", "quota": None}
    until(users, lambda: focused(users) == "Edit ada", "the focus on what opened it")


def test_a_refused_edit_keeps_what_was_typed(users: Driver, canned: Canned) -> None:
    canned.refuse(
        "PATCH /api/users/emmy", 422, "validation_failed", "quota: there is no policy lab",
        hint="sudo svc admin quota list",
    )  # fmt: skip
    press(users, '[data-id="emmy"] [data-key=edit]')
    find(users, "dialog[open] [name=quota]").send_keys("lab")
    press(users, "dialog[open] [data-key=confirm]")
    says(users, "quota: there is no policy lab.", "dialog[open] [role=alert]")
    says(users, "sudo svc admin quota list", "dialog[open] [role=alert] .cmd")
    assert find(users, "dialog[open] [name=quota]").get_property("value") == "lab"
    users.switch_to.active_element.send_keys(Keys.ESCAPE)
    until(users, lambda: not users.find_elements(By.CSS_SELECTOR, "dialog[open]"), "no dialog")


def test_disable_and_enable(users: Driver, canned: Canned) -> None:
    """Disabling says first what ends and what stays; enabling needs no question."""
    menu(users, "ada", "Disable")
    says(users, "Its sessions and tokens end at once", "dialog[open]")
    says(users, "What runs goes on: 3 workspaces", "dialog[open]")
    assert focused(users) == "Cancel"
    users.switch_to.active_element.send_keys(Keys.ESCAPE)
    until(users, lambda: not users.find_elements(By.CSS_SELECTOR, "dialog[open]"), "no dialog")
    assert not canned.sent("PATCH /api/users/ada")

    def disable() -> dict[str, Any]:
        off = records.accounts()[0] | {"disabled": True, "status": "DISABLED"}
        canned.answers["GET /api/admin/users"] = page([off, *records.accounts()[1:]])
        return off

    canned.answers["PATCH /api/users/ada"] = disable
    menu(users, "ada", "Disable")
    press(users, "dialog[open] button[value=confirm]")
    says(users, "Disabled", '[data-id="ada"]')
    assert canned.sent("PATCH /api/users/ada")[0][0] == {"disabled": True}

    def enable() -> dict[str, Any]:
        canned.answers["GET /api/admin/users"] = page(records.accounts())
        return records.accounts()[0]

    canned.answers["PATCH /api/users/ada"] = enable
    press(users, '[data-id="ada"] [data-key=enable]')
    says(users, "Ready", '[data-id="ada"]')
    assert canned.sent("PATCH /api/users/ada")[-1][0] == {"disabled": False}


def test_what_is_refused_says_why(users: Driver, canned: Canned) -> None:
    """The own account not at all; the last administrator by the API, with the command that does it."""
    press(users, '[data-id="grace"] [data-key=more]')
    item = find(users, '[data-id="grace"] details button[aria-disabled=true]')
    assert item.text.split("\n") == ["Disable", "your own account"]
    item.click()
    assert not users.find_elements(By.CSS_SELECTOR, "dialog[open]")
    canned.refuse(
        "PATCH /api/users/emmy", 409, "conflict", "emmy is the last administrator besides root",
        hint="sudo svc admin edit-user emmy --disable --last-administrator",
    )  # fmt: skip
    menu(users, "emmy", "Disable")
    press(users, "dialog[open] button[value=confirm]")
    says(
        users,
        "emmy was not disabled. emmy is the last administrator besides root.",
        "[data-answer] [role=alert]",
    )
    says(users, "sudo svc admin edit-user emmy --disable --last-administrator", "[data-answer] .cmd")
    press(users, "[data-answer] [data-key=dismiss]")
    until(users, lambda: not users.find_elements(By.CSS_SELECTOR, "[data-answer] .notice"), "no notice")


@pytest.mark.parametrize(
    ("label", "command"),
    [
        ("Set a password", "sudo svc admin set-password ada"),
        ("Make an administrator", "sudo svc admin edit-user ada --superuser"),
        ("Revoke all tokens", "sudo svc admin revoke-tokens ada"),
        ("Delete the account", "sudo svc admin delete-user ada"),
    ],
)
def test_what_the_host_alone_does(users: Driver, label: str, command: str) -> None:
    """The exact command, and why it is not done here."""
    menu(users, "ada", label)
    says(users, command, "dialog[open] .cmd")
    assert focused(users) == "Close"
    users.switch_to.active_element.send_keys(Keys.ENTER)
    until(users, lambda: not users.find_elements(By.CSS_SELECTOR, "dialog[open]"), "no dialog")
    assert focused(users) == "More for ada"


def test_a_new_account_is_made_on_the_host(users: Driver) -> None:
    """The form makes the line; a name that no account can have is said at once."""
    press(users, "[data-key=new]")
    says(users, "sudo svc admin create-user NAME", "dialog[open] .cmd")
    users.switch_to.active_element.send_keys("Ada L")
    says(users, "The name of a Linux account", "dialog[open] [role=status]")
    says(users, "sudo svc admin create-user NAME", "dialog[open] .cmd")
    find(users, "dialog[open] [name=name]").clear()
    find(users, "dialog[open] [name=name]").send_keys("first.last@example.org")
    says(users, "sudo svc admin create-user first.last@example.org", "dialog[open] .cmd")
    find(users, "dialog[open] [name=name]").clear()
    find(users, "dialog[open] [name=name]").send_keys("ada")
    find(users, "dialog[open] [name=display_name]").send_keys("Ada O'Love")
    press(users, "dialog[open] [name=superuser]")
    says(
        users,
        "sudo svc admin create-user ada --display-name 'Ada O'\\''Love' --superuser",
        "dialog[open] .cmd",
    )


def test_the_workspaces_of_an_account(users: Driver, canned: Canned) -> None:
    """That they are there, and an end to them; what is inside is the owner's alone."""
    one = records.workspace("train", "running", owner="ada", allowed_actions=["stop", "delete"])
    canned.answers["GET /api/workspaces"] = page([one])
    menu(users, "ada", "Workspaces of ada")
    says(users, "train", "dialog[open]")
    assert len(canned.sent("GET /api/workspaces")) == 1

    def stop() -> dict[str, Any]:
        canned.answers["GET /api/workspaces"] = page(
            [one | {"status": "stopped", "allowed_actions": ["delete"]}]
        )
        return one

    canned.answers["POST /api/workspaces/ws-train/stop"] = stop
    press(users, "dialog[open] [aria-label='Stop train']")
    says(users, "Stop train of ada?", "dialog[data-ask]")
    says(users, "ada sees that an administrator stopped it.", "dialog[data-ask]")
    assert find(users, "dialog[data-ask] .cmd").text == "svc ws stop ws-train --owner ada"
    assert focused(users) == "Let it run"
    assert not canned.sent("POST /api/workspaces/ws-train/stop")
    press(users, "dialog[data-ask] button[value=confirm]")
    says(users, "stopped", "dialog[open]")


def test_hostile_names_are_text(browser: Driver, canned: Canned) -> None:
    """Nothing becomes mark-up, and no name that no account can have comes into a command for root."""
    records.administrator(canned)
    wild = account(
        HOSTILE,
        HOSTILE * 4,
        status="PROVISIONING_INCOMPLETE",
        note=HOSTILE,
        quota=HOSTILE,
        gpus=1,
        workspaces=1,
    )
    canned.answers["GET /api/admin/users"] = page([wild, *records.accounts()])
    for size in (WIDE, NARROW):
        visit(browser, canned, "/admin/users", size=size)
        says(browser, "Setup incomplete", "tbody")
        assert "sudo svc admin doctor" in texts(browser, "tbody .cmd code")
        assert not browser.find_elements(By.CSS_SELECTOR, "main img, main script")
        assert overflow(browser) == 0
        assert not complaints(browser)
    press(browser, "[data-key=edit]")
    says(browser, "Edit <img", "dialog[open]")
    assert overflow(browser) == 0


def test_many_accounts(browser: Driver, canned: Canned) -> None:
    """Not all are built: page by page, as the person asks."""
    records.administrator(canned)
    canned.answers["GET /api/admin/users"] = page([account(f"user-{number:04}") for number in range(1000)])
    visit(browser, canned, "/admin/users")
    says(browser, "1000 accounts, 0 administrators", ".lede")
    assert len(names(browser)) == 200
    says(browser, "200 of 1000 rows", "[data-more]")
    press(browser, "[data-key=more-rows]")
    until(browser, lambda: len(names(browser)) == 400, "more rows")
    find(browser, "[data-search]").send_keys("user-0999")
    until(browser, lambda: names(browser) == ["user-0999"], "the search, of all")


def test_by_keyboard_alone(users: Driver) -> None:
    find(users, "body").send_keys("jj")
    assert "alan" in users.switch_to.active_element.text
    users.switch_to.active_element.send_keys("/")
    assert focused(users) == "Search accounts"
    find(users, "[data-search]").send_keys(Keys.TAB)
    assert focused(users).startswith("All")


def test_buttons_wait_while_the_service_is_away(users: Driver, canned: Canned) -> None:
    until(users, lambda: canned.streams, "the stream")
    for request in ("GET /api/health", "GET /api/events"):
        canned.refuse(request, 503, "unavailable", "stopping", retryable=True)
    canned.event("restarting")
    canned.streams[0].end()
    find(users, '[data-id="ada"] [data-key=edit][aria-disabled=true]')
    press(users, '[data-id="ada"] [data-key=edit]')
    assert not users.find_elements(By.CSS_SELECTOR, "dialog[open]")
