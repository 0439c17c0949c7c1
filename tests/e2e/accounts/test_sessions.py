"""Browser sessions of the installed program: their user lists and ends them, also on the host."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from e2e.installation import PASSWORD, Call, Service
from e2e.surroundings import in_database, must

from svc.host.ids import after, now

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
USER = "tse-bob"


class Browser(NamedTuple):
    """A browser that has logged in."""

    port: int
    headers: dict[str, str]

    def ask(self, method: str, path: str, **more: str) -> tuple[int, Any]:
        """Status and JSON of a request."""
        status, _, body = request(self.port, method, path, self.headers | more)
        return status, json.loads(body) if body else None


def request(
    port: int, method: str, path: str, headers: dict[str, str], body: str | None = None
) -> tuple[int, dict[str, str], bytes]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # its own certificate
    connection = http.client.HTTPSConnection("localhost", port, timeout=60, context=context)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


@pytest.fixture
def port(service: Service) -> Iterator[int]:
    in_database(service.env, "DELETE FROM login_failures")
    in_database(service.env, "DELETE FROM sessions")
    yield int(service.env["SVC_PORT"])
    in_database(service.env, "DELETE FROM sessions")


def login(port: int, user_agent: str = FIREFOX) -> Browser:
    body = json.dumps({"username": USER, "password": PASSWORD.strip()})
    headers = {"Content-Type": "application/json", "User-Agent": user_agent}
    status, fields, answer = request(port, "POST", "/api/auth/login", headers, body)
    assert status == 200, answer
    cookie = fields["Set-Cookie"].partition(";")[0]
    return Browser(port, {"Cookie": cookie, "X-Svc-Session": json.loads(answer)["session_secret"]})


def test_listed_and_ended_in_the_browser(port: int) -> None:
    here, other = login(port), login(port, "curl/8.9\x09<b>")
    status, page = here.ask("GET", "/api/auth/sessions")
    assert (status, page["total"]) == (200, 2)
    assert {item["browser"]: item["current"] for item in page["items"]} == {
        "Firefox on Linux": True, "curl": False,
    }  # fmt: skip
    gone = next(item["id"] for item in page["items"] if not item["current"])
    assert here.ask("DELETE", f"/api/auth/sessions/{gone}")[0] == 204
    assert other.ask("GET", "/api/users/me")[0] == 401
    assert here.ask("GET", "/api/auth/session")[1]["attention"]["gpus_lost"] == 0


def test_ended_on_the_host(port: int, svc: Call) -> None:
    """Whoever lost the laptop has the host."""
    lost = login(port)
    assert must(svc(USER, "api", "GET", "/api/auth/sessions")).json()["total"] == 1
    assert must(svc("tse-alice", "api", "GET", "/api/auth/sessions")).json()["total"] == 0
    assert must(svc(USER, "api", "DELETE", "/api/auth/sessions")).json() == {"ended": 1}
    assert lost.ask("GET", "/api/users/me")[0] == 401


def test_a_tab_that_nobody_looks_at_becomes_idle(port: int, service: Service) -> None:
    """Its page goes on asking; the session's last use stays where it was, and it ends."""
    tab = login(port)
    used = after(now(), -11 * 3600)
    in_database(service.env, "UPDATE sessions SET last_used_at = ?", used)
    for _ in range(3):
        assert tab.ask("GET", "/api/workspaces", **{"X-Svc-Background": "1"})[0] == 200
    assert in_database(service.env, "SELECT last_used_at FROM sessions") == [[used]]
    in_database(service.env, "UPDATE sessions SET last_used_at = ?", after(now(), -12 * 3600 - 60))
    assert tab.ask("GET", "/api/workspaces", **{"X-Svc-Background": "1"})[0] == 401
