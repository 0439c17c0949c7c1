"""The quotas, before a canned API."""

from __future__ import annotations

from typing import Any

import pytest
from pages.admin import records
from pages.admin.records import HOSTILE, account, quota
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.records import GIB, page
from pages.visiting import NARROW, WIDE, each_look, focused, overflow, visit
from pages.workspaces.test_workspaces import line, texts
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

LAB = "GET /api/admin/quotas"


@pytest.fixture
def quotas(browser: Driver, canned: Canned) -> Driver:
    """The screen, before the mock-up's quotas."""
    records.administrator(canned)
    visit(browser, canned, "/admin/quotas")
    says(browser, "course-2025", "tbody")
    return browser


def type_into(driver: Driver, name: str, text: str) -> None:
    """Replace the text of a field of the dialog."""
    control = find(driver, f"dialog[open] [name={name}]")
    control.send_keys(Keys.CONTROL + "a", Keys.BACKSPACE)
    control.send_keys(text)


@each_look
def test_as_the_mock_up_shows(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    records.administrator(canned)
    visit(browser, canned, "/admin/quotas", theme=theme, size=size)
    says(browser, "4 quotas", ".lede")
    for text in ("no limit", "512 GiB", "96"):
        says(browser, text, "tbody")
    assert find(browser, ".tabs [aria-current]").text == "Quotas"
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_no_permission(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/admin/quotas")
    says(browser, "For administrators", "[data-no-permission]")
    assert not canned.sent(LAB)


def test_edit(quotas: Driver, canned: Canned) -> None:
    """For whom it holds is named; the line is the request; who is over it already is named too."""
    press(quotas, '[data-id="lab"] [data-key=edit]')
    says(quotas, "Holds for ada, katherine, radia.", "dialog[open]")
    assert focused(quotas) == "max_workspaces"
    type_into(quotas, "max_gpus", "2")
    says(quotas, '"max_gpus": 2', "dialog[open] .cmd")
    says(quotas, "Over it now: ada holds 3 GPUs.", "dialog[open] [role=status]")
    type_into(quotas, "max_memory_bytes", "1.5")
    type_into(quotas, "max_image_bytes", "")
    type_into(quotas, "max_running", "many")
    press(quotas, "dialog[open] [data-key=confirm]")
    says(quotas, "A whole number, or empty for no limit.", "dialog[open] .field:has(#f-max_running)")
    assert focused(quotas) == "max_running"
    type_into(quotas, "max_running", "4")
    written = quota("lab", 3, max_workspaces=12, max_running=4, max_gpus=2, max_cpu=64.0)
    written["max_memory_bytes"] = int(1.5 * GIB)
    canned.answers["PUT /api/admin/quotas/lab"] = written
    quotas.switch_to.active_element.send_keys(Keys.ENTER)
    until(quotas, lambda: not quotas.find_elements(By.CSS_SELECTOR, "dialog[open]"), "no dialog")
    ((body, _),) = canned.sent("PUT /api/admin/quotas/lab")
    limits = {key: value for key, value in written.items() if key.startswith("max_")}
    assert body == limits
    until(quotas, lambda: focused(quotas) == "Edit lab", "the focus on what opened it")


def test_amounts_that_were_not_touched_stay_to_the_byte(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    odd = quota("odd", max_memory_bytes=1_234_567_891, max_cpu=1.25)
    canned.answers[LAB] = page([odd])
    canned.answers["PUT /api/admin/quotas/odd"] = odd
    visit(browser, canned, "/admin/quotas")
    press(browser, '[data-id="odd"] [data-key=edit]')
    press(browser, "dialog[open] [data-key=confirm]")
    sent = until(browser, lambda: canned.sent("PUT /api/admin/quotas/odd"), "the request")
    assert (sent[0][0]["max_memory_bytes"], sent[0][0]["max_cpu"]) == (1_234_567_891, 1.25)


def test_a_quota_that_was_changed_meanwhile(quotas: Driver, canned: Canned) -> None:
    """By somebody else: it is said, and replaced only when saved again."""
    press(quotas, '[data-id="lab"] [data-key=edit]')
    says(quotas, "Holds for", "dialog[open]")
    other = quota("lab", 3, max_gpus=6)
    canned.answers[LAB] = page([other])
    canned.answers["PUT /api/admin/quotas/lab"] = other
    press(quotas, "dialog[open] [data-key=confirm]")
    says(quotas, "Lab was changed since this form was opened: GPUs 6.", "dialog[open] [role=alert]")
    assert not canned.sent("PUT /api/admin/quotas/lab")
    press(quotas, "dialog[open] [data-key=confirm]")
    until(quotas, lambda: canned.sent("PUT /api/admin/quotas/lab"), "the request")


def test_a_new_quota(quotas: Driver, canned: Canned) -> None:
    press(quotas, "[data-key=new]")
    says(quotas, "/api/admin/quotas/NAME", "dialog[open] .cmd")
    type_into(quotas, "name", "lab")
    press(quotas, "dialog[open] [data-key=confirm]")
    says(quotas, "There is a quota lab; edit that one.", "dialog[open] .field:has([data-field=name])")
    type_into(quotas, "name", "guests")
    type_into(quotas, "max_gpus", "0")
    says(quotas, "/api/admin/quotas/guests", "dialog[open] .cmd")
    made = quota("guests", max_gpus=0)
    canned.answers["PUT /api/admin/quotas/guests"] = made
    canned.answers[LAB] = page([*records.quotas(), made])
    press(quotas, "dialog[open] [data-key=confirm]")
    says(quotas, "guests", "tbody")
    assert canned.sent("PUT /api/admin/quotas/guests")[0][0]["max_gpus"] == 0


def test_remove(quotas: Driver, canned: Canned) -> None:
    """What somebody has cannot be removed and says why; the rest is asked about first."""
    button = find(quotas, '[data-id="lab"] [data-key=remove]')
    assert button.get_attribute("aria-disabled") == "true"
    assert button.get_attribute("title") == "3 accounts have it."
    button.click()
    assert not quotas.find_elements(By.CSS_SELECTOR, "dialog[open]")
    canned.refuse(
        "DELETE /api/admin/quotas/course-2025", 409, "conflict", "the quota course-2025 is in use by joan",
        hint="sudo svc admin edit-user joan --quota default",
    )  # fmt: skip
    press(quotas, '[data-id="course-2025"] [data-key=remove]')
    says(quotas, "svc api DELETE /api/admin/quotas/course-2025", "dialog[open] .cmd")
    press(quotas, "dialog[open] button[value=confirm]")
    says(quotas, "course-2025 was not removed. The quota course-2025 is in use by joan.", "[data-answer]")
    says(quotas, "sudo svc admin edit-user joan --quota default", "[data-answer] .cmd")

    def delete() -> tuple[int, Any, dict[str, str]]:
        canned.answers[LAB] = page(records.quotas()[1:])
        return 204, None, {}

    canned.answers["DELETE /api/admin/quotas/course-2025"] = delete
    press(quotas, '[data-id="course-2025"] [data-key=remove]')
    press(quotas, "dialog[open] button[value=confirm]")
    until(quotas, lambda: "course-2025" not in texts(quotas, "tbody .name"), "no row of it")


def test_search_filters_and_line(quotas: Driver) -> None:
    assert line(quotas) == "svc api GET /api/admin/quotas"
    find(quotas, "[data-search]").send_keys("la")
    until(quotas, lambda: texts(quotas, "tbody .name") == ["lab"], "the search")
    assert line(quotas) == "svc api GET '/api/admin/quotas?q=la'"
    press(quotas, "[data-filter=unused]")
    says(quotas, "No quota matches.")


def test_the_link_of_an_account_shows_its_quota(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    visit(browser, canned, "/admin/users")
    press(browser, '[data-id="emmy"] [data-key=quota]')
    until(browser, lambda: texts(browser, "tbody .name") == ["heavy"], "its quota")


def test_hostile_names_are_text(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    canned.answers[LAB] = page([quota(HOSTILE, 1), quota("x" * 63)])
    canned.answers["GET /api/admin/users"] = page([account(HOSTILE, quota=HOSTILE)])
    for size in (WIDE, NARROW):
        visit(browser, canned, "/admin/quotas", size=size)
        says(browser, "2 quotas", ".lede")
        press(browser, "[data-key=edit]")
        says(browser, "Holds for", "dialog[open]")
        assert overflow(browser) == 0
        assert not browser.find_elements(By.CSS_SELECTOR, "main img, dialog img, main script")
        assert not complaints(browser)
