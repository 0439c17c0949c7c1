"""The pages of the installed service: signing in, the list, what its buttons do, and what others cannot."""

from __future__ import annotations

import http.server
import ssl
import threading
import urllib.request
from pathlib import Path

from e2e.installation import PASSWORD, Call, Service
from e2e.surroundings import must
from pages.chromium import Driver, complaints, find, press, says, until
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from stories.conftest import USER


def sign_in(driver: Driver, password: str = PASSWORD.strip()) -> None:
    """By keyboard alone."""
    find(driver, "[name=username]").send_keys(USER + Keys.TAB)
    driver.switch_to.active_element.send_keys(password + Keys.ENTER)


def row(driver: Driver, name: str) -> str:
    """The selector of the row of a workspace."""
    found = until(
        driver,
        lambda: [
            element.find_element(By.XPATH, "ancestor::tr").get_attribute("data-id")
            for element in driver.find_elements(By.CSS_SELECTOR, "tbody a.name")
            if element.text == name
        ],
        f"a row of {name}",
    )
    return f'tr[data-id="{found[0]}"]'


def test_from_the_first_page_to_a_stopped_workspace(
    at_sign_in: Driver, workspaces: list[str], svc: Call
) -> None:
    """Sign in, see what runs, stop it, start the other, delete it: each as the command line sees it too."""
    driver = at_sign_in
    sign_in(driver, "no herons at all")
    says(driver, "unauthenticated", ".notice .code")
    find(driver, "[name=username]").clear()
    sign_in(driver)
    says(driver, "2, of which 1 runs", ".lede")
    says(driver, USER, ".who")
    says(driver, "Running", row(driver, "first"))

    press(driver, f"{row(driver, 'first')} [data-key=stop]")
    press(driver, "dialog[open] button[value=confirm]")
    says(driver, "Stopped", row(driver, "first"))
    assert must(svc("ws", "get", "first", "--json")).json()["status"] == "stopped"

    press(driver, f"{row(driver, 'second')} [data-key=start]")
    says(driver, "Running", row(driver, "second"))
    assert must(svc("ws", "get", "second", "--json")).json()["status"] == "running"

    press(driver, f"{row(driver, 'first')} [data-key=more]")
    press(driver, f"{row(driver, 'first')} details button.danger")
    press(driver, "dialog[open] button[value=confirm]")
    until(driver, lambda: "first" not in find(driver, "tbody").text, "no row of it")
    assert svc("ws", "get", "first").code != 0
    assert not [line for line in complaints(driver) if "401" not in line]


def test_what_the_command_line_does_is_seen_at_once(
    at_sign_in: Driver, workspaces: list[str], svc: Call
) -> None:
    """By the one stream of events: nobody reloads the page."""
    sign_in(at_sign_in)
    says(at_sign_in, "Running", row(at_sign_in, "first"))
    must(svc("ws", "start", "second"))
    says(at_sign_in, "Running", row(at_sign_in, "second"))
    must(svc("ws", "stop", "first"))
    says(at_sign_in, "Stopped", row(at_sign_in, "first"))
    must(svc("ws", "create", "--template", "base", "--name", "third"))
    row(at_sign_in, "third")
    must(svc("ws", "delete", "third", "--yes"))
    until(at_sign_in, lambda: "third" not in find(at_sign_in, "tbody").text, "no row of it")


def test_each_button_does_what_its_line_says(at_sign_in: Driver, workspaces: list[str], svc: Call) -> None:
    """The command that a button shows, run by the command line, has the same end."""
    driver = at_sign_in
    sign_in(driver)
    for name, key, status in (("first", "stop", "stopped"), ("first", "start", "running")):
        command = find(driver, f"{row(driver, name)} [data-key={key}]").get_attribute("data-cmd")
        assert command and command.split()[0] == "svc"
        must(svc(*command.split()[1:]))
        assert must(svc("ws", "get", name, "--json")).json()["status"] == status
        says(driver, status.capitalize(), row(driver, name))
        says(driver, {"stopped": "Start", "running": "Stop"}[status], row(driver, name))
    must(svc(*find(driver, "[data-command]").text.split()[1:]))


def test_the_service_restarts_under_the_page(
    at_sign_in: Driver, workspaces: list[str], service: Service
) -> None:
    """A banner while it is away, and all is as before when it is back, without a reload."""
    driver = at_sign_in
    sign_in(driver)
    says(driver, "Running", row(driver, "first"))
    driver.execute_script("window.same = true")
    until(driver, lambda: find(driver, ".who [data-user]").text == USER, "the frame")
    with service.stopped():
        until(driver, lambda: driver.find_elements(By.CSS_SELECTOR, ".banner"), "a banner")
        says(driver, "first", "tbody")
    until(driver, lambda: not driver.find_elements(By.CSS_SELECTOR, ".banner"), "no banner")
    says(driver, "Running", row(driver, "first"))
    assert driver.execute_script("return window.same") is True


def test_a_session_that_was_ended_elsewhere(at_sign_in: Driver, workspaces: list[str], svc: Call) -> None:
    """The host ends all sessions of a lost browser: the page asks who is there, and goes on."""
    driver = at_sign_in
    sign_in(driver)
    says(driver, "first", "tbody")
    must(svc("api", "DELETE", "/api/auth/sessions"))
    says(driver, "Sign in again", "#signed-out")
    assert not driver.find_elements(By.CSS_SELECTOR, ".banner")  # the service is there
    driver.switch_to.active_element.send_keys(PASSWORD.strip() + Keys.ENTER)
    until(driver, lambda: not driver.find_elements(By.ID, "signed-out"), "the page again")
    press(driver, f"{row(driver, 'second')} [data-key=start]")
    says(driver, "Running", row(driver, "second"))


class _Evil(http.server.BaseHTTPRequestHandler):
    """A web app of a workspace, on another port of the same host: it gets the cookie, and sends it on."""

    service = ""
    outcomes: list[int] = []

    def do_GET(self) -> None:
        """Ask the service with whatever the browser sent along."""
        request = urllib.request.Request(
            f"{self.service}/api/workspaces", headers={"Cookie": self.headers.get("Cookie", "")}
        )
        context = ssl._create_unverified_context()
        try:
            with urllib.request.urlopen(request, context=context) as answer:
                self.outcomes.append(answer.status)
        except urllib.error.HTTPError as error:
            self.outcomes.append(error.code)
            error.close()
        page = (
            f"<script>fetch('{self.service}/api/workspaces', {{credentials: 'include'}})"
            ".then(r => document.title = 'read ' + r.status, () => document.title = 'refused')</script>"
            f"<iframe src='{self.service}/workspaces'></iframe>"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_a_page_on_another_port_gets_nothing(
    at_sign_in: Driver, origin: str, certificate: tuple[Path, Path]
) -> None:
    """Browsers send cookies to all ports of a host: without the page's own header they are worth nothing."""
    sign_in(at_sign_in)
    until(at_sign_in, lambda: at_sign_in.current_url == f"{origin}/workspaces", "the list")
    _Evil.service = origin
    _Evil.outcomes.clear()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Evil)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        at_sign_in.get(f"https://localhost:{server.server_port}/")
        until(at_sign_in, lambda: at_sign_in.title == "refused", "the refusal of the browser")
        assert _Evil.outcomes
        assert set(_Evil.outcomes) == {401}
        framed = at_sign_in.find_element(By.TAG_NAME, "iframe")
        at_sign_in.switch_to.frame(framed)
        assert "Workspaces" not in at_sign_in.page_source
        at_sign_in.switch_to.default_content()
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
