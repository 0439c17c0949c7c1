"""The host, before a canned API."""

from __future__ import annotations

from typing import Any

import pytest
from pages.admin import records
from pages.admin.records import HOSTILE, finding
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.visiting import NARROW, WIDE, each_look, overflow, visit
from pages.workspaces.test_workspaces import line, texts
from selenium.webdriver.common.by import By

REPORTS = ("host", "backups", "recovery-sets")


@pytest.fixture
def host(browser: Driver, canned: Canned) -> Driver:
    """The screen, before the mock-up's reports."""
    records.administrator(canned)
    visit(browser, canned, "/admin/host")
    says(browser, "docker_group")
    return browser


def panel(name: str) -> str:
    """The selector of a panel."""
    return f'[data-panel="{name}"]'


@each_look
def test_as_the_mock_up_shows(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    records.administrator(canned)
    visit(browser, canned, "/admin/host", theme=theme, size=size)
    says(browser, "1 fails, 2 warn, 20 are fine", panel("doctor"))
    says(browser, "2 min ago", panel("doctor"))
    assert texts(browser, f"{panel('doctor')} > table .name") == ["cdi", "docker_group", "clock"]
    assert texts(browser, f"{panel('doctor')} > table .cmd code") == [
        "sudo svc admin report",
        "sudo svc admin doctor --repair",
    ]
    says(browser, "see the time service of the host", panel("doctor"))
    says(browser, "Healthy", panel("service"))
    says(browser, "trial, 12 days left", panel("licence"))
    says(browser, "7 of unlimited", panel("licence"))
    says(browser, "0.2.0 is out", panel("updates"))
    says(browser, "sudo svc admin update apply", panel("updates"))
    says(browser, "newest 11 h ago", panel("backups"))
    says(browser, "its schema is newer", panel("backups"))
    says(browser, "sudo svc admin rollback apply upgrade-20261114T164523.123Z", panel("sets"))
    says(browser, "its package is not here any more", panel("sets"))
    assert line(browser) == "sudo svc admin doctor"
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_no_permission(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/admin/host")
    says(browser, "For administrators", "[data-no-permission]")
    assert not [request for request, _, _ in canned.requests if "/admin/" in request]


def test_what_is_fine_and_what_is_older_is_behind_a_press(host: Driver) -> None:
    press(host, f"{panel('doctor')} summary")
    says(host, "check_19", panel("doctor"))
    press(host, f"{panel('backups')} summary")
    assert len(host.find_elements(By.CSS_SELECTOR, f"{panel('backups')} tbody tr")) == 9


def test_no_report_yet(browser: Driver, canned: Canned) -> None:
    """A host on which no command has reported: what each panel needs, as a command."""
    records.administrator(canned)
    for name in REPORTS:
        canned.answers[f"GET /api/admin/{name}"] = records.no_report()
    none = records.no_report()["report"] | {"command": "sudo svc admin update status"}
    canned.answers["GET /api/admin/updates"] = {"report": none, "updates": None}
    visit(browser, canned, "/admin/host")
    says(browser, "This host was not checked yet", panel("doctor"))
    says(browser, "sudo svc admin doctor", panel("doctor"))
    assert "None" not in find(browser, panel("backups")).text  # nothing is known, and nothing is said
    says(browser, "sudo svc admin update status", panel("updates"))
    says(browser, "once it was reported on the host", panel("sets"))
    assert overflow(browser) == 0


def test_no_backup(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    for name in ("backups", "recovery-sets"):
        canned.answers[f"GET /api/admin/{name}"] = records.report([])
    visit(browser, canned, "/admin/host")
    says(browser, "There is no complete snapshot", panel("backups"))
    says(browser, "one is kept before each upgrade", panel("sets"))


def test_old_reports_say_so(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    foreign = finding("docker_group", "warn", "hedy is in the group docker", "sudo gpasswd -d hedy docker")
    canned.answers["GET /api/admin/host"] = records.report([foreign, *records.findings()], hours=50)
    visit(browser, canned, "/admin/host")
    says(browser, "more than a day old: 2 d ago", panel("doctor"))
    assert "sudo gpasswd -d hedy docker" in texts(browser, ".cmd code")
    says(browser, "The report is renewed on the host:", panel("doctor"))


def test_all_is_well(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    canned.answers["GET /api/admin/host"] = records.report([finding("database", "ok", "intact")])
    signed = records.licence(
        kind="signed", state="active", days_left=300, holder="The Lab", id="lic-7", notices=[],
        limits={"users": 50, "gpus": 8},
    )  # fmt: skip
    canned.answers["GET /api/admin/license"] = signed
    fresh = {"report": records.about(hours=1), "updates": records.updates(available="", release_keys=0)}
    canned.answers["GET /api/admin/updates"] = fresh
    visit(browser, canned, "/admin/host")
    says(browser, "Nothing to mend", panel("doctor"))
    says(browser, "signed, 300 days left", panel("licence"))
    says(browser, "7 of 50", panel("licence"))
    says(browser, "This build has no key of a vendor", panel("updates"))


def test_a_lapsed_licence_and_a_service_that_is_not_well(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    canned.answers["GET /api/admin/license"] = records.licence(
        state="lapsed", days_left=0, problem="it is for another host"
    )
    canned.refuse(
        "GET /api/health",
        503,
        "storage_full",
        "the disk of the database is full",
        hint="sudo svc admin doctor",
    )
    visit(browser, canned, "/admin/host")
    says(browser, "Nothing can be created or started", panel("licence"))
    says(browser, "it is for another host", panel("licence"))
    says(browser, "Degraded", panel("service"))
    says(browser, "the disk of the database is full", panel("service"))


def test_a_panel_that_could_not_be_read_leaves_the_others(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    canned.refuse("GET /api/admin/license", 500, "internal_error", "something failed")
    visit(browser, canned, "/admin/host")
    says(browser, "something failed", panel("licence"))
    says(browser, "docker_group", panel("doctor"))


def test_nothing_could_be_read(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    names = (*(f"admin/{name}" for name in (*REPORTS, "updates", "license")), "version")
    answers = dict(canned.answers)
    for name in (*names, "health"):
        canned.refuse(f"GET /api/{name}", 500, "internal_error", "something failed", retryable=True)
    visit(browser, canned, "/admin/host")
    says(browser, "The host could not be read. Something failed.")
    canned.answers = answers
    press(browser, "[data-key=retry]")
    says(browser, "docker_group", panel("doctor"))


def test_the_page_sees_a_new_report(host: Driver, canned: Canned) -> None:
    """What is open stays open; only what changed is shown anew."""
    press(host, f"{panel('backups')} summary")
    until(host, lambda: canned.streams, "the stream")
    canned.answers["GET /api/admin/host"] = records.report([finding("database", "ok", "intact")])
    canned.event("gap")
    says(host, "Nothing to mend", panel("doctor"))
    assert find(host, f"{panel('backups')} details").get_attribute("open") is not None


def test_check_again(host: Driver) -> None:
    press(host, "[data-key=again]")
    says(host, "sudo svc admin report", "dialog[open] .cmd + .cmd")


def test_hostile_and_long_reports(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    wild: dict[str, Any] = dict.fromkeys(("code", "found", "remedy"), HOSTILE * 5)
    many = [finding(f"x{'y' * 200}{number}", "ok", "z" * 300) for number in range(300)]
    canned.answers["GET /api/admin/host"] = records.report([wild | {"level": "fail"}, *many])
    sets = [one | {"id": "i" * 200, "why": HOSTILE, "problem": HOSTILE} for one in records.recovery_sets()]
    canned.answers["GET /api/admin/recovery-sets"] = records.report(sets)
    canned.answers["GET /api/admin/license"] = records.licence(holder=HOSTILE * 3, problem="p" * 300)
    new = records.updates(notes=HOSTILE * 5, problem="q" * 300, installed_version="v" * 99)
    canned.answers["GET /api/admin/updates"] = {"report": records.about(hours=1), "updates": new}
    for size in (WIDE, NARROW):
        visit(browser, canned, "/admin/host", size=size)
        press(browser, f"{panel('doctor')} summary")
        says(browser, "300 checks are fine", panel("doctor"))
        assert not browser.find_elements(By.CSS_SELECTOR, "main img, main script")
        assert overflow(browser) == 0
        assert not complaints(browser)
