"""The head and the tabs that all pages of one workspace share, before a canned API."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from pages import records as shared
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.visiting import NARROW, WIDE, focused, overflow, visit
from pages.workspace import records
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.exe" + "very long " * 20
HEAD = "[data-workspace-head]"


def line(driver: Driver) -> str:
    """The command at the foot."""
    return find(driver, "[data-command]").text


@pytest.mark.parametrize("size", [WIDE, NARROW])
def test_head_and_tabs(browser: Driver, canned: Canned, size: tuple[int, int]) -> None:
    records.serve(canned, records.of_the_mock_up())
    visit(browser, canned, "/workspaces/train-7b", size=size)
    for text in ("train-7b", "7B from scratch, run 3", "Running", "3 h 12 min"):
        says(browser, text, HEAD)
    assert browser.title == "train-7b \u00b7 localhost"
    until(browser, lambda: line(browser) == "svc ws get train-7b", "the line")
    tabs = browser.find_elements(By.CSS_SELECTOR, ".tabs a")
    assert [tab.get_attribute("href").split("/train-7b")[1] for tab in tabs] == [
        "", "/terminal", "/logs", "/apps", "/monitor", "/settings",
    ]  # fmt: skip
    assert find(browser, ".tabs [aria-current]").text.startswith("Overview")
    until(browser, lambda: canned.streams, "the stream")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_by_its_id(browser: Driver, canned: Canned) -> None:
    records.serve(canned, records.of_the_mock_up())
    visit(browser, canned, f"/workspaces/{records.ID}")
    says(browser, "Running", HEAD)
    assert find(browser, "h1").text == "train-7b"


def test_a_stopped_one_has_tabs_that_are_not_now(browser: Driver, canned: Canned) -> None:
    """They keep the focus and say why; their addresses are there all the same."""
    records.serve(canned, records.of_the_mock_up() | shared.workspace("train-7b"))
    visit(browser, canned, "/workspaces/train-7b")
    says(browser, "Stopped", HEAD)
    off = browser.find_elements(By.CSS_SELECTOR, ".tabs a[aria-disabled=true]")
    assert [tab.text.split()[0] for tab in off] == ["Terminal", "Monitor"]
    find(browser, "body").send_keys("2")
    says(browser, "must be started first", ".toasts")
    assert browser.current_url.endswith("/workspaces/train-7b")
    assert find(browser, HEAD).find_element(By.CSS_SELECTOR, ".btn.primary").text == "Start"


def test_a_toast_leaves_a_newer_one_alone(browser: Driver, canned: Canned) -> None:
    records.serve(canned, records.of_the_mock_up() | shared.workspace("train-7b"))
    visit(browser, canned, "/workspaces/train-7b")
    says(browser, "Stopped", HEAD)
    browser.execute_script(
        "const set = setTimeout; window.ends = [];"
        "window.setTimeout = (end, ms, ...more) => ms === 2500 ? ends.push(end) : set(end, ms, ...more);"
    )
    for _ in range(2):
        find(browser, "body").send_keys("2")
    says(browser, "must be started first", ".toasts")
    for text in ("must be started first", ""):
        browser.execute_script("ends.shift()()")
        assert text in find(browser, ".toasts").text
    assert not find(browser, ".toasts").text


def test_keys_choose_tabs(browser: Driver, canned: Canned) -> None:
    records.serve(canned, records.of_the_mock_up())
    visit(browser, canned, "/workspaces/train-7b")
    says(browser, "Running", HEAD)
    find(browser, "body").send_keys("6")
    until(browser, lambda: browser.current_url.endswith("/workspaces/train-7b/settings"), "the tab")


def test_no_such_workspace(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/workspaces/%3Cb%3Enone")
    says(browser, "There is no workspace <b>none", ".empty")
    assert find(browser, ".empty a").get_attribute("href").endswith("/workspaces")
    until(browser, lambda: canned.streams, "the stream")
    records.serve(canned, records.of_the_mock_up(name="<b>none"))
    canned.answers["GET /api/workspaces/<b>none"] = records.answer(records.of_the_mock_up())
    canned.event("workspace.created")
    says(browser, "Running", HEAD)  # somebody has made it
    assert not browser.find_elements(By.CSS_SELECTOR, ".empty")


def test_one_that_is_being_set_up(browser: Driver, canned: Canned) -> None:
    """Its image is pulled: the page says how far, and shows the workspace when it is there."""
    visit(browser, canned, "/workspaces/eval-harness")
    says(browser, "eval-harness is being set up.", "[data-setup]")
    says(browser, "5.2 of 8.4 GiB, about 30 s left", "[data-setup]")
    until(browser, lambda: canned.streams, "the stream")
    progress = {"current": 8 * shared.GIB, "total": 9 * shared.GIB, "unit": "bytes", "seconds_left": 4}
    data = {"kind": "setup", "status": "running", "phase": "pulling", "progress": progress}
    subject = {"type": "operation", "id": "op-k3f81c0z", "name": ""}
    canned.event("operation.progress", subject=subject, data=data)
    says(browser, "8 of 9 GiB, about 4 s left", "[data-setup]")
    canned.answers["POST /api/operations/op-k3f81c0z/cancel"] = {}
    press(browser, "[data-setup] [data-key=cancel]")
    says(browser, "Cancel the set-up of eval-harness?", "dialog[open]")
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: canned.sent("POST /api/operations/op-k3f81c0z/cancel"), "the cancel")
    records.serve(canned, shared.workspace("eval-harness"))
    canned.event("operation.finished", subject=subject, data={"kind": "setup"})
    says(browser, "Stopped", HEAD)


def test_it_could_not_be_read(browser: Driver, canned: Canned) -> None:
    canned.refuse(
        "GET /api/workspaces/train-7b", 503, "engine_unavailable", "Podman could not answer", after=1,
        retryable=True,
    )  # fmt: skip
    visit(browser, canned, "/workspaces/train-7b")
    says(browser, "train-7b could not be read. Podman could not answer.")
    says(browser, "by itself in")
    records.serve(canned, records.of_the_mock_up())
    says(browser, "Running", HEAD)
    assert not browser.find_elements(By.CSS_SELECTOR, ".notice")


def test_while_it_loads(browser: Driver, canned: Canned) -> None:
    come = threading.Event()

    def late() -> tuple[int, Any, dict[str, str]]:
        come.wait(20)
        return records.answer(records.of_the_mock_up())

    canned.answers["GET /api/workspaces/train-7b"] = late
    visit(browser, canned, "/workspaces/train-7b")
    find(browser, "section[aria-busy=true][aria-label='Loading the workspace'] .skel")
    assert find(browser, "h1").text == "train-7b"
    come.set()
    says(browser, "Running", HEAD)
    assert not browser.find_elements(By.CSS_SELECTOR, "[data-instead] .skel")


def test_stop_asks_first_and_is_followed(browser: Driver, canned: Canned) -> None:
    records.serve(canned, records.of_the_mock_up())
    visit(browser, canned, "/workspaces/train-7b")
    press(browser, f"{HEAD} [data-key=stop]")
    says(browser, "svc ws stop train-7b", "dialog[open] code")
    assert focused(browser) == "Let it run"

    def stop() -> tuple[int, Any, dict[str, str]]:
        records.serve(canned, shared.workspace("train-7b"))
        return 200, shared.workspace("train-7b"), {}

    canned.answers[f"POST {records.PATH}/stop"] = stop
    press(browser, "dialog[open] button[value=confirm]")
    says(browser, "Stopped", HEAD)
    find(browser, f"{HEAD} [data-key=start]")


def test_a_refused_start(browser: Driver, canned: Canned) -> None:
    """The API's message and its action as a button, below the tabs."""
    records.serve(canned, shared.workspace("train-7b"))
    action = {
        "label": "Stop notebook",
        "method": "POST",
        "path": "/api/workspaces/ws-notebook/stop",
        "body": {},
    }
    canned.refuse(
        f"POST {records.PATH}/start", 409, "gpu_unavailable", "train-7b asks for 1 GPU and none is free",
        hint="svc ws stop notebook", action=action,
    )  # fmt: skip
    canned.answers["POST /api/workspaces/ws-notebook/stop"] = shared.workspace("notebook")
    visit(browser, canned, "/workspaces/train-7b")
    press(browser, f"{HEAD} [data-key=start]")
    says(browser, "train-7b was not started. train-7b asks for 1 GPU", "[data-answer]")
    press(browser, "[data-answer] [data-key=act]")
    says(browser, "svc ws stop ws-notebook", "dialog[open] .cmd")
    assert not canned.sent("POST /api/workspaces/ws-notebook/stop")
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: canned.sent("POST /api/workspaces/ws-notebook/stop"), "the action")
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "[data-answer] .notice"), "no notice")


