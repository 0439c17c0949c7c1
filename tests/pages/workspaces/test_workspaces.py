"""The workspaces screen in all its states, before a canned API."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from pages import records
from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.visiting import NARROW, WIDE, focused, overflow, visit
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>${7*7}{{7*7}}\u202egnp.exe"


def row(driver: Driver, name: str) -> str:
    """The selector of a row."""
    find(driver, f'tr[data-id="ws-{name}"]')
    return f'tr[data-id="ws-{name}"]'


def texts(driver: Driver, selector: str) -> list[str]:
    """The texts of all such elements at one moment: rows may be replaced at any."""
    script = "return [...document.querySelectorAll(arguments[0])].map(element => element.innerText)"
    return list(driver.execute_script(script, selector))


def names(driver: Driver) -> list[str]:
    """The names in the list, from top to bottom."""
    return texts(driver, "tbody .name")


def line(driver: Driver) -> str:
    """The command at the foot."""
    return texts(driver, "[data-command]")[0]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW, (1920, 1080)])
def test_as_the_mock_up_shows(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    visit(browser, canned, "/workspaces", theme=theme, size=size)
    says(browser, "tensorboard", row(browser, "train-7b"))
    says(browser, "6, of which 3 run", ".lede")
    says(browser, "2 of 8 GPUs are free; your quota lab has 1 GPU left")
    says(browser, "8 \u00d7 NVIDIA H100 80GB HBM3")
    for name, text in {
        "train-7b": "Running", "notebook": "Idle, stops in 2",
        "label-tool": "label-studio ended\nwith 1: its log",
        "vllm-serve": "killed by its memory limit, 14 min ago",
        "paper-figures": "the host was rebooted, 1 d ago",
        "cuda-samples": "the engine failed, 2 d ago",
    }.items():  # fmt: skip
        says(browser, text, row(browser, name))
    says(browser, "7 is out", row(browser, "paper-figures"))
    says(browser, "5.2 of 8.4 GiB, about 30 s left", 'tr[data-id="op-k3f81c0z"]')
    slots = [text.split() for text in texts(browser, ".slot")]
    assert slots[0] == ["0", "yours", "train-7b", "exclusive"]
    assert slots[4] == ["4", "shared", "notebook", "with", "katherine"]
    assert slots[5] == ["5", "in", "use", "hedy", "outside", "svc"]
    assert slots[7] == ["7", "free"]
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_what_a_cold_visit_asks_for(browser: Driver, canned: Canned) -> None:
    """Before the first rows: session, list, headroom. What a page asks by itself is no use of the session."""
    visit(browser, canned, "/workspaces")
    until(browser, lambda: canned.sent("GET /api/operations"), "the set-ups")
    first = [request for request, _, _ in canned.requests[:3]]
    assert sorted(first) == ["GET /api/auth/session", "GET /api/workspaces", "GET /api/workspaces/capacity"]
    until(browser, lambda: canned.sent("GET /api/events"), "the stream")
    for request, _, headers in canned.requests[3:]:
        assert headers["X_SVC_BACKGROUND"] == "1", request
        assert headers["X_SVC_SESSION"] == "canned", request
    files = browser.execute_script(
        "return performance.getEntriesByType('resource').map(e => e.name.split('/').pop())"
    )
    static = {name for name in files if name.endswith((".js", ".css"))}
    later = {"sign_in-again.js"}  # once the page is live
    assert static - later == {"theme.js", "app.css", "app.js", "workspaces-screen.js"}


def test_nothing_moves_while_it_loads(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/workspaces")
    says(browser, "tensorboard", row(browser, "train-7b"))
    shift = browser.execute_async_script(
        "const done = arguments[0]; let sum = 0;"
        "new PerformanceObserver(list => { for (const e of list.getEntries()) sum += e.value; })"
        ".observe({type: 'layout-shift', buffered: true}); setTimeout(() => done(sum), 300);"
    )
    assert shift < 0.01


def test_while_it_loads(browser: Driver, canned: Canned) -> None:
    """Bones after a moment, in the rows' own places; no answer is awaited for longer than it takes."""
    come = threading.Event()

    def late() -> tuple[int, Any, dict[str, str]]:
        come.wait(20)
        return 200, records.page(records.of_the_mock_up()), {}

    canned.answers["GET /api/workspaces"] = late
    visit(browser, canned, "/workspaces")
    find(browser, "section[aria-busy=true][aria-label='Loading workspaces'] .skel")
    find(browser, "section[aria-busy=true][aria-label='Loading what is yours now'] .skel")
    come.set()
    says(browser, "train-7b")
    assert not browser.find_elements(By.CSS_SELECTOR, ".skel")


