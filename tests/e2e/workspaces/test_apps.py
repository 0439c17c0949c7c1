"""Apps in the browser, through the installed program: one-time links, what is let in, and what ends it."""

from __future__ import annotations

import functools
import http.client
import os
import signal
import socket
from collections.abc import Callable, Iterator

import pytest
from e2e import served
from e2e.installation import PASSWORD, Call, Service, run
from e2e.registries import REPOSITORY, Shelf
from e2e.surroundings import in_database, must, new_template
from e2e.workspaces.browsing import TAB, Browser
from waiting import until

LAUNCHER = {"name": "web", "command": ["python3", "/app/server.py"], "port": "lab", "autostart": True}
Visit = Callable[..., Browser]


@pytest.fixture(scope="module")
def lab(service: Service, registry: str, shelf: Shelf) -> Iterator[str]:
    """Alice's running workspace, whose program answers at its port `lab`; its name."""
    alice = functools.partial(run, "tse-alice", env=service.env)
    source = {"type": "registry", "image_ref": f"{registry}/{REPOSITORY}:{served.put(shelf)}"}
    ports = [{"name": "lab", "container_port": 8888}]
    new_template("tse-alice", service.env, "an-app", source, ports=ports, launchers=[LAUNCHER])
    must(alice("ws", "setup", "--template", "an-app", "--name", "notes"))
    must(alice("ws", "start", "notes"))
    (row,) = must(alice("ws", "ports", "notes", "--json")).json()["items"]
    until(lambda: served.answers(row["url"]), 30, 0.1)
    yield "notes"
    alice("ws", "stop", "notes")
    alice("ws", "delete", "notes", "--yes")


@pytest.fixture
def visit(alice: Call, lab: str) -> Visit:
    """visit() is a browser that has followed a link to the app."""

    def follow(port: str = "lab", path: str = "/lab") -> Browser:
        link = must(alice("ws", "open", lab, port, "--link", "--path", path)).out.strip()
        browser = Browser(link)
        assert browser.follow(link).body == f"hello from {path}".encode()
        return browser

    return follow


def test_a_link_opens_the_app_once(alice: Call, lab: str, service: Service) -> None:
    address = must(alice("ws", "open", lab)).out.strip()
    link = must(alice("ws", "open", lab, "--link", "--path", "/lab?a=1")).out.strip()
    browser = Browser(link)
    assert address == f"{browser.origin}/"
    assert browser.origin.endswith(f".localhost:{service.env['SVC_APPS_LOCAL_PORT']}")
    assert browser.follow(link).body == b"hello from /lab?a=1"
    assert browser.ask("GET", "/lab").body == b"hello from /lab"
    big = os.urandom(4 << 20)
    assert browser.ask("POST", "/echo", big).body == big
    other = Browser(link)
    again = other.follow(link)
    assert (again.status, other.cookie) == (401, "")
    assert b"The link was used before" in again.body
    assert other.ask("GET", "/lab").code == "app_sign_in"


def test_a_tab_without_a_cookie_gets_the_command(alice: Call, lab: str) -> None:
    browser = Browser(must(alice("ws", "open", lab, "lab")).out.strip())
    page = browser.ask("GET", "/", **TAB, Sec_Fetch_Site="none")
    assert page.status == 401
    command = next(line for line in page.body.decode().splitlines() if "<code>" in line)
    words = command.removeprefix("<code>svc ").removesuffix("</code>").split()
    assert must(alice(*words)).out.startswith(f"{browser.origin}/.svc/enter#svc_tkt_")