def test_rename(browser: Driver, canned: Canned) -> None:
    """The dialog's command follows what is typed, a refusal is beside the field, the address is new."""
    records.serve(canned, records.of_the_mock_up())
    field = {"field": "name", "message": "Use a-z, 0-9 and -."}
    canned.refuse(
        f"POST {records.PATH}/rename", 422, "invalid_request", "the request is invalid", fields=[field]
    )
    visit(browser, canned, "/workspaces/train-7b")
    press(browser, f"{HEAD} [data-key=more]")
    press(browser, f"{HEAD} details li:first-child button")
    field_of = find(browser, "dialog[open] input")
    field_of.send_keys("no name!")
    says(browser, "svc ws rename train-7b --name 'no name!'", "dialog[open] .cmd")
    field_of.send_keys(Keys.ENTER)
    says(browser, "Use a-z, 0-9 and -.", "dialog[open] .field-error")
    assert field_of.get_property("value") == "no name!"
    renamed = records.of_the_mock_up(name="paper")

    def rename() -> tuple[int, Any, dict[str, str]]:
        records.serve(canned, renamed)
        return records.answer(renamed)

    canned.answers[f"POST {records.PATH}/rename"] = rename
    field_of.clear()
    field_of.send_keys("paper" + Keys.ENTER)
    until(browser, lambda: browser.current_url.endswith("/workspaces/paper"), "the new address")
    says(browser, "paper", "h1")
    assert browser.title == "paper \u00b7 localhost"
    assert canned.sent(f"POST {records.PATH}/rename")[-1][1]["IF_MATCH"] == records.VERSION