def test_without_gpus_there_is_no_column_of_them(browser: Driver, canned: Canned) -> None:
    """Unless a workspace wants some: that it cannot have them is worth a column."""
    host = records.capacity()["host"] | {"gpus": 0, "gpus_free": 0}
    canned.answers["GET /api/workspaces/capacity"] = records.capacity() | {"gpus": [], "host": host}
    plain = records.workspace("plain")
    canned.answers["GET /api/workspaces"] = records.page([plain])
    visit(browser, canned, "/workspaces")
    says(browser, "this host has no GPUs")
    column = "[data-list] thead th:nth-child(3)"
    until(browser, lambda: not find(browser, column).is_displayed(), "no column")
    wants = records.workspace("wants", resources={"gpu_count": 1})
    canned.answers["GET /api/workspaces"] = records.page([plain, wants])
    until(browser, lambda: canned.streams, "the stream")
    canned.event("workspace.created", subject={"type": "workspace", "id": "ws-wants", "name": "wants"})
    until(browser, lambda: find(browser, column).is_displayed(), "the column")


def test_an_app_that_ends_later(browser: Driver, canned: Canned) -> None:
    """Its event brings what has become of it; one that has ended well needs nobody."""
    visit(browser, canned, "/workspaces")
    says(browser, "tensorboard", row(browser, "train-7b"))
    until(browser, lambda: canned.streams, "the stream")
    live = records.live()
    live["items"][0]["launchers"] = [
        {"name": "tensorboard", "state": "exited", "exit_code": 137},
        {"name": "once", "state": "exited", "exit_code": 0},
        {"name": "lost", "state": "exited", "exit_code": None},  # nobody was there to see with which
    ]
    canned.answers["GET /api/usage/workspaces"] = live
    subject = {"type": "launcher", "id": "ws-train-7b/tensorboard", "name": "tensorboard"}
    canned.event("launcher.status_changed", subject=subject, data={"state": "exited", "exit_code": 137})
    says(browser, "tensorboard ended\nwith 137: its log", row(browser, "train-7b"))
    log = find(browser, f"{row(browser, 'train-7b')} [data-key=log-tensorboard]")
    assert str(log.get_attribute("href")).endswith("/workspaces/train-7b/logs?launcher=tensorboard")
    says(browser, "lost ended\nits log", row(browser, "train-7b"))
    assert len(browser.find_elements(By.CSS_SELECTOR, f"{row(browser, 'train-7b')} .is-danger")) == 2


def test_no_workspace_yet(browser: Driver, canned: Canned) -> None:
    for request in ("GET /api/workspaces", "GET /api/operations", "GET /api/usage/workspaces"):
        canned.answers[request] = records.page([])
    visit(browser, canned, "/workspaces")
    says(browser, "No workspace yet", ".empty")
    says(browser, "svc template list", ".empty .cmd")
    says(browser, "Yours now")
    assert len(browser.find_elements(By.CSS_SELECTOR, ".btn.primary")) == 1 + len(
        browser.find_elements(By.CSS_SELECTOR, "dialog .btn.primary")
    )


def test_more_than_the_host_has_is_no_refusal(browser: Driver, canned: Canned) -> None:
    """Without a limit: one's own beside the host's, not as if it were free of others."""
    found = records.capacity()
    found["quota"] |= {"max_cpu": None}
    found["used"] |= {"cpu": 65}
    canned.answers["GET /api/workspaces/capacity"] = found | {"host": found["host"] | {"cpus": 2}}
    visit(browser, canned, "/workspaces")
    says(browser, "65; the host has 2", "[data-room]")
    assert not browser.find_elements(By.CSS_SELECTOR, "[data-room] .over")


def test_a_list_that_could_not_be_read(browser: Driver, canned: Canned) -> None:
    """Its reason, its code, and the next try by itself."""
    canned.refuse(
        "GET /api/workspaces", 503, "engine_unavailable", "Podman could not answer", after=2, retryable=True,
    )  # fmt: skip
    visit(browser, canned, "/workspaces")
    says(browser, "Your workspaces could not be read. Podman could not answer.")
    says(browser, "by itself in")
    says(browser, "engine_unavailable, req-5b1c09aa41")
    says(browser, "2 of 8 GPUs are free")  # what could be read is there
    canned.answers["GET /api/workspaces"] = records.page(records.of_the_mock_up())
    says(browser, "train-7b")


