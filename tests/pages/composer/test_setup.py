"""A set-up under way, before a canned API: its steps, its ends, and how a page finds it again."""

from __future__ import annotations

from typing import Any

import pytest
from pages import records
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.composer import records as composer
from pages.composer.records import PULLING, SETUP
from pages.visiting import line, overflow, visit
from selenium.webdriver.common.by import By

OPERATION = "GET /api/operations/op-9d2mx41r"
START = "POST /api/workspaces/ws-9d2mx41r/start"


@pytest.fixture
def pages(canned: Canned) -> Canned:
    """The API of the mock-up; a start never ends unless a test says how."""
    composer.serve(canned)
    canned.answers["GET /api/workspaces/vllm-1"] = records.workspace("vllm-1", "running")
    return canned


def begun(driver: Driver, pages: Canned, button: str = "go", **more: Any) -> None:
    """Fill the form and send it."""
    visit(driver, pages, "/new?template=vllm", **more)
    says(driver, "412 GiB free", ".a-plan")
    until(driver, lambda: pages.streams, "the stream")
    press(driver, f"[data-key={button}]")
    says(driver, "Setting up vllm-1", "#work-h")


def progress(pages: Canned, **data: Any) -> None:
    """An event of the set-up."""
    pages.event(
        "operation.progress",
        subject={"type": "operation", "id": "op-9d2mx41r", "name": ""},
        data={"kind": "setup", "status": "running", "phase": "pulling", "progress": {}} | data,
    )


def finish(pages: Canned, **more: Any) -> None:
    """The end of the set-up."""
    result = {"workspace_id": "ws-9d2mx41r", "name": "vllm-1"}
    end = {"status": "succeeded", "result": result, "finished_at": records.ago(seconds=1)} | more
    pages.answers[OPERATION] = composer.operation(**end)
    pages.event(
        "operation.finished",
        subject={"type": "operation", "id": "op-9d2mx41r", "name": ""},
        data={"kind": "setup", "status": end["status"], "subject": {}, "error": None, "result": None},
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_steps_with_bytes_and_rate(browser: Driver, pages: Canned, theme: str) -> None:
    begun(browser, pages, theme=theme)
    says(browser, "5.3 of 8.4 GiB, 112 MiB/s, about 30 s left", ".steps .now")
    says(browser, "62 %", ".steps .now")
    assert browser.current_url.endswith("/new?setup=op-9d2mx41r&start=1")
    assert find(browser, ".a-form").get_property("inert")
    assert browser.switch_to.active_element.get_attribute("id") == "work-h"
    assert line(browser) == "svc operation watch op-9d2mx41r && svc ws start vllm-1"
    moved = {"current": 8 << 30, "total": int(8.4 * (1 << 30)), "unit": "bytes", "rate": 200 << 20}
    progress(pages, progress=moved)
    says(browser, "8 of 8.4 GiB, 200 MiB/s", ".steps .now")
    progress(
        pages, phase="building", progress={"current": 3, "total": 6, "unit": "steps", "text": "RUN make"}
    )
    says(browser, "step 3 of 6: RUN make", ".steps .now")
    progress(pages, phase="creating")
    says(browser, "Create vllm-1", ".steps .now")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_it_is_started_and_its_page_is_opened(browser: Driver, pages: Canned) -> None:
    begun(browser, pages)
    pages.answers[START] = records.workspace("vllm-1", "running")
    finish(pages)
    until(browser, lambda: browser.current_url.endswith("/workspaces/vllm-1/terminal"), "its terminal")
    assert len(pages.sent(START)) == 1
    ((body, _),) = pages.sent(SETUP)
    assert body["name"] == "vllm-1"


def test_create_only(browser: Driver, pages: Canned) -> None:
    begun(browser, pages, "only")
    assert line(browser) == "svc operation watch op-9d2mx41r"
    finish(pages)
    until(browser, lambda: browser.current_url.endswith("/workspaces/vllm-1"), "its page")
    assert not pages.sent(START)


def test_a_start_that_is_refused(browser: Driver, pages: Canned) -> None:
    """It is there, and says so; the refusal is a next step."""
    begun(browser, pages)
    action = {"label": "Stop train-7b", "method": "POST", "path": "/api/workspaces/train-7b/stop", "body": {}}
    message = "vllm-1 asks for 1 GPU and none is free"
    pages.refuse(START, 409, "gpu_unavailable", message, hint="svc ws stop train-7b", action=action)
    finish(pages)
    says(
        browser, "vllm-1 is created, and was not started. vllm-1 asks for 1 GPU and none is free.", ".notice"
    )
    says(browser, "svc ws stop train-7b", ".notice .cmd")
    find(browser, ".notice a[href='/workspaces/vllm-1']")
    pages.answers[START] = records.workspace("vllm-1", "running")
    pages.answers["POST /api/workspaces/train-7b/stop"] = records.workspace("train-7b")
    press(browser, ".notice [data-key=act]")
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: browser.current_url.endswith("/workspaces/vllm-1/terminal"), "its terminal")
    assert pages.sent("POST /api/workspaces/train-7b/stop")


