"""The audit, before a canned API."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from pages.admin import records
from pages.admin.records import HOSTILE, audit_row
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.records import page
from pages.visiting import NARROW, WIDE, each_look, focused, overflow, visit
from pages.workspaces.test_workspaces import line, texts
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

AUDIT = "GET /api/admin/audit"


@pytest.fixture
def audit(browser: Driver, canned: Canned) -> Driver:
    """The screen, before the mock-up's rows."""
    records.administrator(canned)
    visit(browser, canned, "/admin/audit")
    says(browser, "fs.upload", "tbody")
    return browser


def asked(driver: Driver) -> dict[str, str]:
    """The parameters of the newest request for rows that are shown."""
    names = driver.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    queries = [parse_qs(urlsplit(name).query) for name in names if urlsplit(name).path == "/api/admin/audit"]
    shown = [query for query in queries if query["limit"] == ["50"]]
    return {key: values[0] for key, values in shown[-1].items()}


def row(number: int) -> str:
    """The selector of a row."""
    return f'tr[data-id="{number}"]'


@each_look
def test_as_the_mock_up_shows(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    records.administrator(canned)
    visit(browser, canned, "/admin/audit", theme=theme, size=size)
    says(browser, "Chain intact", ".lede")
    says(browser, "checked 2 min ago, 48112 rows", ".lede")
    says(browser, "bytes 13529146982", row(48112))
    says(browser, "token tok-4k2m9x7p", row(48111))
    says(browser, "gpu_unavailable", row(48110))
    says(browser, "of emmy", row(48109))
    says(browser, "took 1 min", row(48109))
    assert not browser.find_elements(By.CSS_SELECTOR, row(48108))  # a part of the row of its end
    says(browser, "begun", row(48105))
    says(browser, "1 to 50 of 48112 rows", "[data-where]")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_no_permission(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/admin/audit")
    says(browser, "For administrators", "[data-no-permission]")
    assert not canned.sent(AUDIT)


def test_every_row_and_all_of_one(audit: Driver) -> None:
    """Beginnings are rows of their own when asked for; a row is shown whole, with its hash."""
    press(audit, f"{row(48109)} [data-key=row]")
    says(audit, f"{48109:064x}", "dialog[open]")
    says(audit, f"{48108:064x}", "dialog[open]")
    says(audit, "svc api GET '/api/admin/audit?request_id=req-1'", "dialog[open] .cmd")
    audit.switch_to.active_element.send_keys(Keys.ENTER)
    until(audit, lambda: not audit.find_elements(By.CSS_SELECTOR, "dialog[open]"), "no dialog")
    press(audit, "[data-key=whole]")
    says(audit, "begun", row(48108))


def test_filters(audit: Driver, canned: Canned) -> None:
    """They are the API's; the line and the address follow, and a link of the page finds the same."""
    assert line(audit) == "svc api GET '/api/admin/audit?limit=50'"
    canned.answers[AUDIT] = page([audit_row(7, "fs.read", user="emmy", outcome="owner_only")])
    find(audit, "[data-key=user]").send_keys("emmy")
    find(audit, "[data-key=outcome]").send_keys("owner_only")
    says(audit, "1 to 1 of 1 row", "[data-where]")
    until(audit, lambda: asked(audit).get("outcome") == "owner_only", "the request")
    assert asked(audit) == {"user": "emmy", "outcome": "owner_only", "limit": "50"}
    assert line(audit) == "svc api GET '/api/admin/audit?user=emmy&outcome=owner_only&limit=50'"
    find(audit, "[data-key=span]").send_keys("Last 24")
    until(audit, lambda: "since" in asked(audit), "the request")
    assert asked(audit)["since"].endswith(":00Z")
    assert audit.current_url.endswith("/admin/audit?user=emmy&outcome=owner_only&span=24h")
    audit.refresh()
    says(audit, "1 to 1 of 1 row", "[data-where]")
    assert find(audit, "[data-key=user]").get_property("value") == "emmy"
    press(audit, "[data-clear]")
    until(audit, lambda: asked(audit) == {"limit": "50"}, "the request for all")
    assert focused(audit) == "Search the audit"


def test_from_a_day_to_a_day(audit: Driver) -> None:
    """The last day counts whole."""
    find(audit, "[data-key=span]").send_keys("From a day")
    for key, day in (("from", "2026-11-01"), ("to", "2026-11-02")):
        audit.execute_script(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))",
            find(audit, f"[data-key={key}]"),
            day,
        )
    until(audit, lambda: asked(audit).get("until") == "2026-11-03", "the request")
    assert asked(audit)["since"] == "2026-11-01"


