"""The apps and ports of a workspace, before a canned API."""

from __future__ import annotations

from typing import Any

from pages.canned import Canned
from pages.chromium import Driver, complaints, find, press, says, until
from pages.visiting import NARROW, each_look, focused, overflow, visit
from pages.workspace import records
from pages.workspace.states import HOSTILE
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

PATH = "/workspaces/train-7b/apps"
APPS, PORTS = "[data-rows=apps]", "[data-rows=ports]"


def line(driver: Driver) -> str:
    """The command at the foot."""
    return find(driver, "[data-command]").text


def app(name: str) -> str:
    """The selector of an app's row."""
    return f"{APPS} [data-id='{name}']"


@each_look
def test_as_the_mock_up_shows(browser: Driver, canned: Canned, theme: str, size: tuple[int, int]) -> None:
    records.serve_all(canned)
    canned.answers[f"GET {records.PATH}/launchers/jupyter/logs"] = records.log(
        "Traceback", "OSError: [Errno 98] Address already in use"
    )
    visit(browser, canned, PATH, theme=theme, size=size)
    for name, texts in {
        "tensorboard": (
            "TensorBoard",
            "Started",
            "3 h",
            "http://127.0.0.1:20011",
            "yes",
            "Open",
            "Log",
            "Stop",
        ),
        "train": ("Trainer", "no port", "no"),
        "jupyter": (
            "Exited with code 1",
            "OSError: [Errno 98] Address already in use",
            "22 min ago",
            "Start",
        ),
    }.items():
        for text in texts:
            says(browser, text, app(name))
    for text in ("board", "6006", "127.0.0.1:20011", "Open", "2 connections", "you",
                 "ssh -N -L 20011:127.0.0.1:20011 ada@gpu-01.lab.example", "Remove"):  # fmt: skip
        says(browser, text, f"{PORTS} [data-id=board]")
    until(browser, lambda: line(browser) == "svc ws launchers train-7b && svc ws ports train-7b", "the line")
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_start_and_stop(browser: Driver, canned: Canned) -> None:
    """What a launcher answers is shown at once, in its place."""
    records.serve_all(canned)
    visit(browser, canned, PATH)
    path = f"{records.PATH}/launchers"
    stopped = records.launcher("train", "Trainer", "stopped")

    def stop() -> dict[str, Any]:
        items = [item for item in records.launchers() if item["name"] != "train"]
        canned.answers[f"GET {path}"] = {"items": [items[0], stopped, items[1]]}
        return stopped

    canned.answers[f"POST {path}/train/stop"] = stop
    button = find(browser, f"{app('train')} [data-key=stop-train]")
    assert button.get_attribute("data-cmd") == "svc ws launcher stop train-7b train"
    press(browser, f"{app('train')} [data-key=stop-train]")
    says(browser, "svc ws launcher stop train-7b train", "dialog[open] .cmd")
    assert focused(browser) == "Let it run"
    assert not canned.sent(f"POST {path}/train/stop")
    press(browser, "dialog[open] button[value=confirm]")
    says(browser, "Stopped", app("train"))
    names = [row.get_attribute("data-id") for row in browser.find_elements(By.CSS_SELECTOR, f"{APPS} tr")]
    assert names == ["tensorboard", "train", "jupyter"]


def test_an_app_that_ends_at_once(browser: Driver, canned: Canned) -> None:
    records.serve_all(canned)
    action = {"label": "Show its output", "method": "GET", "body": None,
              "path": "/api/workspaces/train-7b/launchers/jupyter/logs"}  # fmt: skip
    canned.refuse(
        f"POST {records.PATH}/launchers/jupyter/start", 409, "exited_at_once", "jupyter ended with 1",
        hint="svc ws logs train-7b --launcher jupyter", action=action,
    )  # fmt: skip
    visit(browser, canned, PATH)
    press(browser, "[data-key=start-jupyter]")
    says(browser, "JupyterLab was not started. Jupyter ended with 1.", "[data-answer]")
    press(browser, "[data-answer] [data-key=act]")
    until(browser, lambda: browser.current_url.endswith("/train-7b/logs?launcher=jupyter"), "its log")


def test_one_that_does_not_run(browser: Driver, canned: Canned) -> None:
    """Nothing can be started in it, and the buttons say why."""
    stopped = records.running(status="stopped", allowed_actions=["start"])
    records.serve_all(canned, stopped)
    items = [item | {"state": "stopped"} for item in records.launchers()]
    canned.answers[f"GET {records.PATH}/launchers"] = {"items": items}
    closed = [item | {"state": "closed", "connections": 0} for item in records.PORTS]
    canned.answers[f"GET {records.PATH}/ports"] = {"items": closed}
    visit(browser, canned, PATH)
    says(browser, "Closed", PORTS)
    button = find(browser, "[data-key=start-train][aria-disabled=true]")
    assert "It does not run" in str(
        find(browser, f"#{button.get_attribute('aria-describedby')}").get_property("textContent")
    )
    press(browser, "[data-key=start-train]")
    assert not canned.sent(f"POST {records.PATH}/launchers/train/start")