def test_deleted_elsewhere(browser: Driver, canned: Canned) -> None:
    records.serve(canned, records.of_the_mock_up())
    visit(browser, canned, "/workspaces/train-7b")
    says(browser, "Running", HEAD)
    until(browser, lambda: canned.streams, "the stream")
    for ref in ("train-7b", records.ID):
        canned.refuse(f"GET /api/workspaces/{ref}", 404, "not_found", "no workspace")
    canned.event("workspace.deleted", subject={"type": "workspace", "id": records.ID, "name": "train-7b"})
    says(browser, "train-7b was deleted", ".empty")
    assert not browser.find_elements(By.CSS_SELECTOR, f"{HEAD} button")


def test_delete(browser: Driver, canned: Canned) -> None:
    records.serve(canned, shared.workspace("train-7b"))
    canned.answers[f"DELETE {records.PATH}"] = (204, None, {})
    visit(browser, canned, "/workspaces/train-7b")
    press(browser, f"{HEAD} [data-key=more]")
    press(browser, f"{HEAD} details .danger")
    assert focused(browser) == "Cancel"
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: browser.current_url.endswith("/workspaces"), "the list")


def test_upgrade_says_what_changes(browser: Driver, canned: Canned) -> None:
    record = shared.workspace("train-7b", template={"newer_revision": 5})
    records.serve(canned, record)
    changes = [
        {
            "part": "image",
            "name": None,
            "before": "docker.io/team/torch:1",
            "after": "docker.io/team/torch:2",
        },
        {"part": "env", "name": "MODE", "before": None, "after": "fast"},
    ]
    plan = {"before": 4, "after": 5, "container": "replaced", "changes": changes}
    canned.answers[f"GET {records.PATH}/upgrade"] = plan
    canned.answers[f"POST {records.PATH}/upgrade"] = record
    visit(browser, canned, "/workspaces/train-7b")
    press(browser, f"{HEAD} [data-key=more]")
    press(browser, f"{HEAD} details [data-cmd='svc ws upgrade train-7b']")
    for text in (
        "docker.io/team/torch:2",
        "MODE",
        "It gets a new container.",
        "svc ws upgrade train-7b --yes",
    ):
        says(browser, text, "dialog[open]")
    assert focused(browser) == "Stay at revision 4"
    press(browser, "dialog[open] [data-key=confirm]")
    until(browser, lambda: canned.sent(f"POST {records.PATH}/upgrade"), "the upgrade")
    ((body, headers),) = canned.sent(f"POST {records.PATH}/upgrade")
    assert body == {"revision": 5, "replace_container": True}
    assert headers["IF_MATCH"] == records.VERSION


