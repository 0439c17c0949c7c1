"""Applications with a page of their own, in Chromium on another computer: by ssh -N -L, and by a link."""

from __future__ import annotations

import json
import pwd
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import waiting
from applications.other_computer import another_computer
from applications.reader import USER, Make, Reader, closing
from e2e.installation import Service
from e2e.surroundings import must
from pages.chromium import Driver, chromium, press, until
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

pytestmark = pytest.mark.timeout(1200)
NOTEBOOK, CELL = '.jp-LauncherCard[data-category="Notebook"]', ".jp-Notebook .cm-content"
WAIT_S = 120  # for pages of some megabytes of script, on a busy machine


def opened(service: Service, application: Reader, visit: Callable[[Driver], None]) -> None:
    """Have its page visited on another computer: by the line and the address that svc prints, then as an app.

    The line for apps is one for all; the link signs the browser in, and leads to where the launcher says.
    """
    said = application.launcher()
    number = re.search(r"-L (\d+):", said["ssh"])
    assert number and said["ssh"].startswith("ssh -N -L "), said

    def look() -> None:
        with chromium() as driver:
            driver.get(said["link"] or said["connect"])
            visit(driver)

    def look_by_link() -> None:
        with chromium() as driver:
            link = must(application.svc("ws", "open", application.workspace, "--link")).out.strip()
            driver.get(link.replace("/lab?", "/lab?reset&"))  # JupyterLab keeps what is open on its server
            press(driver, "button")
            visit(driver)

    apps = service.env["SVC_APPS_LOCAL_PORT"]
    of_apps = f"ssh -N -L {apps}:127.0.0.1:{apps} {said['ssh'].rpartition(' ')[2]}"
    with another_computer(service) as computer:
        with computer.typed(said["ssh"], int(number[1])):
            computer.inside(look)
        with computer.typed(of_apps, int(apps)):
            computer.inside(look_by_link)


def there(driver: Driver, selector: str) -> WebElement:
    """The first such element, once it is there; a page of this size takes its time."""
    found: WebElement = until(
        driver, lambda: driver.find_element(By.CSS_SELECTOR, selector), f"an element {selector}", WAIT_S
    )
    return found


def test_jupyter(service: Service, reader: Make, capsys: pytest.CaptureFixture[str]) -> None:
    """From the first command of the page to a cell that was run; then by a client of its kernels."""
    lab = reader("jupyter", "notes", "token=")
    begun = time.monotonic()
    lab.follow("JupyterLab")
    waiting.until(lambda: lab.launcher()["link"], 180, 0.5)
    printed = time.monotonic()

    def work(driver: Driver) -> None:
        there(driver, NOTEBOOK)
        press(driver, NOTEBOOK)
        status = "the kernel to be idle"  # what is run before is lost
        until(driver, lambda: "| Idle" in there(driver, "#jp-main-statusbar").text, status, WAIT_S)
        press(driver, CELL)
        ActionChains(driver).send_keys("6 * 7").key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(
            Keys.SHIFT
        ).perform()
        until(driver, lambda: there(driver, ".jp-OutputArea-output").text == "42", "the result", WAIT_S)

    opened(service, lab, work)
    seen = time.monotonic()
    with capsys.disabled():
        print(f"\nJupyterLab's address after {printed - begun:.0f} s, a result after {seen - begun:.0f} s")
    by_websocket(lab)


def by_websocket(lab: Reader) -> None:
    """A kernel that computes, over the protocol that its clients speak."""
    import websocket

    token = lab.launcher()["token"]
    assert lab.launcher()["link"] == f"http://127.0.0.1:{lab.port}/lab?token={token}"
    kernel = lab.fetch(f"/api/kernels?token={token}", b"{}")["id"]
    address = f"ws://127.0.0.1:{lab.port}/api/kernels/{kernel}/channels?token={token}"
    with closing(websocket.create_connection(address, timeout=60)) as channels:
        channels.send(
            json.dumps(request("execute_request", code="import os; print(6 * 7, os.environ['HOME'])"))
        )
        while (message := json.loads(channels.recv()))["msg_type"] != "stream":
            assert message["msg_type"] != "error", message
    assert message["content"]["text"] == "42 /work\n"


def request(kind: str, **content: Any) -> dict[str, Any]:
    """A message to a kernel, as its protocol has it."""
    header = {"msg_id": kind, "msg_type": kind, "username": "", "session": "tests", "version": "5.3"}
    content = {"silent": False, "store_history": False, "allow_stdin": False} | content
    return {
        "header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell",
        "buffers": [],
    }  # fmt: skip


def test_code_server(service: Service, reader: Make) -> None:
    """Signed in by the password that svc shows; a terminal of the workbench writes into /work."""
    code = reader("code-server", "code", "HTTP server listening")
    code.follow("code-server")
    code.wait()
    password = waiting.until(lambda: code.launcher()["token"], 60, 0.5)
    made = Path(pwd.getpwnam(USER).pw_dir) / "work/made"

    def work(driver: Driver) -> None:
        there(driver, "input[name=password]").send_keys("wrong" + Keys.ENTER)
        there(driver, ".error")
        there(driver, "input[name=password]").send_keys(password + Keys.ENTER)
        there(driver, ".monaco-workbench .explorer-viewlet")
        trust = "//*[contains(@class, 'monaco-dialog-box')]//a[contains(., 'Yes')]"
        until(driver, lambda: driver.find_element(By.XPATH, trust).click() is None, "its question", WAIT_S)
        keys = ActionChains(driver)
        keys.send_keys(Keys.F1).pause(1).send_keys("Terminal: Create New Terminal").pause(1)
        keys.send_keys(Keys.ENTER).key_up(Keys.SHIFT).perform()
        there(driver, ".xterm-helper-textarea").send_keys('echo "$PWD $(id -un)" >/work/made' + Keys.ENTER)
        until(driver, made.exists, "what the terminal writes", WAIT_S)

    opened(service, code, work)
    assert (made.read_text(), made.owner()) == ("/work coder\n", USER)
