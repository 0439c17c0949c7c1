"""Terminals over HTTP: the ticket, the handshake, the Origin, whose they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from unit.serving import TERMINAL, caller_of, checked
from unit.streaming import until

from svc.db.connect import database
from svc.domain.accounts import sessions, tokens
from svc.domain.accounts.sessions import Secrets
from svc.domain.places import streams
from svc.web.callers.credentials import COOKIE
from svc.web.streaming import loop as loops
from svc.web.streaming.terminal import PROTOCOL
from svc.websocket import TEXT, Receiver

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
HANDSHAKE = {
    "Connection": "keep-alive, Upgrade", "Upgrade": "WebSocket", "Sec-WebSocket-Key": KEY,
    "Sec-WebSocket-Version": "13", "Sec-WebSocket-Protocol": f"other, {PROTOCOL}",
}  # fmt: skip
ORIGIN = {"Origin": "https://localhost"}
AT = "2025-01-02T03:04:05.000Z"
RECORD = TERMINAL | {"opened_at": AT, "active_at": AT}
PATH = "/api/workspaces/lab/terminal?id=t-4k2m9x"


@pytest.fixture(autouse=True)
def loop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A loop that ends with the test, and with it every stream."""
    loop = loops.Loop()
    monkeypatch.setattr("svc.web.streaming.stream.default_loop", loop)
    yield
    loop.close()
    until(lambda: streams.taken() == 0)


@pytest.fixture
def secrets(people: Any, lab: str) -> Secrets:
    """Of a session of ada's."""
    return sessions.begin(people["ada"].id, "192.0.2.1")[1]


def attach(listeners: Any, who: str | None, path: str, headers: dict[str, str], **options: Any) -> Any:
    environ = {"SERVER_PROTOCOL": "HTTP/1.1"} | options.pop("environ", {})
    return listeners.ask(who, "GET", path, headers=HANDSHAKE | headers, environ=environ, **options)


def ticket_of(listeners: Any, secrets: Secrets) -> str:
    answer = listeners.ask(None, "POST", "/api/workspaces/lab/terminals", json={}, session=secrets)
    assert answer.status_code == 201
    return str(answer.get_json()["ticket"])