def test_a_newer_image_of_the_same_revision(browser: Driver, canned: Canned) -> None:
    record = shared.workspace("train-7b", newer_image=True)
    records.serve(canned, record)
    change = {"part": "image", "name": None, "before": "reg/t:1@sha256:1", "after": "reg/t:1@sha256:2"}
    plan = {"before": 4, "after": 4, "container": "replaced", "changes": [change]}
    canned.answers[f"GET {records.PATH}/upgrade"] = plan
    canned.answers[f"POST {records.PATH}/upgrade"] = record
    visit(browser, canned, "/workspaces/train-7b")
    says(browser, "Its image was built or pulled again.")
    press(browser, f"{HEAD} [data-key=more]")
    press(browser, f"{HEAD} details [data-cmd='svc ws upgrade train-7b']")
    for text in ("Upgrade train-7b to the newer image?", "reg/t:1@sha256:2", "It gets a new container."):
        says(browser, text, "dialog[open]")
    assert focused(browser) == "Keep the present image"


def test_a_newer_revision_of_one_that_runs(browser: Driver, canned: Canned) -> None:
    record = records.of_the_mock_up()
    record["template"] |= {"newer_revision": 5}
    records.serve(canned, record)
    canned.answers[f"GET {records.PATH}/upgrade"] = {
        "before": 4,
        "after": 5,
        "container": "kept",
        "changes": [],
    }
    visit(browser, canned, "/workspaces/train-7b")
    press(browser, f"{HEAD} [data-key=more]")
    press(browser, f"{HEAD} details [data-cmd='svc ws upgrade train-7b --dry-run']")
    says(browser, "It is upgraded while it is stopped.", "dialog[open]")


def test_hostile_names(browser: Driver, canned: Canned) -> None:
    records.serve(canned, records.of_the_mock_up(display_name=HOSTILE))
    visit(browser, canned, "/workspaces/train-7b", size=NARROW)
    says(browser, "<img src=x onerror=alert(1)>", HEAD)
    until(browser, lambda: canned.streams, "the stream")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_buttons_wait_while_the_service_is_away(browser: Driver, canned: Canned) -> None:
    records.serve(canned, records.of_the_mock_up())
    visit(browser, canned, "/workspaces/train-7b")
    says(browser, "Running", HEAD)
    until(browser, lambda: canned.streams, "the stream")
    for request in ("GET /api/health", "GET /api/events"):
        canned.refuse(request, 503, "unavailable", "stopping", retryable=True)
    canned.event("restarting")
    canned.streams[0].end()
    find(browser, f"{HEAD} [data-key=stop][aria-disabled=true]")
    press(browser, f"{HEAD} [data-key=stop]")
    assert not browser.find_elements(By.CSS_SELECTOR, "dialog[open]")