def test_no_permission(browser: Driver, canned: Canned) -> None:
    """Root administers, and has no workspaces: the API's words and command; no try that would fail again."""
    for request in ("GET /api/workspaces", "GET /api/workspaces/capacity"):
        canned.refuse(
            request,
            403,
            "root_not_allowed",
            "root administers; it has no workspaces",
            hint="svc ws list --all",
        )
    visit(browser, canned, "/workspaces")
    says(browser, "Root administers; it has no workspaces.")
    says(browser, "svc ws list --all", ".notice .cmd")
    assert "Try again" not in find(browser, "main").text


def test_a_disabled_account(browser: Driver, canned: Canned) -> None:
    canned.refuse("GET /api/auth/session", 403, "account_disabled", "the account is disabled")
    visit(browser, canned, "/workspaces")
    says(browser, "This account cannot be used. The account is disabled.")


def test_the_session_ended(browser: Driver, canned: Canned) -> None:
    """Sign in over the page: what was typed is still there afterwards."""
    visit(browser, canned, "/workspaces")
    says(browser, "tensorboard", row(browser, "train-7b"))
    find(browser, "[data-search]").send_keys("train")
    canned.refuse(
        "POST /api/workspaces/ws-train-7b/stop", 401, "unauthenticated", "a valid credential is needed"
    )
    press(browser, "[data-id='ws-train-7b'] [data-key=stop]")
    press(browser, "dialog[open] button[value=confirm]")
    says(browser, "What you typed is kept on this page", "#signed-out")
    assert focused(browser) == "password"
    browser.switch_to.active_element.send_keys("three kites above the weir" + Keys.ENTER)
    until(browser, lambda: not browser.find_elements(By.ID, "signed-out"), "the page again")
    assert find(browser, "[data-search]").get_property("value") == "train"
    until(browser, lambda: names(browser) == ["train-7b"], "what was searched")
    ((body, _),) = canned.sent("POST /api/auth/login")
    assert body["username"] == "ada"


def test_no_session(browser: Driver, canned: Canned) -> None:
    """An old secret in the storage: to the sign-in screen, and back."""
    canned.refuse("GET /api/auth/session", 401, "unauthenticated", "a valid credential is needed")
    visit(browser, canned, "/workspaces?x=1")
    until(
        browser,
        lambda: browser.current_url.endswith("/sign-in?next=%2Fworkspaces%3Fx%3D1"),
        "the sign-in screen",
    )


def test_the_service_restarts(browser: Driver, canned: Canned) -> None:
    """A banner with the time of what is shown; buttons wait; and then everything is read anew."""
    visit(browser, canned, "/workspaces")
    says(browser, "tensorboard", row(browser, "train-7b"))
    until(browser, lambda: canned.streams, "the stream")
    for request in ("GET /api/health", "GET /api/events"):
        canned.refuse(request, 503, "unavailable", "stopping", retryable=True)
    canned.event("restarting")
    canned.streams[0].end()
    says(browser, "The service is restarting", ".banner[role=status]")
    says(browser, "What you see is from", ".banner")
    browser.execute_script("scrollTo(0, 1000)")
    assert (
        find(browser, ".banner").rect["y"] - browser.execute_script("return scrollY") >= 0
    )  # seen from anywhere
    says(browser, "trying again", ".banner")
    waits = "[data-id='ws-train-7b'] [data-key=stop][aria-disabled=true]"
    find(browser, waits)
    press(browser, waits)
    assert not browser.find_elements(By.CSS_SELECTOR, "dialog[open]")
    canned.answers |= records.everything() | {
        "GET /api/workspaces": records.page([records.workspace("afterwards")])
    }
    del canned.answers["GET /api/events"]
    says(browser, "afterwards")
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, ".banner"), "no banner")


def test_no_connection(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/workspaces")
    says(browser, "tensorboard", row(browser, "train-7b"))
    until(browser, lambda: canned.streams, "the stream")
    browser.execute_cdp_cmd("Network.enable", {})
    off = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", off)
    canned.streams[0].end()
    says(browser, "No network", ".banner")
    assert "train-7b" in find(browser, "tbody").text  # what was read is still shown
    browser.execute_cdp_cmd("Network.emulateNetworkConditions", off | {"offline": False})
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, ".banner"), "no banner")


