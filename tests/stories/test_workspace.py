"""The pages of one workspace before the installed service: what they do and what the command line does."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
from e2e.installation import Call, Service, run
from e2e.surroundings import must, new_template
from pages.chromium import Driver, complaints, find, press, says, until
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from stories.conftest import USER
from stories.signing_in import sign_in

MEMORY = "[data-field='resources.memory_bytes']"
LAUNCHERS = [
    {"name": "talker", "title": "Talks", "autostart": True, "port": "talk",
     "command": ["sh", "-c", "echo it is up; exec sleep 4712"]},
    {"name": "job", "title": "A job", "command": ["sh", "-c", "echo nothing to do; exit 3"]},
]  # fmt: skip
PORTS = [{"name": "talk", "container_port": 8000, "access": "owner"}]


@pytest.fixture(scope="module")
def template(service: Service) -> str:
    """A template with two apps and a port; its name."""
    base = json.loads(must(run(USER, "template", "get", "base", "--json", env=service.env)).out)
    source = {"type": "registry", "image_ref": base["source"]["image_ref"]}
    new_template(USER, service.env, "apps", source, launchers=LAUNCHERS, ports=PORTS)
    return "apps"


@pytest.fixture
def lab(svc: Call, template: str) -> Iterator[str]:
    """A running workspace with its apps; its name."""
    must(svc("ws", "setup", "--template", template, "--name", "lab", "--memory", "256m"))
    must(svc("ws", "start", "lab"))
    yield "lab"
    for name in ("lab", "paper"):
        svc("ws", "delete", name, "--yes")


@pytest.fixture
def page(browser: Driver) -> Iterator[Driver]:
    """A browser that leaves nothing open."""
    browser.set_window_size(1440, 900)
    yield browser
    browser.get("about:blank")


def record(svc: Call, name: str = "lab") -> dict[str, Any]:
    """What the command line says of it."""
    return dict(must(svc("ws", "get", name, "--json")).json())


def typed(svc: Call, command: str) -> None:
    """Run a command that the page shows, as a shell would."""
    for part in command.split(" && "):
        words, _, text = part.partition(" <<< ")
        must(svc(*shlex.split(words)[1:], stdin=shlex.split(text)[0] if text else ""))


def line(driver: Driver) -> str:
    """The command at the foot."""
    return find(driver, "[data-command]").text


def test_the_overview(page: Driver, origin: str, lab: str, svc: Call) -> None:
    """What it uses, prints and is; stopped here, started there, renamed there: all of it at once."""
    sign_in(page, origin, "/workspaces/lab")
    says(page, "iB", "[data-meters]")
    says(page, "Started", "[data-body=apps]")
    says(page, "it is up", "[data-body=last]")
    says(page, f"{USER} started it", "[data-body=happened]")
    says(page, record(svc)["id"], "[data-body=facts]")
    press(page, "[data-actions] [data-key=stop]")
    press(page, "dialog[open] button[value=confirm]")
    says(page, "Stopped", "[data-state]")
    assert record(svc)["status"] == "stopped"
    says(page, f"{USER} stopped it", "[data-body=happened]")
    typed(svc, str(find(page, "[data-actions] [data-key=start]").get_attribute("data-cmd")))
    says(page, "Running", "[data-state]")
    must(svc("ws", "rename", "lab", "--name", "paper"))
    until(page, lambda: page.current_url == f"{origin}/workspaces/paper", "the new address")
    must(svc("ws", "delete", "paper", "--yes"))
    says(page, "paper was deleted", ".empty")
    assert not [text for text in complaints(page) if "401" not in text]


def test_apps_and_ports(page: Driver, origin: str, lab: str, svc: Call) -> None:
    sign_in(page, origin, "/workspaces/lab/apps")
    says(page, "Started", "[data-id=talker]")
    press(page, "[data-key=start-job]")
    says(page, "A job was not started. job has exited at once, with exit code 3", "[data-answer]")
    says(page, "Exited with code 3", "[data-id=job]")
    says(page, "nothing to do", "[data-id=job]")
    press(page, "[data-key=stop-talker]")
    press(page, "dialog[open] button[value=confirm]")
    says(page, "Stopped", "[data-id=talker]")
    typed(svc, str(find(page, "[data-key=start-talker]").get_attribute("data-cmd")))
    says(page, "Started", "[data-id=talker]")
    find(page, "#port-name").send_keys("web" + Keys.TAB + "9000")
    until(page, lambda: line(page).endswith("--container-port 9000"), "the command")
    typed(svc, line(page))
    says(page, "9000", "[data-rows=ports] [data-id=web]")  # as the page would have added it
    press(page, "[data-key=add]")
    says(page, "lab has a port web already")
    press(page, "[data-key=remove-web]")
    press(page, "dialog[open] button[value=confirm]")
    until(page, lambda: not page.find_elements(By.CSS_SELECTOR, "[data-rows=ports] [data-id=web]"), "no row")
    assert [port["name"] for port in record(svc)["ports"]] == ["talk"]
    press(page, "[data-key=add]")  # what was typed is still there
    says(page, "Open", "[data-rows=ports] [data-id=web]")
    assert [port["name"] for port in record(svc)["ports"]] == ["talk", "web"]


def test_settings(page: Driver, origin: str, lab: str, svc: Call) -> None:
    """The line and the button do the same; what is changed meanwhile is told."""
    sign_in(page, origin, "/workspaces/lab/settings")
    press(page, "[data-key=stop-and-edit]")
    press(page, "dialog[open] button[value=confirm]")
    until(page, lambda: find(page, MEMORY).is_enabled(), "an open form")
    find(page, MEMORY).send_keys(Keys.CONTROL + "a")
    find(page, MEMORY).send_keys("0.5")
    press(page, "[data-add]")
    page.switch_to.active_element.send_keys("GREETING" + Keys.TAB)
    page.switch_to.active_element.send_keys("it's")
    typed(svc, line(page))
    assert record(svc)["resources"]["memory_bytes"] == 512 << 20
    assert record(svc)["env"] == [{"name": "GREETING", "value": "it's"}]
    says(page, "Nothing is changed")  # the page has what was typed
    find(page, MEMORY).send_keys(Keys.CONTROL + "a")
    find(page, MEMORY).send_keys("0.75")
    must(svc("ws", "edit", "lab", "--file", "-", stdin='{"resources": {"memory_bytes": 1073741824}}'))
    says(page, "it was 0.5 GiB, now it is 1 GiB; you typed 0.75 GiB", "[data-conflict]")
    press(page, "[data-key=mine]")
    press(page, "[data-key=save]")
    says(page, "Nothing is changed")
    assert record(svc)["resources"]["memory_bytes"] == 768 << 20
    find(page, "[name=name]").send_keys(Keys.CONTROL + "a")
    find(page, "[name=name]").send_keys("paper" + Keys.ENTER)
    until(page, lambda: page.current_url == f"{origin}/workspaces/paper/settings", "the new address")
    assert record(svc, "paper")["name"] == "paper"


def test_a_newer_revision(page: Driver, origin: str, lab: str, svc: Call, template: str) -> None:
    """What it changes is read while the workspace runs, and done while it is stopped."""
    must(svc("template", "edit", template, "--file", "-", stdin='{"description": "another one"}'))
    after = must(svc("template", "get", template, "--json")).json()["revision"]
    sign_in(page, origin, "/workspaces/lab")
    press(page, "[data-actions] [data-key=more]")
    press(page, "[data-actions] [data-cmd='svc ws upgrade lab --dry-run']")
    says(page, "It is upgraded while it is stopped.", "dialog[open]")
    page.switch_to.active_element.send_keys(Keys.ENTER)
    must(svc("ws", "stop", "lab"))
    says(page, "Stopped", "[data-state]")
    press(page, "[data-actions] [data-key=more]")
    press(page, "[data-actions] [data-cmd='svc ws upgrade lab']")
    press(page, "dialog[open] [data-key=confirm]")
    until(page, lambda: record(svc)["template"]["revision"] == after, "the upgrade")
    says(page, f"revision {after}", "[data-body=facts]")
