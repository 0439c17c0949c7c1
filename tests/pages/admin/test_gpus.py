"""The GPUs of the host, before a canned API."""

from __future__ import annotations

from typing import Any

import pytest
from pages.admin import records
from pages.admin.records import HOSTILE
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.records import holder, page
from pages.visiting import NARROW, WIDE, each_look, focused, overflow, visit
from pages.workspaces.test_workspaces import line, texts
from selenium.webdriver.common.by import By

CAPACITY = "GET /api/workspaces/capacity"


@pytest.fixture
def gpus(browser: Driver, canned: Canned) -> Driver:
    """The screen, before the mock-up's GPUs."""
    records.administrator(canned)
    canned.answers[CAPACITY] = records.gpus()
    visit(browser, canned, "/admin/gpus")
    says(browser, "388201", "tbody")
    return browser


def row(number: int) -> str:
    """The selector of the row of a GPU."""
    return f'tr[data-id="{records.records.UUIDS[number]}"]'


@each_look
def test_as_the_mock_up_shows(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    records.administrator(canned)
    canned.answers[CAPACITY] = records.gpus()
    visit(browser, canned, "/admin/gpus", theme=theme, size=size)
    says(browser, "8 \u00d7 NVIDIA H100 80GB HBM3, driver 570.133.20, CUDA up to 12.8", ".lede")
    says(browser, "4 leased, 1 in use outside svc, 1 lost, 1 unusable, 1 free")
    says(browser, "97 %", row(0))
    says(browser, "3 h 12 min", row(0))
    says(browser, "Lost", row(3))
    says(browser, "katherine stats", row(4))
    says(browser, "outside svc, process 388201, 61.2 GiB", row(5))
    slots = [text.split("\n") for text in texts(browser, ".slot")]
    assert slots[2] == ["2", "leased", "emmy", "sweep-3"]
    assert slots[4] == ["4", "shared", "ada", "and katherine"]
    assert slots[5] == ["5", "in use", "hedy", "outside svc"]
    says(browser, "sweep-3 of emmy lost a GPU, 5 h ago")
    says(browser, "emmy holds it since 1 d. Stopping that workspace gives the lease back")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_no_permission(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/admin/gpus")
    says(browser, "For administrators", "[data-no-permission]")
    assert not canned.sent(CAPACITY)


def test_stop_a_holders_workspace(gpus: Driver, canned: Canned) -> None:
    """Asked first; the command is that of an administrator, and the owner is told."""
    assert line(gpus) == "svc ws capacity && svc servers hardware"
    button = f"{row(2)} [data-key=stop-ws-sweep-3]"
    assert find(gpus, button).get_attribute("data-cmd") == "svc ws stop ws-sweep-3 --owner emmy"
    press(gpus, button)
    says(gpus, "emmy sees that an administrator stopped it", "dialog[open]")
    says(gpus, "svc ws stop ws-sweep-3 --owner emmy", "dialog[open] code")
    assert focused(gpus) == "Let it run"

    def stop() -> dict[str, Any]:
        found = records.gpus()
        for number in (2, 3):
            found["gpus"][number] |= {"state": "free", "index": number, "mode": None, "holders": []}
        canned.answers[CAPACITY] = found
        return records.workspace("sweep-3")

    canned.answers["POST /api/workspaces/ws-sweep-3/stop"] = stop
    press(gpus, "dialog[open] button[value=confirm]")
    says(gpus, "Free", row(2))
    until(gpus, lambda: not gpus.find_elements(By.CSS_SELECTOR, ".notice.danger"), "no lost GPU")


def test_a_stop_that_is_refused(gpus: Driver, canned: Canned) -> None:
    canned.refuse("POST /api/workspaces/ws-sweep-3/stop", 503, "engine_unavailable", "Podman did not answer")
    press(gpus, "[data-key=lost-ws-sweep-3]")
    press(gpus, "dialog[open] button[value=confirm]")
    says(gpus, "sweep-3 was not stopped. Podman did not answer.", "[data-answer] [role=alert]")
    says(gpus, "Stop", row(2))


def test_each_holder_of_a_shared_one_has_a_button(gpus: Driver) -> None:
    labels = [
        button.get_attribute("aria-label")
        for button in gpus.find_elements(By.CSS_SELECTOR, f"{row(4)} .c-act button")
    ]
    assert labels == ["Stop notebook of ada", "Stop stats of katherine"]


def test_live(gpus: Driver, canned: Canned) -> None:
    """What changes comes by the stream."""
    until(gpus, lambda: canned.streams, "the stream")
    found = records.gpus()
    found["gpus"][6] |= {"state": "leased", "mode": "exclusive", "holders": [holder("radia", "new")]}
    canned.answers[CAPACITY] = found
    canned.event("capacity.changed")
    says(gpus, "radia", row(6))


def test_a_host_without_gpus(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    none = records.gpus() | {"gpus": []}
    canned.answers[CAPACITY] = none
    problem = {
        "ready": False,
        "problem": "there is no specification",
        "remedy": "sudo nvidia-ctk cdi list",
    }
    canned.answers["GET /api/servers/hardware"] = records.hardware() | {"cdi": problem, "driver": None}
    canned.answers["GET /api/events/history"] = page([])
    visit(browser, canned, "/admin/gpus")
    says(browser, "This host has no GPUs", ".empty")
    says(browser, "sudo nvidia-ctk cdi list", ".empty .cmd")


def test_many_processes_and_hostile_names(browser: Driver, canned: Canned) -> None:
    records.administrator(canned)
    found = records.gpus()
    processes = [{"pid": number, "owner": HOSTILE, "used_bytes": None} for number in range(100)]
    found["gpus"][5]["processes"] = processes
    found["gpus"][0]["holders"] = [holder(HOSTILE, "x" * 200) | {"workspace_id": "ws-1"}]
    found["gpus"][3]["holders"] = found["gpus"][0]["holders"]
    canned.answers[CAPACITY] = found
    for size in (WIDE, NARROW):
        visit(browser, canned, "/admin/gpus", size=size)
        says(browser, "and 95 more processes", row(5))
        assert not browser.find_elements(By.CSS_SELECTOR, "main img, main script")
        assert overflow(browser) == 0
        assert not complaints(browser)
