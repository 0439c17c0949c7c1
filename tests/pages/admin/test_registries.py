"""The registries, before a canned API."""

from __future__ import annotations

import pytest
from pages.admin import records
from pages.admin.records import HOSTILE
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.visiting import NARROW, WIDE, each_look, focused, overflow, visit
from pages.workspaces.test_workspaces import line, texts
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

LIST = "GET /api/images/allowlist"


@pytest.fixture
def registries(browser: Driver, canned: Canned) -> Driver:
    """The screen, before the mock-up's list."""
    records.administrator(canned)
    visit(browser, canned, "/admin/registries")
    says(browser, "quay.io", "tbody")
    return browser


def add(driver: Driver, text: str) -> None:
    """Type a registry and press Enter."""
    control = find(driver, "[name=registry]")
    control.send_keys(Keys.CONTROL + "a", Keys.BACKSPACE)
    control.send_keys(text + Keys.ENTER)


def row(name: str) -> str:
    """The selector of a row."""
    return f'tr[data-id="{name}"]'


@each_look
def test_as_the_mock_up_shows(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    records.administrator(canned)
    visit(browser, canned, "/admin/registries", theme=theme, size=size)
    says(browser, "plain HTTP or unknown certificate", row("10.20.0.5:5000"))
    says(browser, "jupyter/", row("quay.io/jupyter"))
    add(browser, "ghcr.io")
    says(browser, "1 change, not in force")
    says(browser, "sudo svc admin registry add ghcr.io", "[data-how] .cmd")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_no_permission(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/admin/registries")
    says(browser, "For administrators", "[data-no-permission]")
    assert not canned.sent(LIST)


def test_changes_become_the_commands(registries: Driver, canned: Canned) -> None:
    """One becomes its own command; several their own, and the whole list in one. Nothing is sent."""
    assert line(registries) == "svc image allowlist"
    press(registries, f"{row('docker.io')} [data-key=turn]")
    says(registries, "to go", row("docker.io"))
    assert texts(registries, "[data-how] .cmd code") == ["sudo svc admin registry remove docker.io"]
    press(registries, "[name=insecure]")
    assert line(registries) == "sudo svc admin registry remove docker.io"
    add(registries, "https://Registry.example:5000/Team/")
    says(registries, "to come", row("registry.example:5000/team"))
    commands = texts(registries, "[data-how] .cmd code")
    assert commands[:2] == [
        "sudo svc admin registry add registry.example:5000/team --insecure",
        "sudo svc admin registry remove docker.io",
    ]
    assert commands[2].startswith(
        'sudo svc admin registry set - <<< \'{ "registries": [ { "host": "registry.lab'
    )
    assert '"docker.io"' not in commands[2]
    press(registries, f"{row('docker.io')} [data-key=turn]")
    press(registries, f"{row('registry.example:5000/team')} [data-key=turn]")
    says(registries, "To change it", "[data-how-h]")
    until(registries, lambda: line(registries) == "svc image allowlist", "the line of the list")
    assert {request for request, _, _ in canned.requests if not request.startswith("GET ")} == set()


def test_the_line_follows_what_is_typed(registries: Driver) -> None:
    find(registries, "[name=registry]").send_keys("ghcr.io/nvidia")
    until(registries, lambda: line(registries) == "sudo svc admin registry add ghcr.io/nvidia", "the line")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "A host and perhaps a port"),
        ("quay.io:port", "A host and perhaps a port"),
        ("quay.io/a b", "A path has"),
        ("quay.io/../x", "A path has"),
        ("docker.io", "docker.io is on the list."),
        ("quay.io/jupyter/", "quay.io/jupyter is on the list."),
    ],
)
def test_what_is_no_registry_says_so(registries: Driver, text: str, words: str) -> None:
    add(registries, text)
    says(registries, words, ".field-error")
    assert focused(registries) == "registry"
    assert texts(registries, "[data-how-h]") == ["To change it"]


def test_a_change_of_the_transport(registries: Driver) -> None:
    """Adding one that is allowed already changes only that."""
    add(registries, "10.20.0.5:5000")
    says(registries, "to change", row("10.20.0.5:5000"))
    assert texts(registries, "[data-how] .cmd code") == ["sudo svc admin registry add 10.20.0.5:5000"]


def test_the_page_sees_when_it_is_done(registries: Driver, canned: Canned) -> None:
    add(registries, "ghcr.io")
    says(registries, "1 change, not in force")
    until(registries, lambda: canned.streams, "the stream")
    fresh = {"host": "ghcr.io", "path_prefix": "", "insecure": False}
    canned.answers[LIST] = {"items": [*records.allowlist(), fresh]}
    canned.event("registries.changed")
    says(registries, "To change it", "[data-how-h]")
    says(registries, "HTTPS", row("ghcr.io"))
    assert find(registries, "[data-said]").get_property("textContent") == "The changes are in force"


def test_an_empty_list(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    canned.answers[LIST] = {"items": []}
    visit(browser, canned, "/admin/registries")
    says(browser, "No registry is allowed", ".empty")
    add(browser, "quay.io")
    until(browser, lambda: not find(browser, "[data-none]").is_displayed(), "the list")


def test_a_list_that_would_be_empty(registries: Driver) -> None:
    for name in texts(registries, "tbody tr .name"):
        press(registries, f"{row(name + '/jupyter' if name == 'quay.io' else name)} [data-key=turn]")
    says(registries, "Nothing would be allowed then")


def test_hostile_names_are_text(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    canned.answers[LIST] = {"items": [{"host": HOSTILE, "path_prefix": "x" * 200, "insecure": True}]}
    for size in (WIDE, NARROW):
        visit(browser, canned, "/admin/registries", size=size)
        press(browser, "[data-key=turn]")
        says(browser, "1 change, not in force")
        add(browser, HOSTILE)
        assert not browser.find_elements(By.CSS_SELECTOR, "main img, main script")
        assert overflow(browser) == 0
        assert not complaints(browser)
