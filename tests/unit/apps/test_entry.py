"""What the service answers itself on an app's address: the entrance of links, and refusals in a tab."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from unit.apps.stage import ORIGIN, TICKET, USED, Stage
from unit.apps.test_connection import COOKIE, call, echo

from svc.apps import pages
from svc.apps.addresses import App
from svc.apps.entry import BODY_MAX
from svc.apps.pair import Refused

TAB = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Sec-Fetch-Site": "none"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
POSTED = TAB | FORM | {"Sec-Fetch-Site": "same-origin", "Origin": ORIGIN}
FETCHED = FORM | {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Origin": ORIGIN}
COMMAND = "svc ws open ws-f7d3k2qa lab --link"


@pytest.fixture
def stage() -> Iterator[Stage]:
    """Before a program that answers all that reaches it."""
    made = Stage(echo)
    yield made
    made.close()


@pytest.fixture
def client(stage: Stage) -> Iterator[socket.socket]:
    """A browser's connection."""
    with stage.client() as made:
        yield made


def post(client: socket.socket, at: str, headers: dict[str, str], **form: str) -> Any:
    """Send a form; the answer."""
    return call(client, "POST", at, urlencode(form).encode(), **headers)


def test_the_page_of_a_link_signs_nobody_in(stage: Stage, client: socket.socket) -> None:
    answer = call(client, "GET", "/.svc/enter", **TAB)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert COMMAND.encode() in answer.content
    assert "script-src 'self'" in answer.headers["Content-Security-Policy"]
    assert "Set-Cookie" not in answer.headers
    for path, kind in (("/.svc/page.css", "text/css"), ("/.svc/enter.js", "text/javascript")):
        file = call(client, "GET", path)
        assert (file.status, file.headers["Content-Type"]) == (200, f"{kind}; charset=utf-8"), (
            "one connection"
        )
    assert stage.tickets == {TICKET}, "a preview uses nothing up"


def test_it_says_whom_the_link_signs_in(client: socket.socket) -> None:
    answer = post(client, "/.svc/describe", FETCHED, ticket=TICKET)
    assert json.loads(answer.content) == {"user": "ada", "workspace": "notes", "port": "lab"}
    other = post(client, "/.svc/describe", FETCHED, ticket="svc_tkt_00")
    assert (other.status, json.loads(other.content)["error"]["code"]) == (401, "app_sign_in")


def test_a_click_signs_in_once(stage: Stage, client: socket.socket) -> None:
    answer = post(client, "/.svc/enter", POSTED, ticket=TICKET, path="/lab?token=a%20b")
    assert (answer.status, answer.headers["Location"]) == (303, "/lab?token=a%20b")
    assert answer.headers["Set-Cookie"] == "__Host-svc-app=ada; Path=/; Secure; HttpOnly; SameSite=Lax"
    assert not stage.asked, "no program has seen any of it"
    again = post(client, "/.svc/enter", POSTED, ticket=TICKET, path="/")
    assert (again.status, "Set-Cookie" in again.headers) == (401, False)
    assert b"The link was used before." in again.content


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example",
        "/\\evil.example",
        "https://evil.example/",
        "",
        "x",
        "/a\r\nSet-Cookie: a=b",
        "/\u00e9",
    ],
)
def test_it_leads_to_no_other_address(client: socket.socket, path: str) -> None:
    answer = post(client, "/.svc/enter", POSTED, ticket=TICKET, path=path)
    assert (answer.status, answer.headers["Location"]) == (303, "/")
    assert answer.headers.get_all("Set-Cookie") == [
        "__Host-svc-app=ada; Path=/; Secure; HttpOnly; SameSite=Lax"
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"Origin": "http://wiki-zzzzzzzz.localhost:24681"},
        {"Origin": f"{ORIGIN}.evil.example"},
        {"Origin": "null"},
        {"Origin": None},
        {"Sec-Fetch-Dest": "iframe"},
        {"Sec-Fetch-Dest": "empty", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Dest": None, "Sec-Fetch-Mode": None},
    ],
)
def test_nobody_is_signed_in_by_another_page(
    stage: Stage, client: socket.socket, changes: dict[str, str | None]
) -> None:
    headers = {name: value for name, value in (POSTED | changes).items() if value is not None}
    answer = post(client, "/.svc/enter", headers, ticket=TICKET, path="/")
    assert answer.status in (401, 403)
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("path", ["/.svc/describe", "/.svc/leave"])
def test_another_page_asks_and_leaves_nothing(stage: Stage, client: socket.socket, path: str) -> None:
    headers = (
        FETCHED | {"Sec-Fetch-Site": "same-site", "Origin": "http://wiki-zzzzzzzz.localhost:24681"} | COOKIE
    )
    answer = post(client, path, headers | {"Sec-Fetch-Site": "same-site"}, ticket=TICKET)
    assert (answer.status, json.loads(answer.content)["error"]["code"]) == (403, "app_cross_origin")
    assert not stage.asked