def test_a_set_up_that_fails(browser: Driver, pages: Canned) -> None:
    """Why, with its log; the form is as it was, and the same can be sent again."""
    begun(browser, pages)
    error = {
        "code": "engine_failed", "message": "the registry refused docker.io/team/vllm:1",
        "hint": "svc image pull vllm --wait", "fields": [], "details": {}, "retryable": False,
        "request_id": "req-1",
    }  # fmt: skip
    finish(pages, status="failed", error=error, result=None, phase="pulling")
    says(
        browser, "vllm-1 was not created. The registry refused docker.io/team/vllm:1.", ".notice[role=alert]"
    )
    says(browser, "svc operation log op-9d2mx41r", ".notice")
    find(browser, ".steps .bad")
    pages.answers[OPERATION] = composer.operation(**PULLING)
    press(browser, "[data-key=again]")
    says(browser, "5.3 of 8.4 GiB", ".steps .now")
    assert len(pages.sent(SETUP)) == 2
    finish(pages, status="failed", error=error, result=None, phase="pulling")
    press(browser, "[data-key=back]")
    says(browser, "What will happen", ".a-plan")
    assert not find(browser, ".a-form").get_property("inert")
    assert browser.current_url.endswith("/new")


def test_cancelled(browser: Driver, pages: Canned) -> None:
    begun(browser, pages)
    cancelled = composer.operation(status="cancelled")
    pages.answers["POST /api/operations/op-9d2mx41r/cancel"] = cancelled
    assert find(browser, "[data-key=cancel]").get_attribute("data-cmd") == "svc operation cancel op-9d2mx41r"
    press(browser, "[data-key=cancel]")
    says(browser, "svc operation cancel op-9d2mx41r", "dialog[open] .cmd")
    press(browser, "dialog[open] button[value=confirm]")
    says(browser, "Cancelled. There is no workspace vllm-1.", ".notice")
    press(browser, "[data-key=back]")
    says(browser, "What will happen", ".a-plan")
    assert line(browser).endswith("&& svc ws start vllm-1")


def test_the_same_set_up_is_joined(browser: Driver, pages: Canned) -> None:
    pages.refuse(
        SETUP, 409, "operation_in_progress", "a setup of vllm-1 is already in progress",
        details={"operation": composer.operation(**PULLING)},
    )  # fmt: skip
    begun(browser, pages)
    says(browser, "5.3 of 8.4 GiB", ".steps .now")


def test_a_name_that_was_taken_meanwhile(browser: Driver, pages: Canned) -> None:
    visit(browser, pages, "/new?template=vllm")
    says(browser, "412 GiB free", ".a-plan")
    pages.refuse(SETUP, 409, "name_taken", "there is a workspace vllm-1 already")
    press(browser, "[data-key=go]")
    says(browser, "there is a workspace vllm-1 already", ".a-form")
    until(
        browser,
        lambda: browser.switch_to.active_element.get_attribute("data-field") == "name",
        "the field of the name",
    )


def test_a_page_finds_it_again(browser: Driver, pages: Canned) -> None:
    """Closed meanwhile: the next visit says what goes on, and shows it; then a reload."""
    running = composer.operation(**PULLING)
    pages.answers["GET /api/operations"] = records.page([running])
    visit(browser, pages, "/new")
    says(browser, "vllm-1 is being set up from vllm.", "[data-notes]")
    press(browser, "[data-notes] a")
    says(browser, "5.3 of 8.4 GiB, 112 MiB/s", ".steps .now")
    assert not browser.find_elements(By.CSS_SELECTOR, ".composer")
    until(browser, lambda: pages.streams, "the stream")
    browser.refresh()
    says(browser, "Setting up vllm-1", "#work-h")
    until(browser, lambda: len(pages.streams) > 1, "the stream of this page")
    finish(pages)
    until(browser, lambda: browser.current_url.endswith("/workspaces/vllm-1"), "its page")
    assert not pages.sent(START)


def test_a_set_up_that_is_unknown(browser: Driver, pages: Canned) -> None:
    pages.refuse("GET /api/operations/op-gone", 404, "not_found", "there is no operation op-gone")
    visit(browser, pages, "/new?setup=op-gone")
    says(browser, "It cannot be shown. There is no operation op-gone.", ".notice")
