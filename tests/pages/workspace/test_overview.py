"""The overview of a workspace, before a canned API."""

from __future__ import annotations

from typing import Any

import pytest
from pages import records as shared
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.states import State
from pages.visiting import NARROW, each_look, overflow, visit
from pages.workspace import records
from pages.workspace.states import FAILURE, IDLE, STATES, WARNING
from pages.workspaces.test_workspaces import texts
from selenium.webdriver.common.by import By

REASONS = "[data-reasons]"
RUNNING, STOPPED = "/workspaces/train-7b", "/workspaces/vllm-serve"
VLLM = "/api/workspaces/ws-vllm-serve"


@each_look
def test_as_the_mock_up_shows(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    records.serve_all(canned)
    visit(browser, canned, RUNNING, theme=theme, size=size)
    for text in ("18.2 of 32 cores", "171 of 256 GiB", "GPU 0", "97 %, 71.4 of 79.6 GiB"):
        says(browser, text, "[data-meters]")
    for text in (
        "TensorBoard",
        "http://127.0.0.1:20011",
        "ssh -N -L 20011:127.0.0.1:20011",
        "Open",
        "no port",
        "Exited with code 1",
    ):
        says(browser, text, "[data-body=apps]")
    says(browser, "Last output of train", "[data-part=last]")
    says(browser, "checkpoint written to /work/runs/7b/step-41880", "[data-body=last]")
    for text in (
        "ada opened a terminal",
        "root stopped it",
        "ada edited its size",
        "ada tried to start it",
        "it was found stopped: killed by its memory limit",
    ):
        says(browser, text, "[data-body=happened]")
    assert (
        len(browser.find_elements(By.CSS_SELECTOR, "[data-body=happened] tr")) == 6
    )  # begun and end are one
    for text in ("ws-train-7b", "torch, revision 4", "256 GiB, shared memory 64 GiB", "WANDB_MODE=offline",
                 "notice after 4 h; never stopped", "started again", "in your store"):  # fmt: skip
        says(browser, text, "[data-body=facts]")
    until(browser, lambda: canned.streams, "the stream")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_what_happened_names_what_it_happened_to(browser: Driver, canned: Canned) -> None:
    """From the row of the beginning; what no row says is left out, and so are returns to a terminal."""
    record = records.serve_all(canned)
    canned.answers["GET /api/audit"] = shared.page(
        [item | {"target": record["id"]} for item in records.HISTORY]
    )
    visit(browser, canned, RUNNING)
    says(browser, "ada removed the port board", "[data-body=happened]")
    assert texts(browser, "[data-body=happened] td:nth-child(2)") == [
        "ada removed the port board", "ada started tensorboard", "ada edited its title, size",
        "ada stopped an app", "ada renamed it", "an app has ended",
    ]  # fmt: skip


def test_the_meters_are_read_while_it_is_looked_at(browser: Driver, canned: Canned) -> None:
    """What a page asks by itself is no use of the session; a hidden tab asks nothing."""
    records.serve_all(canned)
    visit(browser, canned, RUNNING)
    request = f"GET {records.PATH}/monitor"
    until(browser, lambda: len(canned.sent(request)) >= 3, "three readings")
    assert all(headers["X_SVC_BACKGROUND"] == "1" for _, headers in canned.sent(request))
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    try:
        until(browser, lambda: len(canned.streams) >= 1, "the stream")
        before = len(canned.sent(request))
        browser.get(f"{canned.url}/api/version")
    finally:
        browser.close()
        browser.switch_to.window(first)
    until(browser, lambda: len(canned.sent(request)) > before, "readings again")


def test_killed_by_its_memory_limit(browser: Driver, canned: Canned) -> None:
    """The reason first, and the remedy as one button: more memory, and the start."""
    records.serve_all(canned, records.vllm())
    canned.answers[f"PATCH {VLLM}"] = records.answer(records.vllm())
    canned.answers[f"POST {VLLM}/start"] = records.vllm(status="running")
    visit(browser, canned, STOPPED)
    says(
        browser,
        "Killed by its memory limit. It had 96 GiB and wanted more; exit code 137, 14 min ago.",
        REASONS,
    )
    patch = '{"resources":{"memory_bytes":137438953472}}'
    says(browser, f"svc ws edit vllm-serve --file - <<< '{patch}' && svc ws start vllm-serve", REASONS)
    says(browser, "swap space 64 GiB is being pinned", "[data-body=last]")
    press(browser, f"{REASONS} [data-key=remedy]")
    until(browser, lambda: canned.sent(f"POST {VLLM}/start"), "the start")
    ((body, headers),) = canned.sent(f"PATCH {VLLM}")
    assert body == {"resources": {"memory_bytes": 128 * shared.GIB}}
    assert headers["IF_MATCH"] == records.VERSION


def test_a_remedy_that_is_refused(browser: Driver, canned: Canned) -> None:
    records.serve_all(canned, records.vllm())
    canned.refuse(
        f"PATCH {VLLM}", 409, "quota_exceeded", "your quota allows 512 GiB", hint="svc ws stop train-7b"
    )
    visit(browser, canned, STOPPED)
    press(browser, f"{REASONS} [data-key=remedy]")
    says(browser, "vllm-serve was not changed. Your quota allows 512 GiB.", "[data-answer]")
    assert not canned.sent(f"POST {VLLM}/start")


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"status_reason": "host_reboot", "exit_code": None}, "The host was rebooted 14 min ago."),
        ({"status_reason": "container_exited", "exit_code": 3}, "Its command ended with 3, 14 min ago."),
        ({"status_reason": "container_exited", "exit_code": 0}, "Its command has ended 14 min ago."),
        ({"status_reason": "idle_policy", "idle": IDLE | {"since": None}}, "been quiet for 2 h; 14 min ago."),
        ({"status_reason": "admin_stopped"}, "Stopped by an administrator 14 min ago."),
        (FAILURE, "It was not started. Crun: cannot mount /work."),
        ({"status_reason": "something_new"}, "Stopped: something new 14 min ago."),
        ({"status_reason": None, "image_status": "missing"}, "Its image is not in your store."),
    ],
)  # fmt: skip
def test_why_it_does_not_run(browser: Driver, canned: Canned, more: dict[str, Any], text: str) -> None:
    records.serve_all(canned, records.vllm(**more))
    visit(browser, canned, STOPPED)
    says(browser, text, REASONS)
    assert overflow(browser) == 0