def test_a_refusal_goes_when_the_service_answers_again(browser: Driver, canned: Canned) -> None:
    canned.break_off("POST /api/workspaces/ws-paper-figures/start")
    visit(browser, canned, "/workspaces")
    until(browser, lambda: canned.streams, "the stream")
    press(browser, f"{row(browser, 'paper-figures')} [data-key=start]")
    says(browser, "paper-figures was not started. The service does not answer.", "[data-answer]")
    canned.streams[-1].end()
    until(browser, lambda: len(canned.streams) > 1, "the next stream")
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "[data-answer] .notice"), "no notice")


def test_live(browser: Driver, canned: Canned) -> None:
    """A row changes where it is; a filter does not take it away under the hand; what is new comes last."""
    visit(browser, canned, "/workspaces")
    says(browser, "tensorboard", row(browser, "train-7b"))
    press(browser, "[data-filter=running]")
    until(browser, lambda: names(browser) == ["label-tool", "notebook", "train-7b"], "what runs")
    until(browser, lambda: canned.streams, "the stream")
    items = [item for item in records.of_the_mock_up() if item["name"] != "label-tool"]
    items += [records.workspace("label-tool"), records.workspace("brand-new", "running")]
    canned.answers["GET /api/workspaces"] = records.page(items)
    canned.event(
        "workspace.status_changed", subject={"type": "workspace", "id": "ws-label-tool", "name": "label-tool"}
    )
    says(browser, "Stopped", row(browser, "label-tool"))
    assert names(browser) == ["label-tool", "notebook", "train-7b", "brand-new"]
    says(browser, "4", "[data-filter=stopped] .num")


def test_the_progress_of_a_set_up(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/workspaces")
    says(browser, "5.2 of 8.4 GiB", "tbody")
    until(browser, lambda: canned.streams, "the stream")
    progress = {
        "current": 8 * records.GIB,
        "total": int(8.4 * records.GIB),
        "unit": "bytes",
        "seconds_left": 4,
    }
    data = {"kind": "setup", "status": "running", "phase": "pulling", "progress": progress}
    subject = {"type": "operation", "id": "op-k3f81c0z", "name": ""}

    def follows() -> bool:  # a list that was asked for before it has the older figure, and may come after it
        canned.event("operation.progress", subject=subject, data=data)
        return "8 of 8.4 GiB, about 4 s left" in find(browser, "tbody").text

    until(browser, follows, "the progress")


def test_stop_asks_first(browser: Driver, canned: Canned) -> None:
    """It says what is lost and shows its command; the focus is on what is harmless; Esc is no."""
    visit(browser, canned, "/workspaces")
    says(browser, "tensorboard", row(browser, "train-7b"))
    button = "[data-id='ws-train-7b'] [data-key=stop]"
    press(browser, button)
    says(browser, "Stop train-7b?", "dialog[open]")
    says(browser, "svc ws stop train-7b", "dialog[open] code")
    assert focused(browser) == "Let it run"
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "dialog[open]"), "no dialog")
    assert not canned.sent("POST /api/workspaces/ws-train-7b/stop")

    def stop() -> tuple[int, Any, dict[str, str]]:
        canned.answers["GET /api/workspaces"] = records.page([records.workspace("train-7b")])
        return 200, records.workspace("train-7b"), {}

    canned.answers["POST /api/workspaces/ws-train-7b/stop"] = stop
    press(browser, button)
    press(browser, "dialog[open] button[value=confirm]")
    says(browser, "Stopped", row(browser, "train-7b"))
    says(browser, "Start", row(browser, "train-7b"))
    assert [body for body, _ in canned.sent("POST /api/workspaces/ws-train-7b/stop")] == [{}]


def test_a_refusal_is_a_next_step(browser: Driver, canned: Canned) -> None:
    """The API's message, a button that does the hint, the hint as a command, the code."""
    hint = "svc image pull tpl-1 --wait"
    action = {
        "label": "Pull the image",
        "method": "POST",
        "path": "/api/templates/tpl-1/image/pull",
        "body": {},
    }
    canned.refuse(
        "POST /api/workspaces/ws-vllm-serve/start",
        409,
        "image_missing",
        "the image is not in your store",
        hint=hint,
        action=action,
    )
    canned.answers["POST /api/templates/tpl-1/image/pull"] = (202, {"operation": records.SETUP}, {})
    visit(browser, canned, "/workspaces")
    press(browser, f"{row(browser, 'vllm-serve')} [data-key=start]")
    says(browser, "vllm-serve was not started. The image is not in your store.", ".notice[role=alert]")
    says(browser, hint, ".notice .cmd")
    says(browser, "image_missing, req-5b1c09aa41", ".notice .code")
    press(browser, ".notice [data-key=act]")
    until(browser, lambda: canned.sent("POST /api/templates/tpl-1/image/pull"), "the action")
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, ".notice[role=alert]"), "no notice")


