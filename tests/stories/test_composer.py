"""The composer before the installed service: the first workspace, and lines that do what the form does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from e2e.installation import PASSWORD, SVC, Call, Outcome, Service, command
from e2e.surroundings import must
from pages.chromium import Driver, complaints, find, press, says, until
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from stories.conftest import USER

# What the two workspaces of one line cannot have in common.
OWN = {"id", "name", "created_at", "updated_at", "status_since", "started_at", "stopped_at", "idle"}


@pytest.fixture
def clean(svc: Call) -> Iterator[list[str]]:
    """Names of workspaces that are deleted afterwards."""
    names: list[str] = []
    yield names
    for name in names:
        svc("ws", "delete", name, "--yes")


def sign_in(driver: Driver) -> None:
    """By keyboard alone."""
    find(driver, "[name=username]").send_keys(USER + Keys.TAB)
    driver.switch_to.active_element.send_keys(PASSWORD.strip() + Keys.ENTER)
    says(driver, "Yours now")


def line(driver: Driver) -> str:
    """The command at the foot."""
    return str(driver.execute_script("return document.querySelector('[data-command]').textContent"))


def shell(service: Service, text: str) -> Outcome:
    """Run a line as it stands, in the person's shell."""
    path = f"{SVC.parent}:{service.env['PATH']}"
    return command(USER, "bash", "-c", text, env=service.env | {"PATH": path}, timeout=180)


def record(svc: Call, name: str) -> dict[str, Any]:
    """A workspace without what is its own."""
    found = must(svc("ws", "get", name, "--json")).json()
    for port in found["ports"]:
        for key in ("host_port", "url", "connect", "ssh"):
            port.pop(key)
    for launcher in found["launchers"]:
        for key in ("url", "connect", "ssh"):
            launcher.pop(key, None)
    return {key: value for key, value in found.items() if key not in OWN}


def replace(driver: Driver, name: str, text: str) -> None:
    """Type into a field, instead of what is there."""
    control = find(driver, f"[data-field='{name}']")
    control.send_keys(Keys.CONTROL, "a")
    control.send_keys(text)


def test_the_first_workspace_by_keyboard_alone(
    at_sign_in: Driver, svc: Call, service: Service, clean: list[str]
) -> None:
    """Sign in, choose the template, name it, create and start it, and see it run."""
    driver = at_sign_in
    clean.append("first-steps")
    sign_in(driver)
    until(driver, lambda: find(driver, ".who [data-user]").text == USER, "the frame")
    find(driver, "body").send_keys("c")
    until(driver, lambda: "--template base --name base-1 --cpus" in line(driver), "the form")
    control = find(driver, "[name=template][value]")
    tabs = 0
    while driver.switch_to.active_element.get_attribute("name") != "name" and tabs < 60:
        driver.switch_to.active_element.send_keys(Keys.TAB)
        tabs += 1
        if driver.switch_to.active_element == control:
            driver.switch_to.active_element.send_keys(Keys.SPACE)
    driver.switch_to.active_element.send_keys(Keys.CONTROL, "a")
    driver.switch_to.active_element.send_keys("first-steps")
    until(driver, lambda: line(driver).endswith("&& svc ws start first-steps"), "the name in the line")
    says(driver, "first-steps", ".a-plan")
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    until(
        driver, lambda: driver.current_url.endswith("/workspaces/first-steps/terminal"), "its terminal", 120
    )
    assert must(svc("ws", "get", "first-steps", "--json")).json()["status"] == "running"
    driver.get(f"{driver.current_url.partition('/workspaces')[0]}/workspaces")
    says(driver, "first-steps", "tbody")
    says(driver, "Running", "tbody")
    assert not complaints(driver)