def test_leaving(stage: Stage, client: socket.socket) -> None:
    answer = post(client, "/.svc/leave", FETCHED | COOKIE)
    assert (answer.status, answer.content) == (204, b"")
    assert answer.headers["Set-Cookie"].startswith("__Host-svc-app=; Path=/; Secure;")
    assert [asked.cookie for asked in stage.asked] == ["ada"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/.svc", 404),
        ("GET", "/.svc/", 404),
        ("GET", "/.svc/../x", 404),
        ("GET", "/.svc/describe", 404),
        ("POST", "/.svc/page.css", 404),
        ("GET", "/.svc/enter?x=1", 200),
        ("HEAD", "/.svc/enter", 200),
        ("GET", "/.svc/enter/", 404),
        ("GET", "/.svcx", 200),  # the program's
    ],
)
def test_what_is_the_services_own(client: socket.socket, method: str, path: str, status: int) -> None:
    assert call(client, method, path, **COOKIE).status == status


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"ticket=" + b"a" * BODY_MAX, 413),
        (b"ticket=a&ticket=b", 400),
        (b"path=/", 400),
        (b"\xff", 400),
        (b"&".join(b"a%d=1" % n for n in range(20)), 400),
    ],
)
def test_what_is_no_form(client: socket.socket, body: bytes, status: int) -> None:
    assert call(client, "POST", "/.svc/enter", body, **POSTED).status == status


def test_many_of_our_own_requests_in_one_piece(client: socket.socket) -> None:
    one = b"GET /.svc/page.css HTTP/1.1\r\nHost: lab-f7d3k2qa.localhost:24681\r\n\r\n"
    client.sendall(one * 800)
    client.shutdown(socket.SHUT_WR)
    time.sleep(0.3)  # until no answer more has room
    seen = b""
    while part := client.recv(1 << 20):
        seen += part
    assert seen.count(b"HTTP/1.1 200") == 800
    assert seen.count(b"outline-offset: 2px; }") == 800, "the last one is whole, too"


def test_a_refusal_is_a_page_in_a_tab_and_json_elsewhere(stage: Stage, client: socket.socket) -> None:
    answer = call(client, "GET", "/", **TAB | {"Cookie": "a=1"})
    assert (answer.status, answer.headers["Content-Type"]) == (401, "text/html; charset=utf-8")
    assert COMMAND.encode() in answer.content
    assert b"<script" not in answer.content
    with stage.client() as other:
        answer = call(other, "GET", "/", Cookie="a=1")
        wrong = json.loads(answer.content)["error"]
        assert wrong == {"code": "app_sign_in", "message": "sign in first", "hint": COMMAND}


def test_a_tab_waits_for_its_program(stage: Stage, client: socket.socket) -> None:
    stage.refusal = Refused(502, "app_not_listening", "no program <takes> connections")
    answer = call(client, "GET", "/", **TAB)
    assert answer.status == 502
    assert b'http-equiv="refresh"' in answer.content
    assert b"No program &lt;takes&gt; connections." in answer.content


def test_the_command_names_the_app() -> None:
    said = pages.refusal(USED, App("lab", "ws-f7d3k2qa"), as_page=False)
    assert json.loads(said.body)["error"]["hint"] == COMMAND
    assert "hint" not in json.loads(pages.refusal(USED, None, as_page=False).body)["error"]


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("app_not_found", "svc ws list"),
        ("app_not_listening", "svc ws launchers ws-f7d3k2qa"),
        ("app_bad_response", "svc ws logs ws-f7d3k2qa"),
    ],
)
def test_each_refusal_has_a_way_out(code: str, hint: str) -> None:
    said = pages.refusal(Refused(404, code, "no"), App("lab", "ws-f7d3k2qa"), as_page=False)
    assert json.loads(said.body)["error"]["hint"] == hint