def test_delete_and_keep(browser: Driver, canned: Canned) -> None:
    def delete() -> tuple[int, Any, dict[str, str]]:
        canned.answers["GET /api/workspaces"] = records.page(records.of_the_mock_up()[1:])
        return 204, None, {}

    canned.answers["DELETE /api/workspaces/ws-cuda-samples"] = delete
    canned.answers["POST /api/workspaces/ws-notebook/extend"] = records.workspace("notebook", "running")
    visit(browser, canned, "/workspaces")
    press(browser, f"{row(browser, 'notebook')} [data-key=keep]")
    kept = until(browser, lambda: canned.sent("POST /api/workspaces/ws-notebook/extend"), "the request")
    assert kept[0][0] == {"hours": 12}
    press(browser, f"{row(browser, 'cuda-samples')} [data-key=more]")
    press(browser, f"{row(browser, 'cuda-samples')} details button.danger")
    says(browser, "Files in /work stay", "dialog[open]")
    assert focused(browser) == "Cancel"
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: "cuda-samples" not in names(browser), "no row")
    until(browser, lambda: browser.switch_to.active_element.get_attribute("data-id"), "the focus in a row")
    assert browser.switch_to.active_element.get_attribute("data-id") == "ws-label-tool"  # in its place


def test_names_in_their_natural_order(browser: Driver, canned: Canned) -> None:
    items = [records.workspace(name) for name in ("base-1", "base-10", "base-2")]
    canned.answers["GET /api/workspaces"] = records.page(items)
    visit(browser, canned, "/workspaces")
    until(browser, lambda: names(browser)[:3] == ["base-1", "base-2", "base-10"], "base-2 before base-10")


def test_a_title_turns_nothing_around(browser: Driver, canned: Canned) -> None:
    """What is not seen is written out, here and in the line."""
    one = records.workspace("turned", display_name="\u202eabc")
    canned.answers |= {"GET /api/workspaces": records.page([one]), "GET /api/workspaces/turned": one}
    visit(browser, canned, "/workspaces/turned")
    until(browser, lambda: find(browser, "[data-display]").text == "\\u202eabc", "the title")


def test_the_line_says_what_a_button_does(browser: Driver, canned: Canned) -> None:
    """Before it is pressed: on focus and under the pointer."""
    visit(browser, canned, "/workspaces")
    says(browser, "tensorboard", row(browser, "train-7b"))
    assert line(browser) == "svc ws list"
    for key, command in {"name": "svc ws get", "terminal": "svc ws shell", "stop": "svc ws stop"}.items():
        browser.execute_script(
            "arguments[0].focus()", find(browser, f"[data-id='ws-train-7b'] [data-key={key}]")
        )
        assert line(browser) == f"{command} train-7b"
    browser.execute_script("document.activeElement.blur()")
    until(browser, lambda: line(browser) == "svc ws list", "the screen's own line")
    press(browser, "[data-filter=stopped]")
    stopped = "/api/workspaces?status=stopped,failed,creating"
    until(browser, lambda: line(browser) == f"svc api GET '{stopped}'", "the line of the filter")
    find(browser, "[data-search]").send_keys("vllm")
    until(browser, lambda: line(browser) == f"svc api GET '{stopped}&q=vllm'", "the line of the search")


def test_hostile_text_is_text(browser: Driver, canned: Canned) -> None:
    """Whatever a record, an error or a holder is called, nothing of it becomes mark-up."""
    items = [
        records.workspace("a", "running", display_name=HOSTILE, template={"name": HOSTILE}),
        records.workspace(
            "b",
            "failed",
            status_reason=HOSTILE,
            last_error={"code": HOSTILE, "message": HOSTILE, "at": records.ago(hours=1)},
        ),
    ]
    capacity = records.capacity()
    capacity["quota"]["name"] = capacity["gpus"][0]["model"] = HOSTILE
    capacity["gpus"][2]["holders"] = [records.holder(HOSTILE, HOSTILE)]
    session = json.loads(json.dumps(records.SESSION))
    session["user"]["name"] = HOSTILE
    live = {"items": [{"id": "ws-a", "at": None, "launchers": [{"name": HOSTILE, "state": "exited"}]}]}
    canned.answers |= {
        "GET /api/workspaces": records.page(items),
        "GET /api/workspaces/capacity": capacity,
        "GET /api/auth/session": session,
        "GET /api/usage/workspaces": live,
    }
    canned.refuse(
        "POST /api/workspaces/ws-b/start",
        409,
        HOSTILE,
        HOSTILE,
        hint=f"svc {HOSTILE}",
        action={"label": HOSTILE, "method": "POST", "path": "/api/x", "body": {}},
    )
    visit(browser, canned, "/workspaces")
    says(browser, "ended", row(browser, "a"))
    press(browser, f"{row(browser, 'b')} [data-key=start]")
    says(browser, "was not started", ".notice")
    assert not browser.find_elements(By.CSS_SELECTOR, "main img, main script, .side img")
    assert not complaints(browser)