def test_the_line_does_what_the_form_does(
    at_sign_in: Driver, origin: str, svc: Call, service: Service, clean: list[str]
) -> None:
    """A form with everything in it, and the line that it showed, make the same workspace."""
    driver = at_sign_in
    clean += ["by-form", "by-line"]
    sign_in(driver)
    driver.get(f"{origin}/new?template=base")
    until(driver, lambda: "--memory" in line(driver), "the recommended values")
    for name, text in {
        "name": "by-form", "display_name": "It's \"mine\", -v & $HOME", "resources.cpu_limit": "0.75",
        "resources.memory_bytes": "300m",
    }.items():  # fmt: skip
        replace(driver, name, text)
    press(driver, "[data-sizes]")
    replace(driver, "resources.shm_bytes", "0.125")
    replace(driver, "resources.pids_limit", "321")
    press(driver, "[data-rest] > summary")
    press(driver, "[data-key=add-env]")
    driver.switch_to.active_element.send_keys("GREETING", Keys.TAB, "two 'words' \\ $(id)")
    press(driver, "[data-key=add-ports]")
    driver.switch_to.active_element.send_keys("web", Keys.TAB, "8080")
    find(driver, "[data-field=command]").send_keys("sleep", Keys.ENTER, "4713")
    press(driver, "[data-field=restart_on_boot]")
    until(driver, lambda: "--restart-on-boot" in line(driver), "the line")
    shown = line(driver)
    press(driver, "[data-key=go]")
    until(driver, lambda: driver.current_url.endswith("/workspaces/by-form/terminal"), "its terminal", 120)
    must(shell(service, shown.replace("by-form", "by-line")))
    ours, theirs = record(svc, "by-form"), record(svc, "by-line")
    assert ours == theirs
    assert ours["resources"] == {
        "cpu_limit": 0.75, "memory_bytes": 300 << 20, "shm_bytes": 128 << 20, "pids_limit": 321,
        "gpu_count": 0, "gpu_mode": "exclusive",
    }  # fmt: skip
    assert ours["display_name"] == 'It\'s "mine", -v & $HOME'
    assert {"name": "GREETING", "value": "two 'words' \\ $(id)"} in ours["env"]
    assert ours["status"] == "running"
    assert ours["command"] == ["sleep", "4713"]

    driver.get(f"{origin}/new?from=by-form")
    until(driver, lambda: "--name by-form-1 --display-name" in line(driver), "the values")
    shown = line(driver)
    clean += ["by-form-1", "like-by-line"]
    press(driver, "[data-key=go]")
    until(driver, lambda: driver.current_url.endswith("/workspaces/by-form-1/terminal"), "its terminal", 120)
    must(shell(service, shown.replace("by-form-1", "like-by-line")))
    assert record(svc, "by-form-1") == record(svc, "like-by-line") == ours


def test_no_limit_is_taken_over(
    at_sign_in: Driver, origin: str, svc: Call, service: Service, clean: list[str]
) -> None:
    """Of a workspace whose limit was taken away, although its template has a default."""
    driver = at_sign_in
    spec = must(svc("template", "get", "base", "--json")).json()
    source = {"type": "registry", "image_ref": spec["source"]["image_ref"]}
    body = json.dumps({"name": "bounded", "source": source, "defaults": {"pids_limit": 64}})
    must(svc("template", "create", "--file", "-", stdin=body))
    try:
        clean += ["free", "free-1", "free-line"]
        must(svc("ws", "setup", "--template", "bounded", "--name", "free"))
        must(svc("ws", "edit", "free", "--file", "-", stdin='{"resources": {"pids_limit": "unlimited"}}'))
        sign_in(driver)
        driver.get(f"{origin}/new?from=free")
        until(driver, lambda: "--name free-1" in line(driver) and "unlimited" in line(driver), "the values")
        shown = line(driver)
        press(driver, "[data-key=only]")
        until(driver, lambda: driver.current_url.endswith("/workspaces/free-1"), "its page", 120)
        must(shell(service, shown.replace("free-1", "free-line").rpartition(" && ")[0]))
        ours, theirs = record(svc, "free-1"), record(svc, "free-line")
        for one in (ours, theirs):  # of the container, which the line made before its limit was taken away
            one.pop("limits_missing")
        assert ours == theirs
        assert ours["resources"]["pids_limit"] is None
    finally:
        for name in clean:
            svc("ws", "delete", name, "--yes")
        must(svc("template", "delete", "bounded", "--yes"))


def test_what_the_service_refuses_is_said_at_its_field(
    at_sign_in: Driver, origin: str, svc: Call, clean: list[str]
) -> None:
    """One like another that wants a GPU, which this host has not: its field is there then, and mends it."""
    driver = at_sign_in
    clean.append("taken")
    must(svc("ws", "create", "--template", "base", "--name", "taken", "--gpu-count", "1"))
    sign_in(driver)
    driver.get(f"{origin}/new?from=taken")
    until(driver, lambda: "--gpu-count 1" in line(driver), "the values of the other")
    replace(driver, "name", "taken")
    says(driver, "You have a workspace taken.", ".a-form")
    replace(driver, "name", "ws-4k2m9x7p")
    says(driver, "It has the form of an id; choose another name.", ".a-form")
    replace(driver, "name", "fine")
    says(driver, "This would not start.", "[data-blocked]")
    assert not driver.find_elements(By.CSS_SELECTOR, ".btn.primary")
    press(driver, "[data-key=mend-gpu_count]")
    says(driver, "reate and start", ".btn.primary")  # the image may have to be pulled first