def test_page_by_page(audit: Driver, canned: Canned) -> None:
    """Older pages end at the newest row of the first one, whatever comes meanwhile."""
    assert find(audit, "[data-key=newer]").get_attribute("aria-disabled") == "true"
    assert len(audit.find_elements(By.CSS_SELECTOR, "tbody tr")) == 49  # two of which are one
    rows = [audit_row(number, "fs.list") for number in range(48062, 48012, -1)]
    canned.answers[AUDIT] = page(rows) | {"total": 48112}
    press(audit, "[data-key=older]")
    says(audit, "51 to 100 of 48112 rows", "[data-where]")
    assert asked(audit)["offset"] == "50"
    assert "until" in asked(audit)
    canned.answers[AUDIT] = records.audit()
    press(audit, "[data-key=newer]")
    says(audit, "1 to 50 of 48112 rows", "[data-where]")
    assert asked(audit) == {"limit": "50"}


def test_rows_that_come_are_counted_and_shown_when_asked(audit: Driver, canned: Canned) -> None:
    """Nothing moves under the hand."""
    until(audit, lambda: canned.streams, "the stream")
    canned.answers[AUDIT] = records.audit(48115)
    canned.event("gap")
    says(audit, "3 newer rows", "[data-key=newer]")
    says(audit, "1 to 50 of 48112 rows", "[data-where]")
    press(audit, "[data-key=newer]")
    says(audit, "1 to 50 of 48115 rows", "[data-where]")


def test_a_page_that_could_not_be_read(audit: Driver, canned: Canned) -> None:
    """What is shown stays; the reason and another try."""
    canned.refuse(AUDIT, 422, "validation_failed", "since: use a time such as 2026-01-31T12:00:00Z")
    press(audit, "[data-key=older]")
    says(audit, "The rows were not read. since: use a time such as", "[data-answer] [role=alert]")
    says(audit, "fs.upload", "tbody")
    canned.answers[AUDIT] = records.audit()
    press(audit, "[data-answer] [data-key=retry]")
    until(audit, lambda: not audit.find_elements(By.CSS_SELECTOR, "[data-answer] .notice"), "no notice")


@pytest.mark.parametrize(
    ("chain", "words"),
    [
        (records.chain("fail"), "Chain broken"),
        (records.chain(None) | {"report": records.about(hours=0) | {"written_at": None}}, "not verified yet"),
        (records.chain("ok", hours=40), "checked 1 d ago"),
    ],
)
def test_the_chain(browser: Driver, canned: Canned, chain: dict[str, Any], words: str) -> None:
    """What the doctor found, how old that is, and the command."""
    records.administrator(canned)
    canned.answers["GET /api/admin/audit/chain"] = chain
    visit(browser, canned, "/admin/audit")
    says(browser, words, ".lede")
    press(browser, "[data-key=chain]")
    says(browser, "sudo svc admin doctor", "dialog[open] .cmd")
    says(browser, chain["head"]["hash"], "dialog[open]")
    says(browser, "rows up to 1200", "dialog[open]")


def test_save(audit: Driver) -> None:
    find(audit, "[data-key=action]").send_keys("auth")
    until(audit, lambda: "action=auth" in line(audit), "the line")
    press(audit, "[data-key=save]")
    commands = texts(audit, "dialog[open] .cmd code")
    assert commands[0] == "svc api GET '/api/admin/audit?action=auth&limit=50' > audit.json"
    assert commands[1] == "sudo svc admin audit export --out audit.jsonl"


def test_none_is_like_that(audit: Driver, canned: Canned) -> None:
    canned.answers[AUDIT] = page([])
    find(audit, "[data-search]").send_keys("nothing")
    says(audit, "No row matches.")


def test_hostile_text_is_text(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    wild = dict.fromkeys(("user", "target", "target_name", "target_owner", "outcome", "address"), HOSTILE)
    long = audit_row(2, "x" * 256, user="y" * 200, target="z" * 256, detail={HOSTILE: [HOSTILE] * 64})
    canned.answers[AUDIT] = page([audit_row(3, HOSTILE, **wild), long])
    for size in (WIDE, NARROW):
        visit(browser, canned, "/admin/audit", size=size)
        press(browser, f"{row(2)} [data-key=row]")
        says(browser, "Row 2", "dialog[open]")
        assert not browser.find_elements(By.CSS_SELECTOR, "main img, dialog img, main script")
        assert overflow(browser) == 0
        assert not complaints(browser)