def test_its_own_command_is_a_fact(browser: Driver, canned: Canned) -> None:
    records.serve_all(canned, records.vllm(command=["sh", "-c", "echo $HOME"]))
    visit(browser, canned, STOPPED)
    says(browser, "sh -c 'echo $HOME'", "[data-body=facts]")


def test_stopped_by_its_owner_there_is_nothing_to_say(browser: Driver, canned: Canned) -> None:
    records.serve_all(canned, records.vllm(status_reason="user_requested"))
    visit(browser, canned, STOPPED)
    says(browser, "swap space", "[data-body=last]")
    assert not browser.find_elements(By.CSS_SELECTOR, f"{REASONS} .notice")
    assert not find(browser, "[data-part=now]").is_displayed()
    assert not canned.sent(f"GET {VLLM}/monitor")


def test_after_a_reboot_it_can_be_started_for_good(browser: Driver, canned: Canned) -> None:
    records.serve_all(canned, records.vllm(status_reason="host_reboot"))
    canned.answers[f"PATCH {VLLM}"] = records.answer(records.vllm(restart_on_boot=True))
    canned.answers[f"POST {VLLM}/start"] = records.vllm(status="running")
    visit(browser, canned, STOPPED)
    press(browser, f"{REASONS} [data-key=always]")
    until(browser, lambda: canned.sent(f"POST {VLLM}/start"), "the start")
    assert canned.sent(f"PATCH {VLLM}")[0][0] == {"restart_on_boot": True}


@pytest.mark.parametrize("make", [records.running, records.vllm])
def test_a_warning_has_its_command(browser: Driver, canned: Canned, make: Any) -> None:
    records.serve_all(canned, make(warnings=[WARNING]))
    visit(browser, canned, RUNNING if make is records.running else STOPPED)
    says(browser, f"{WARNING['message']}.", REASONS)
    says(browser, WARNING["hint"], REASONS)


def test_a_lost_gpu(browser: Driver, canned: Canned) -> None:
    records.serve_all(canned, records.running(health="gpu_lost"))
    visit(browser, canned, RUNNING)
    says(browser, "It has lost its GPU.", REASONS)
    press(browser, f"{REASONS} [data-key=remedy]")
    says(browser, "svc ws restart train-7b", "dialog[open] code")


def test_creating_shows_bytes_and_follows(browser: Driver, canned: Canned) -> None:
    STATES["overview creating"].prepare(canned)
    visit(browser, canned, STOPPED)
    says(browser, "5 of 8 GiB, about 30 s left", REASONS)
    until(browser, lambda: canned.streams, "the stream")
    progress = {"current": 7 * shared.GIB, "total": 8 * shared.GIB, "unit": "bytes", "seconds_left": 9}
    data = {"kind": "setup", "status": "running", "phase": "pulling", "progress": progress}
    canned.event("operation.progress", subject={"type": "operation", "id": "op-1", "name": ""}, data=data)
    says(browser, "7 of 8 GiB, about 9 s left", REASONS)
    records.serve_all(canned, records.vllm(status_reason=None))
    canned.event("workspace.status_changed", subject={"type": "workspace", "id": "ws-vllm-serve", "name": ""})
    says(browser, "Stopped", "[data-state]")