def test_a_new_port(browser: Driver, canned: Canned) -> None:
    """The line follows what is typed; the field is empty again afterwards, and has the focus."""
    records.serve_all(canned)
    added = records.port("web", 8000, 20013, access="host")

    def add() -> tuple[int, Any, dict[str, str]]:
        canned.answers[f"GET {records.PATH}/ports"] = {"items": [*records.PORTS, added]}
        return 201, added, {}

    canned.answers[f"POST {records.PATH}/ports"] = add
    visit(browser, canned, PATH)
    find(browser, "#port-name").send_keys("web" + Keys.TAB)
    browser.switch_to.active_element.send_keys("8000")
    assert line(browser) == "svc ws port add train-7b web --container-port 8000"
    Select(find(browser, "#port-access")).select_by_value("host")
    until(browser, lambda: line(browser).endswith("--container-port 8000 --access host"), "the access")
    press(browser, "[data-key=add]")
    says(browser, "everybody on the host", f"{PORTS} [data-id=web]")
    ((body, _),) = canned.sent(f"POST {records.PATH}/ports")
    assert body == {"name": "web", "container_port": 8000, "access": "host", "kind": "http", "user": None}
    until(browser, lambda: find(browser, "#port-name").get_property("value") == "", "an empty field")
    until(browser, lambda: line(browser).startswith("svc ws launchers"), "the line of the page")


def test_a_new_port_of_another_kind(browser: Driver, canned: Canned) -> None:
    """Its login where the kind has one; without a number it has the host's."""
    records.serve_all(canned)
    canned.answers[f"POST {records.PATH}/ports"] = (201, records.port("db", 20013, 20013), {})
    visit(browser, canned, PATH)
    find(browser, "#port-name").send_keys("db")
    assert not find(browser, "#port-user").is_displayed()
    Select(find(browser, "#port-kind")).select_by_value("postgres")
    find(browser, "#port-user").send_keys("ada")
    until(
        browser, lambda: line(browser) == "svc ws port add train-7b db --kind postgres --user ada", "the line"
    )
    press(browser, "[data-key=add]")
    until(browser, lambda: canned.sent(f"POST {records.PATH}/ports"), "the request")
    ((body, _),) = canned.sent(f"POST {records.PATH}/ports")
    assert body == {
        "name": "db", "container_port": None, "access": "owner", "kind": "postgres", "user": "ada",
    }  # fmt: skip
    until(browser, lambda: not find(browser, "#port-user").is_displayed(), "an empty form")


def test_a_port_that_is_refused(browser: Driver, canned: Canned) -> None:
    """Beside its field; and what is of no field, above the list."""
    records.serve_all(canned)
    field = {"field": "name", "code": "invalid", "message": "Use a-z, 0-9 and -."}
    canned.refuse(f"POST {records.PATH}/ports", 422, "validation_failed", "name: no", fields=[field])
    visit(browser, canned, PATH)
    find(browser, "#port-name").send_keys("W!")
    find(browser, "#port-container_port").send_keys("80" + Keys.ENTER)
    says(browser, "Use a-z, 0-9 and -.", "[data-port] .field-error")
    assert browser.switch_to.active_element.get_property("value") == "W!"
    canned.refuse(f"POST {records.PATH}/ports", 409, "name_taken", "that name is taken")
    find(browser, "#port-container_port").send_keys(Keys.ENTER)
    says(browser, "The port W! was not added. That name is taken.", "[data-answer]")
    assert find(browser, "#port-name").get_property("value") == "W!"


def test_remove_asks_first(browser: Driver, canned: Canned) -> None:
    records.serve_all(canned)
    for name in ("board", "lab"):
        canned.answers[f"DELETE {records.PATH}/ports/{name}"] = (204, None, {})
    visit(browser, canned, PATH)
    says(browser, "2 connections", PORTS)
    press(browser, "[data-key=remove-board]")
    says(browser, "Its 2 connections end.", "dialog[open]")
    assert focused(browser) == "Cancel"
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    canned.answers[f"GET {records.PATH}/ports"] = {"items": records.PORTS[:1]}
    press(browser, "[data-key=remove-lab]")
    says(browser, "svc ws port remove train-7b lab", "dialog[open] .cmd")
    press(browser, "dialog[open] button[value=confirm]")
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, f"{PORTS} [data-id=lab]"), "no row")
    assert not canned.sent(f"DELETE {records.PATH}/ports/board")


def test_nothing_there(browser: Driver, canned: Canned) -> None:
    records.serve_all(canned, records.running(launchers=[], ports=[]))
    visit(browser, canned, PATH)
    says(browser, "Its template has no apps.")
    says(browser, "No port yet.")


def test_states_that_could_not_be_read(browser: Driver, canned: Canned) -> None:
    records.serve_all(canned)
    canned.refuse(f"GET {records.PATH}/launchers", 503, "engine_unavailable", "the engine is away")
    visit(browser, canned, PATH)
    says(browser, "Their states could not be read: the engine is away.")
    says(browser, "TensorBoard", APPS)
    canned.answers[f"GET {records.PATH}/launchers"] = {"items": records.launchers()}
    says(browser, "Started", APPS)