def test_a_websocket(visit: Visit) -> None:
    browser = visit()
    head = (
        f"GET /ws HTTP/1.1\r\nHost: {browser.host}\r\nOrigin: {browser.origin}\r\n"
        f"Cookie: __Host-svc-app={browser.cookie}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", int(browser.port or 0)), timeout=30) as client:
        client.sendall(head.encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 101")
    with socket.create_connection(("::1", int(browser.port or 0)), timeout=30) as client:
        client.sendall(head.replace(browser.origin, "http://wiki-zzzzzzzz.localhost").encode())
        assert client.recv(4096).startswith(b"HTTP/1.1 403"), "a neighbour's page"


def test_nobody_else_comes_in(visit: Visit, alice: Call, bob: Call, lab: str) -> None:
    browser = visit()
    must(alice("ws", "port", "add", lab, "other", "--container-port", "8888"))
    neighbour = Browser(must(alice("ws", "open", lab, "other")).out.strip())
    neighbour.cookie = browser.cookie
    assert neighbour.ask("GET", "/lab").code == "app_sign_in", "a cookie opens its own port"
    must(alice("ws", "port", "remove", lab, "other"))
    label = browser.host.partition(".")[0]
    assert bob("ws", "open", f"ws-{label[-8:]}", "lab", "--link").code == 1
    for host in (f"x.{browser.host}", browser.host.replace(label, "lab-zzzzzzzz"), "localhost", "127.0.0.1"):
        page = browser.ask("GET", "/lab", Host=host)
        assert (page.status in (401, 404), b"hello" in page.body) == (True, False)


@pytest.mark.parametrize("how", ["stopped", "password", "disabled", "left", "port"])
def test_what_ends_it(visit: Visit, alice: Call, svc: Call, service: Service, lab: str, how: str) -> None:
    if how == "port":
        must(alice("ws", "port", "add", lab, "short", "--container-port", "8888"))
    browser = visit("short" if how == "port" else "lab")
    left = {"stopped": "workspace_not_running", "port": "app_sign_in"}.get(how, "app_sign_in")
    if how == "stopped":
        must(alice("ws", "stop", lab))
    elif how == "password":
        must(svc("root", "admin", "set-password", "tse-alice", stdin=PASSWORD))
    elif how == "disabled":
        must(svc("root", "admin", "edit-user", "tse-alice", "--disable"))
        must(svc("root", "admin", "edit-user", "tse-alice", "--enable"))
    elif how == "left":
        assert browser.ask("POST", "/.svc/leave").status == 204
    else:
        must(alice("ws", "port", "remove", lab, "short"))
        must(alice("ws", "port", "add", lab, "short", "--container-port", "8888"))
    assert browser.ask("GET", "/lab").code == left
    if how == "stopped":
        must(alice("ws", "start", lab))
        (row,) = must(alice("ws", "ports", lab, "--json")).json()["items"]
        until(lambda: served.answers(row["url"]), 30, 0.1)
        assert browser.ask("GET", "/lab").body == b"hello from /lab", "the browser is still signed in"
    if how == "port":
        must(alice("ws", "port", "remove", lab, "short"))


def test_a_program_that_does_not_listen(alice: Call, lab: str) -> None:
    must(alice("ws", "port", "add", lab, "nothing", "--container-port", "9"))
    link = must(alice("ws", "open", lab, "nothing", "--link")).out.strip()
    browser = Browser(link)
    page = browser.follow(link)
    assert (page.status, b'http-equiv="refresh"' in page.body) == (502, True)
    assert browser.ask("GET", "/").code == "app_not_listening"
    must(alice("ws", "port", "remove", lab, "nothing"))


def test_refusals_name_the_next_command(alice: Call, lab: str) -> None:
    must(alice("ws", "port", "add", lab, "login", "--container-port", "22", "--kind", "ssh"))
    refused = alice("ws", "open", lab, "login")
    assert (refused.code, f"svc ws ports {lab}" in refused.err) == (1, True)
    refused = alice("ws", "open", lab, "nowhere", "--link")
    assert (refused.code, f"svc ws ports {lab}" in refused.err) == (1, True)
    must(alice("ws", "port", "add", lab, "second", "--container-port", "8888"))
    refused = alice("ws", "open", lab)
    assert (refused.code, f"svc ws open {lab} lab" in refused.err) == (1, True)
    for name in ("login", "second"):
        must(alice("ws", "port", "remove", lab, name))


def test_each_end_of_the_pair_may_start_anew(visit: Visit, service: Service) -> None:
    browser = visit()
    for name in ("svc-apps", "svc-tls"):
        os.kill(service.named(name).pid, signal.SIGKILL)
        until(lambda: answers(browser), 20, 0.1)


def answers(browser: Browser) -> bool:
    """Does the program answer it? Not while a process on the way starts."""
    try:
        return browser.ask("GET", "/lab").body == b"hello from /lab"
    except (OSError, http.client.HTTPException):
        return False


def test_the_audit_says_who_was_signed_in(visit: Visit, service: Service) -> None:
    visit()
    rows = in_database(
        service.env, "SELECT action, outcome FROM audit WHERE outcome <> 'begun' ORDER BY id DESC LIMIT 2"
    )
    assert [tuple(row) for row in rows] == [("app.open", "ok"), ("app.link", "ok")]