def test_no_gpu_is_free(browser: Driver, canned: Canned) -> None:
    """Who has them; and a start by itself when the capacity changes, until it is told to stop."""
    state: State = STATES["overview start refused"]
    state.prepare(canned)
    visit(browser, canned, STOPPED)
    press(browser, "[data-actions] [data-key=start]")
    says(browser, "vllm-serve was not started. vllm-serve asks for 1 GPU and none is free.", "[data-answer]")
    says(browser, "hedy", "[data-answer] .bank")
    press(browser, "[data-answer] [data-key=wait]")
    says(browser, "Trying", "[data-answer]")
    until(browser, lambda: canned.streams, "the stream")
    canned.event("capacity.changed")
    until(browser, lambda: len(canned.sent(f"POST {VLLM}/start")) == 2, "another try")
    record = records.vllm(status="running", allowed_actions=shared.ACTIONS["running"])
    records.serve_all(canned, record)
    canned.answers[f"POST {VLLM}/start"] = record
    canned.event("capacity.changed")
    says(browser, "Running", "[data-state]")
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "[data-answer] .notice"), "no notice")


def test_open_an_app(browser: Driver, canned: Canned) -> None:
    records.serve_all(canned)
    visit(browser, canned, RUNNING)
    press(browser, "[data-key=open-tensorboard]")
    says(browser, "Open TensorBoard", "dialog[open]")
    says(browser, "ssh -N -L 20011:127.0.0.1:20011 ada@gpu-01.lab.example", "dialog[open] code")
    assert find(browser, "dialog[open] a.primary").get_attribute("href") == "http://127.0.0.1:20011/"


def test_output_is_text(browser: Driver, canned: Canned) -> None:
    """Colours of a terminal, overwritten lines and mark-up are no more than text."""
    records.serve_all(canned, records.running(launchers=[]))
    canned.answers[f"GET {records.PATH}/logs"] = records.log(
        "\x1b[31mred\x1b[0m <b>bold</b>", "10 %\r50 %\r100 %", "\u202egnp"
    )
    visit(browser, canned, RUNNING)
    says(browser, "red <b>bold</b>\n100 %", "[data-body=last] pre")


def test_hostile_words(browser: Driver, canned: Canned) -> None:
    STATES["overview hostile"].prepare(canned)
    visit(browser, canned, RUNNING, size=NARROW)
    says(browser, "<img src=x onerror=alert(1)>", "[data-body=facts]")
    says(browser, "ada opened a terminal", "[data-body=happened]")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_a_button_stays_under_the_hand(browser: Driver, canned: Canned) -> None:
    """Events that change nothing here build nothing anew."""
    records.serve_all(canned, records.vllm())
    visit(browser, canned, STOPPED)
    button = find(browser, f"{REASONS} [data-key=remedy]")
    says(browser, "swap space", "[data-body=last]")
    until(browser, lambda: canned.streams, "the stream")
    before = len(canned.sent(f"GET {VLLM}"))
    canned.event("gpu.lost")
    until(browser, lambda: len(canned.sent(f"GET {VLLM}")) > before, "a reading")
    says(browser, "swap space", "[data-body=last]")
    assert button.is_displayed()  # it would be stale


def test_how_its_apps_are_reached(browser: Driver, canned: Canned) -> None:
    """Addresses, the line that forwards each, and tokens that are not shown."""
    records.serve_kinds(canned)
    visit(browser, canned, RUNNING)
    apps = "[data-body=apps]"
    for text in (
        records.SSHD,
        "https://127.0.0.1:20013",
        "127.0.0.1:20015",
        "ssh -N -L 20014:127.0.0.1:20014",
    ):
        says(browser, text, apps)
    press(browser, "[data-key=show-token-code]")
    says(browser, f"{records.TOKEN}-pw", apps)
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_an_app_that_ends_within_the_start(browser: Driver, canned: Canned) -> None:
    """It runs, and says which of its apps does not, with its last lines and its log."""
    STATES["overview app failed at once"].prepare(canned)
    visit(browser, canned, STOPPED)
    press(browser, "[data-actions] [data-key=start]")
    says(browser, "Its app jupyter has ended with 1.", "[data-answer]")
    says(browser, "OSError: [Errno 98] Address already in use", "[data-answer] [data-output]")
    log = find(browser, "[data-answer] a")
    assert str(log.get_attribute("href")).endswith("/workspaces/vllm-serve/logs?launcher=jupyter")
    press(browser, "[data-answer] [data-key=dismiss]")
    until(browser, lambda: not find(browser, "[data-answer]").is_displayed(), "no answer")