def test_trusted_types_hold(browser: Driver, canned: Canned) -> None:
    """Text cannot be made mark-up by anybody's script, and none comes from elsewhere."""
    visit(browser, canned, "/workspaces")
    says(browser, "train-7b")
    for attempt in (
        "document.body.innerHTML = 'x'",
        "document.write('x')",
        "trustedTypes.createPolicy('p', {})",
    ):
        thrown = browser.execute_script(
            f"try {{ {attempt}; return ''; }} catch (error) {{ return error.name; }}"
        )
        assert thrown == "TypeError", attempt


def test_by_keyboard_alone(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/workspaces")
    says(browser, "tensorboard", row(browser, "train-7b"))
    body = find(browser, "body")
    body.send_keys("j")
    assert "cuda-samples" in browser.switch_to.active_element.text
    browser.switch_to.active_element.send_keys("j")
    assert "label-tool" in browser.switch_to.active_element.text
    browser.switch_to.active_element.send_keys("/")
    assert focused(browser) == "Search workspaces"
    browser.switch_to.active_element.send_keys("vllm")
    until(
        browser,
        lambda: names(browser) == ["vllm-serve", "eval-harness"] or names(browser) == ["vllm-serve"],
        "the search",
    )
    find(browser, "[data-search]").send_keys(Keys.ESCAPE)
    browser.execute_script("document.activeElement.blur()")
    find(browser, "body").send_keys("?")
    says(browser, "Next and previous row", "dialog[open]")
    find(browser, "#keys").send_keys(Keys.ESCAPE)
    find(browser, "body").send_keys("gt")
    until(browser, lambda: browser.current_url.endswith("/templates"), "the templates")
    says(browser, "svc template list")


def test_one_stream_for_all_tabs(browser: Driver, canned: Canned) -> None:
    """The second tab hears what the first reads; and reads itself once the first is closed."""
    visit(browser, canned, "/workspaces")
    until(browser, lambda: canned.streams, "the stream")
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    second = browser.current_window_handle
    try:
        browser.get(f"{canned.url}/workspaces")
        says(browser, "tensorboard", row(browser, "train-7b"))
        canned.answers["GET /api/workspaces"] = records.page([records.workspace("heard")])
        canned.event("workspace.created")
        says(browser, "heard")
        assert len(canned.streams) == 1
    finally:
        browser.switch_to.window(first)
        browser.close()
        browser.switch_to.window(second)
    until(browser, lambda: len(canned.streams) == 2, "a stream of the second tab")
    (_, headers) = canned.sent("GET /api/events")[-1]
    assert headers["LAST_EVENT_ID"] == "1"


def test_signing_out_ends_it_in_all_tabs(browser: Driver, canned: Canned) -> None:
    visit(browser, canned, "/workspaces")
    says(browser, "tensorboard", row(browser, "train-7b"))
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    browser.get(f"{canned.url}/workspaces")
    says(browser, "ada", ".who")
    until(browser, lambda: find(browser, ".who [data-user]").text == "ada", "who it is")
    press(browser, ".who [data-sign-out]")
    until(browser, lambda: browser.current_url.endswith("/sign-in"), "the sign-in screen")
    assert canned.sent("POST /api/auth/logout")
    browser.close()
    browser.switch_to.window(first)
    says(browser, "You signed out in another tab.", "#signed-out")


@pytest.mark.parametrize("width", [500, 700, 960, 1180, 1920])
def test_no_sideways_scrolling(browser: Driver, canned: Canned, width: int) -> None:
    visit(browser, canned, "/workspaces", size=(width, 900))
    says(browser, "tensorboard", row(browser, "train-7b"))
    assert overflow(browser) == 0
