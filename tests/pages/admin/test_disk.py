"""What users' disks hold, before a canned API."""

from __future__ import annotations

from typing import Any

import pytest
from pages.admin import records
from pages.admin.records import HOSTILE, disk, disks
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.visiting import NARROW, WIDE, each_look, overflow, visit
from pages.workspaces.test_workspaces import line, texts
from selenium.webdriver.common.by import By

LIST, MEASURE = "GET /api/admin/disk", "POST /api/admin/disk/measure"
ADA, RADIA = disk("ada", 41, 0, 2.2, 0.04, 1, 96.5), disk("radia", 3, 0, 0, 0, 0, 1)
BUTTON = "[data-key=measure]"


@pytest.fixture
def of_two(browser: Driver, canned: Canned) -> Driver:
    """The screen of two users who were measured."""
    records.administrator(canned)
    canned.answers[LIST] = disks(ADA, RADIA)
    visit(browser, canned, "/admin/disk")
    says(browser, "All 2 users", "tbody")
    return browser


def cells(driver: Driver, name: str) -> list[str]:
    """The texts of a row."""
    return texts(driver, f'tr[data-id="{name}"] td')


@each_look
def test_all_states(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    records.administrator(canned)
    visit(browser, canned, "/admin/disk", theme=theme, size=size)
    says(browser, "All 6 users", "tbody")
    says(browser, "6 users, 710 GiB, measuring, 1 to go", ".lede")
    assert find(browser, ".tabs [aria-current]").text == "Disks"
    assert line(browser) == "sudo svc admin disk"
    for text in ("no limit", "Measuring", "Failed", "Incomplete", "never", "oldest 2 d ago"):
        says(browser, text, "tbody")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_figures_and_sums(of_two: Driver) -> None:
    """As `svc admin disk` has them: the largest first, the sums of all last."""
    assert cells(of_two, "ada")[1:9] == [
        "141 GiB", "41 GiB", "0", "2.2 GiB", "41 MiB", "1 GiB", "96.5 GiB", "60 GiB",
    ]  # fmt: skip
    assert cells(of_two, "(all)")[:4] == ["All 2 users", "145 GiB", "44 GiB", "0"]
    assert texts(of_two, "tbody .name") == ["ada", "radia"]
    assert find(of_two, 'tr[data-id="ada"] [data-l=Files]').get_attribute("title") == "51204 names"


def test_what_is_missing_is_said_with_the_command(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    visit(browser, canned, "/admin/disk")
    says(browser, "The agent did not answer in 600 s. The figures are those of the last time.", "tbody")
    says(browser, "It is more than that", 'tr[data-id="hedy lack"]')
    code = find(browser, 'tr[data-id="katherine lack"] .cmd code')
    assert code.text == "sudo svc admin disk --measure katherine"
    press(browser, "[data-filter=part]")
    until(browser, lambda: texts(browser, "tbody .name") == ["hedy", "katherine"], "two rows")
    assert not browser.find_elements(By.CSS_SELECTOR, '[data-id="(all)"]')
    press(browser, "[data-filter=never]")
    until(browser, lambda: texts(browser, "tbody .name") == ["alan"], "one row")


def test_measure_again(of_two: Driver, canned: Canned) -> None:
    """All are asked for; rows keep their places until the last one is done, and are sorted then."""
    assert find(of_two, BUTTON).get_attribute("data-cmd") == "sudo svc admin disk --measure"
    grown = disk("radia", 300, 0, 0, 0, 0, 1, hours=0)

    def begin() -> tuple[int, Any, dict[str, str]]:
        canned.answers[LIST] = disks(grown, ADA | {"waiting": True})
        return 202, {"waiting": 2}, {}

    canned.answers[MEASURE] = begin
    press(of_two, BUTTON)
    says(of_two, "Measuring", 'tr[data-id="ada"]')
    assert canned.sent(MEASURE)[0][0] == {"users": []}
    assert texts(of_two, "tbody .name") == ["ada", "radia"]
    assert find(of_two, BUTTON).get_attribute("aria-busy") == "true"
    canned.answers[LIST] = disks(grown, ADA)
    until(of_two, lambda: texts(of_two, "tbody .name") == ["radia", "ada"], "the largest first")
    until(of_two, lambda: find(of_two, BUTTON).get_attribute("aria-busy") is None, "a button at rest")
    press(of_two, BUTTON)
    until(of_two, lambda: len(canned.sent(MEASURE)) == 2, "another request")


def test_a_refusal(of_two: Driver, canned: Canned) -> None:
    canned.refuse(MEASURE, 503, "storage_full", "the disk is full", hint="sudo svc admin doctor")
    press(of_two, BUTTON)
    says(of_two, "Nothing is measured. The disk is full.", "[data-answer]")
    says(of_two, "sudo svc admin doctor", "[data-answer] .cmd")
    assert find(of_two, BUTTON).get_attribute("aria-busy") is None


def test_nobody_was_measured(browser: Driver, canned: Canned) -> None:
    """The very command, and the table once it has begun."""
    records.administrator(canned)
    canned.answers[LIST] = disks(disk("ada"), disk("alan"))
    visit(browser, canned, "/admin/disk")
    says(browser, "sudo svc admin disk --measure", ".empty .cmd")
    says(browser, "2 users, not measured yet", ".lede")

    def begin() -> tuple[int, Any, dict[str, str]]:
        canned.answers[LIST] = disks(disk("ada", waiting=True), disk("alan"))
        return 202, {"waiting": 1}, {}

    canned.answers[MEASURE] = begin
    press(browser, BUTTON)
    says(browser, "Measuring", 'tr[data-id="ada"]')
    assert not browser.find_elements(By.CSS_SELECTOR, ".empty")


def test_several_pages_of_users(browser: Driver, canned: Canned) -> None:
    """All are read; the sums are the service's own."""
    records.administrator(canned)
    users = [disk(f"user-{number:04}", 1, 0, 0, 0, 0, 0) for number in range(201)]
    whole = disks(*users)

    def answer() -> dict[str, Any]:
        is_first = "offset=0" in canned.present.environ["QUERY_STRING"]
        items = users[:200] if is_first else users[200:]
        return whole | {"items": items, "next_offset": 200 if is_first else None}

    canned.answers[LIST] = answer
    visit(browser, canned, "/admin/disk")
    says(browser, "201 users, 201 GiB", ".lede")
    says(browser, "200 of 201 rows", "[data-more]")
    says(browser, "All 201 users", "tbody tr:last-child")


def test_no_permission(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/admin/disk")
    says(browser, "For administrators", "[data-no-permission]")
    assert not canned.sent(LIST)


def test_hostile_texts_are_text(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    canned.answers[LIST] = disks(
        disk(HOSTILE, 1, 0, 0, 0, 0, 4, error=HOSTILE), disk("x" * 32, *[2**20] * 6, files=2**50)
    )
    for size in (WIDE, NARROW):
        visit(browser, canned, "/admin/disk", size=size)
        says(browser, "onerror=alert(1)", ".sub")
        assert overflow(browser) == 0
        assert "onerror" not in find(browser, ".sub .cmd").text
        assert not browser.find_elements(By.CSS_SELECTOR, "main img, main script")
        assert not complaints(browser)