def is_attached(answer: Any, listeners: Any) -> None:
    """The answer is that to a handshake, and the first message says to what."""
    assert answer.status_code == 101, answer.text
    assert answer.headers["Upgrade"] == "websocket"
    assert answer.headers["Sec-WebSocket-Accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert answer.headers["Sec-WebSocket-Protocol"] == PROTOCOL
    receiver, messages = Receiver(1 << 20, masked=False), []
    content = iter(answer.response)
    while not messages:
        messages += receiver.feed(next(content))
    assert messages[0][0] == TEXT
    message = json.loads(messages[0][1])
    assert (message["type"], message["terminal"]["id"]) == ("attached", TERMINAL["id"])
    answer.close()


def test_records(listeners: Any, lab: str) -> None:
    page = listeners.ask("ada", "GET", "/api/workspaces/lab/terminals").get_json()
    assert (page["items"], page["max"]) == ([RECORD], 8)
    body = {"cols": 120, "rows": 40, "command": ["top"]}
    answer = listeners.ask("ada", "POST", "/api/workspaces/lab/terminals", json=body)
    assert answer.get_json() == RECORD | {"ticket": None}  # a peer needs none
    assert answer.headers["Location"] == "/api/workspaces/lab/terminal?id=t-4k2m9x"
    call = listeners.far.asked()[-1]
    assert (call.args["cols"], call.args["rows"], call.args["command"]) == (120, 40, ["top"])
    assert listeners.ask("ada", "DELETE", "/api/workspaces/lab/terminals/t-4k2m9x").status_code == 204


@pytest.mark.parametrize(
    "body", [{"cols": 0}, {"cols": 1001}, {"rows": "24"}, {"command": "top"}, {"command": []}, {"shell": "x"}]
)
def test_what_opens_none(listeners: Any, lab: str, body: Any) -> None:
    answer = listeners.ask("ada", "POST", "/api/workspaces/lab/terminals", json=body)
    checked(answer, 422, "validation_failed")
    assert "terminal.open" not in listeners.far.verbs()


def test_a_page_attaches_with_its_ticket(listeners: Any, secrets: Secrets) -> None:
    """The browser sends the cookie besides, which does not count; the window may have changed meanwhile."""
    url = f"{PATH}&cols=120&rows=40&ticket={ticket_of(listeners, secrets)}"
    headers = ORIGIN | {"Cookie": f"{COOKIE}={secrets.cookie}"}
    is_attached(attach(listeners, None, url, headers), listeners)
    call = listeners.far.asked()[-1]
    assert (call.verb.name, call.args["terminal"], call.args["cols"]) == ("terminal.attach", "t-4k2m9x", 120)
    checked(attach(listeners, None, url, headers), 401, "unauthenticated")


def test_a_page_returns_with_another(listeners: Any, secrets: Secrets) -> None:
    answer = listeners.ask(None, "POST", "/api/tickets", json={"url": PATH}, session=secrets)
    is_attached(attach(listeners, None, answer.get_json()["url"], ORIGIN), listeners)


def test_a_stolen_ticket(listeners: Any, secrets: Secrets) -> None:
    for path in (PATH.replace("4k2m9x", "other1"), PATH.replace("lab", "bal"), PATH.partition("?")[0] + "?"):
        url = f"{path}&ticket={ticket_of(listeners, secrets)}".replace("?&", "?")
        checked(attach(listeners, None, url, ORIGIN), 401, "unauthenticated")


@pytest.mark.parametrize(
    "origin",
    [
        None, "", "null", "http://localhost", "https://localhost:8443", "https://localhost.evil", "https://evil",
        "https://LOCALHOST", "https://localhost/", "https://svc.example", "https://localhost,https://localhost",
    ],
)  # fmt: skip
def test_a_forged_origin(listeners: Any, secrets: Secrets, origin: str | None) -> None:
    """Neither a page of another origin, nor of an app on another port of this host, nor none."""
    ticket = ticket_of(listeners, secrets)
    headers = {} if origin is None else {"Origin": origin}
    answer = attach(listeners, None, f"{PATH}&ticket={ticket}", headers)
    checked(answer, 403, "cross_site")
    checked(attach(listeners, None, PATH, headers, session=secrets), 403, "cross_site")
    is_attached(attach(listeners, None, f"{PATH}&ticket={ticket}", ORIGIN), listeners)


def test_a_token_needs_no_origin(listeners: Any, people: Any, lab: str) -> None:
    token = tokens.create(caller_of(people["ada"], listeners.far), "laptop")["secret"]
    bearer = {"Authorization": f"Bearer {token}"}
    is_attached(attach(listeners, None, PATH, bearer), listeners)
    checked(attach(listeners, None, PATH, bearer | {"Origin": "https://evil"}), 403, "cross_site")
    answer = listeners.ask(None, "POST", "/api/workspaces/lab/terminals", json={}, headers=bearer)
    url = f"{PATH}&ticket={answer.get_json()['ticket']}"
    tokens.revoke(caller_of(people["ada"], listeners.far), "laptop")
    checked(attach(listeners, None, url, ORIGIN), 401, "unauthenticated")


def test_on_the_host_socket(listeners: Any, lab: str) -> None:
    is_attached(attach(listeners, "ada", PATH, {}), listeners)
    is_attached(attach(listeners, "ada", "/api/workspaces/lab/terminal?cols=97&rows=31", {}), listeners)
    call = listeners.far.asked()[-1]
    assert (call.verb.name, call.args["attach"], call.args["cols"]) == ("terminal.open", True, 97)
    is_attached(
        attach(listeners, "ada", '/api/workspaces/lab/terminal?command=["sh","-c","id"]', {}), listeners
    )
    assert listeners.far.asked()[-1].args["command"] == ["sh", "-c", "id"]
    checked(attach(listeners, "ada", PATH, ORIGIN), 400, "invalid_request")
    checked(attach(listeners, "ada", PATH, {"X-Svc-Via": "api"}), 400, "streaming_not_supported")


@pytest.mark.parametrize(
    "query", ["id=x", "id=t-..", "cols=0", "rows=1001", "command=top", "command=[", "x=1"]
)
def test_a_query_that_is_not_valid(listeners: Any, lab: str, query: str) -> None:
    checked(attach(listeners, "ada", f"/api/workspaces/lab/terminal?{query}", {}), 422, "validation_failed")


@pytest.mark.parametrize(
    ("who", "code"), [("bob", "not_found"), ("boss", "owner_only"), ("root", "owner_only")]
)
def test_whose_it_is(listeners: Any, lab: str, who: str, code: str) -> None:
    """ "Owner only: administrators get `owner_only`", which is audited."""
    status = 404 if code == "not_found" else 403
    checked(attach(listeners, who, PATH.replace("lab", lab), {}), status, code)
    if code == "owner_only":
        assert database.execute_sql("SELECT action FROM audit WHERE outcome = ?", (code,)).fetchone()
    assert not {"terminal.attach", "terminal.open"} & set(listeners.far.verbs())


@pytest.mark.parametrize(
    ("changed", "environ"),
    [
        ({"Upgrade": "h2c"}, {}), ({"Connection": "keep-alive"}, {}), ({"Sec-WebSocket-Version": "8"}, {}),
        ({"Sec-WebSocket-Key": "x"}, {}), ({"Sec-WebSocket-Protocol": "other"}, {}),
        ({}, {"SERVER_PROTOCOL": "HTTP/1.0"}),
    ],
)  # fmt: skip
def test_what_is_no_handshake(listeners: Any, lab: str, changed: Any, environ: Any) -> None:
    checked(attach(listeners, "ada", PATH, changed, environ=environ), 400, "invalid_request")
    assert "terminal.attach" not in listeners.far.verbs()


def test_a_handshake_anywhere_else_is_an_ordinary_request(listeners: Any, lab: str) -> None:
    assert attach(listeners, "ada", "/api/workspaces", {}).status_code == 200
    assert attach(listeners, None, "/api/workspaces", {}).status_code == 401