def test_hostile_words(browser: Driver, canned: Canned) -> None:
    records.serve_all(canned)
    items = [item | {"title": HOSTILE} for item in records.launchers()]
    canned.answers[f"GET {records.PATH}/launchers"] = {"items": items}
    canned.answers[f"GET {records.PATH}/launchers/jupyter/logs"] = records.log(HOSTILE)
    visit(browser, canned, PATH, size=NARROW)
    says(browser, "<img src=x onerror=alert(1)>", APPS)
    says(browser, "2 connections", PORTS)
    assert overflow(browser) == 0
    assert not complaints(browser)


def test_an_app_that_ends_later(browser: Driver, canned: Canned) -> None:
    """Its event is followed: how it ended, its last line, and a button that starts it again."""
    records.serve_all(canned)
    visit(browser, canned, PATH)
    says(browser, "Started", app("train"))
    until(browser, lambda: canned.streams, "the stream")
    ended = records.launcher("train", "Trainer", "exited", exit_code=137)
    items = [ended if item["name"] == "train" else item for item in records.launchers()]
    canned.answers[f"GET {records.PATH}/launchers"] = {"items": items}
    subject = {"type": "launcher", "id": f"{records.ID}/train", "name": "train"}
    canned.event("launcher.status_changed", subject=subject, data={"state": "exited", "exit_code": 137})
    says(browser, "Exited with code 137", app("train"))
    says(browser, "step 41890", app("train"))
    find(browser, f"{app('train')} [data-key=start-train]")


def words_of(driver: Driver) -> str:
    """All that the page has, shown or not, and what it keeps."""
    kept = "JSON.stringify([{...localStorage}, {...sessionStorage}, location.href, history.state])"
    return str(driver.execute_script(f"return document.documentElement.outerHTML + {kept}"))


def test_a_token_is_copied_without_being_shown(browser: Driver, canned: Canned) -> None:
    """It is in the page only while the person wants to see it, and nowhere after."""
    records.serve_kinds(canned)
    visit(browser, canned, PATH)
    copy = find(browser, f"{app('jupyter')} [data-key=copy-token-jupyter]")
    browser.execute_script("navigator.clipboard.writeText = async text => { window.copied = text; }")
    assert records.TOKEN not in words_of(browser)
    copy.click()
    until(browser, lambda: browser.execute_script("return window.copied") == records.TOKEN, "the copy")
    assert records.TOKEN not in words_of(browser)
    press(browser, "[data-key=show-token-jupyter]")
    says(browser, records.TOKEN, f"{app('jupyter')} [data-token] code")
    assert not find(browser, f"{app('code')} [data-token] code").is_displayed()
    press(browser, "[data-key=show-token-jupyter]")
    until(browser, lambda: records.TOKEN not in words_of(browser), "no token")
    assert find(browser, "[data-token]").get_attribute("data-cmd") == "svc ws launchers train-7b"
    assert not complaints(browser)


def test_a_page_is_opened_with_its_token(browser: Driver, canned: Canned) -> None:
    """The link says the address alone; what is opened has the token, and has no way back to this page."""
    records.serve_kinds(canned)
    visit(browser, canned, PATH)
    browser.execute_script("window.open = (...all) => { window.opened = all; }")
    press(browser, "[data-key=open-jupyter]")
    says(browser, "ssh -N -L 20012:127.0.0.1:20012 ada@gpu-01.lab.example", "dialog[open]")
    assert find(browser, "dialog [data-key=page]").get_attribute("href") == "http://127.0.0.1:20012/"
    assert records.TOKEN not in words_of(browser)
    press(browser, "dialog [data-key=page]")
    link = f"http://127.0.0.1:20012/lab?token={records.TOKEN}"
    assert browser.execute_script("return window.opened") == [link, "_blank", "noopener,noreferrer"]


def test_nothing_is_opened_behind_ssh_or_a_plain_port(browser: Driver, canned: Canned) -> None:
    records.serve_kinds(canned)
    visit(browser, canned, PATH)
    says(browser, records.SSHD, f"{app('sshd')} .cmd")
    assert label_of(browser, "open-sshd") == "Connect to sshd"
    assert label_of(browser, "open-code") == "Open code-server"
    press(browser, "[data-key=open-sshd]")
    says(browser, "and run in another one", "dialog[open]")
    says(browser, records.SSHD, "dialog[open]")
    assert not browser.find_elements(By.CSS_SELECTOR, "dialog[open] a")
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, "dialog[open]"), "no dialog")
    press(browser, "[data-key=open-redis]")
    says(browser, "and connect to", "dialog[open]")
    says(browser, "127.0.0.1:20015", "dialog[open]")
    assert overflow(browser) == 0


def label_of(driver: Driver, key: str) -> str | None:
    """The label of a control."""
    return find(driver, f"[data-key={key}]").get_attribute("aria-label")
