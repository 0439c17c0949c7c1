"""Downloads by a plain link: a ticket opens exactly what it was issued for, once, and is seen nowhere."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import checked

from svc.db.connect import database
from svc.domain.accounts import sessions, users
from svc.domain.accounts.sessions import Secrets
from svc.domain.places import long_calls
from svc.limits import TOKEN_FAILURES_MAX
from svc.web import inputs, rechecks
from svc.web.callers import tickets
from svc.web.callers.credentials import COOKIE
from svc.web.gunicorn_worker import transfers

FILE = "/api/fs/work/download?path=notes.txt"


@pytest.fixture
def secrets(people: Any, listeners: Any) -> Secrets:
    """Of a session of ada's."""
    return sessions.begin(people["ada"].id, "192.0.2.1")[1]


def link(listeners: Any, secrets: Secrets, url: str = FILE) -> str:
    answer = listeners.ask(None, "POST", "/api/tickets", json={"url": url}, session=secrets)
    assert answer.status_code == 201
    return str(answer.get_json()["url"])


def refused(listeners: Any, url: str, **options: Any) -> None:
    checked(listeners.ask(None, "GET", url, **options), 401, "unauthenticated")


@pytest.mark.parametrize(
    ("url", "disposition"),
    [
        (FILE, 'filename="notes.txt"'),
        ("/api/fs/work/archive", 'filename="work.tar.gz"'),
        ("/api/templates/base/export", 'filename="base.tar"'),
        ("/api/workspaces/lab/logs/raw", 'filename="lab.log"'),
        ("/api/workspaces/lab/logs/raw?tail=5&launcher=ada", 'filename="lab-ada.log"'),
    ],
)
def test_a_plain_link(listeners: Any, lab: str, secrets: Secrets, url: str, disposition: str) -> None:
    url = link(listeners, secrets, url)
    with listeners.ask(None, "GET", url) as answer:
        assert answer.status_code == 200
        assert disposition in answer.headers["Content-Disposition"]
        assert answer.headers["Content-Disposition"].startswith("attachment;")
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"
    refused(listeners, url)


def test_it_acts_as_its_session(listeners: Any, secrets: Secrets) -> None:
    listeners.ask(None, "GET", link(listeners, secrets)).close()
    rows = database.execute_sql("SELECT user_name, via, action, outcome, detail_json FROM audit").fetchall()
    assert [row[:3] for row in rows] == [("ada", "session", "fs.download")] * 2
    assert all("ses-" in row[4] for row in rows)


def test_the_cookie_beside_it_does_not_count(listeners: Any, secrets: Secrets) -> None:
    """Browsers send it with every link of our pages, without the header."""
    for cookie in (secrets.cookie, "wrong"):
        url = link(listeners, secrets)
        headers = {"Cookie": f"{COOKIE}={cookie}", "Sec-Fetch-Site": "same-origin"}
        assert listeners.ask(None, "GET", url, headers=headers).status_code == 200


def test_another_credential_beside_it(listeners: Any, secrets: Secrets) -> None:
    headers = {"Authorization": "Bearer x"}
    url = link(listeners, secrets)
    checked(listeners.ask(None, "GET", url, headers=headers), 400, "invalid_request")
    assert listeners.ask(None, "GET", url).status_code == 200


@pytest.mark.parametrize(
    "other",
    [
        "/api/fs/work/download?path=other.txt",
        "/api/fs/data/download?path=notes.txt",
        "/api/fs/work/archive?path=notes.txt",
        "/api/fs/work/download?path=notes.txt&path=",
        "/api/workspaces/lab/logs/raw",
        "/api/templates/base/export",
    ],
)
def test_stolen_for_something_else(listeners: Any, lab: str, secrets: Secrets, other: str) -> None:
    url = link(listeners, secrets)
    ticket = url.rpartition("=")[2]
    refused(listeners, f"{other}{'&' if '?' in other else '?'}ticket={ticket}")
    refused(listeners, url)  # it was used up
    assert "fs.read" not in listeners.far.verbs()


def test_the_same_in_another_spelling(listeners: Any, secrets: Secrets) -> None:
    ticket = link(listeners, secrets).rpartition("=")[2]
    same = f"//api/fs//work/download/?%74icket={ticket}&path=notes%2Etxt"
    options = {"environ": {"PATH_INFO": "//api/fs//work/download/", "QUERY_STRING": same.partition("?")[2]}}
    assert listeners.ask(None, "GET", "/", **options).status_code == 200


def test_no_other_route_takes_one(listeners: Any, lab: str, secrets: Secrets) -> None:
    ticket = link(listeners, secrets).rpartition("=")[2]
    for path in ("/api/users/me", "/api/fs/work/read?path=notes.txt", "/api/workspaces"):
        url = f"{path}{'&' if '?' in path else '?'}ticket={ticket}"
        checked(listeners.ask(None, "GET", url, session=secrets), 422, "validation_failed")
    checked(listeners.ask(None, "GET", f"{FILE}&ticket={ticket}&ticket={ticket}"), 422, "validation_failed")
    assert listeners.ask(None, "GET", f"{FILE}&ticket={ticket}").status_code == 200


@pytest.mark.parametrize(
    "url",
    [
        "", "/", "/api/", "/api/users/me", "/api/fs/work/read?path=a", "/api/fs/work/file?path=a",
        "https://svc.example/api/fs/work/download?path=a", "//svc.example/api/fs/work/download?path=a",
        "/api/fs/work/download?path=a#x", "/api/fs/work/download?path=a b", "/api/fs/work/download?path=ü",
        "/api/workspaces/lab/exec/stream", "/api/events", "/api/tickets", "x" * 20_000,
    ],
)  # fmt: skip
def test_what_no_ticket_opens(listeners: Any, secrets: Secrets, url: str) -> None:
    answer = listeners.ask(None, "POST", "/api/tickets", json={"url": url}, session=secrets)
    checked(answer, 422, "validation_failed")


def test_a_look_does_not_use_it_up(listeners: Any, secrets: Secrets) -> None:
    url = link(listeners, secrets)
    assert listeners.ask(None, "HEAD", url).status_code == 401
    assert listeners.ask(None, "GET", url).status_code == 200


def test_after_the_end_of_its_session(listeners: Any, people: Any, secrets: Secrets) -> None:
    url = link(listeners, secrets)
    sessions.end_all(people["ada"].id)
    refused(listeners, url)


def test_of_a_disabled_account(listeners: Any, people: Any, secrets: Secrets) -> None:
    url = link(listeners, secrets)
    users.update(people["ada"], disabled=True)
    refused(listeners, url)


def test_a_long_answer_is_checked_by_the_session(
    listeners: Any, people: Any, secrets: Secrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ticket is used up by then; an ended session ends the download."""
    monkeypatch.setattr(rechecks, "ACCESS_ENDED_S", 0)
    monkeypatch.setattr(transfers.Pace, "is_check_due", lambda _self: True)
    assert listeners.ask(None, "GET", link(listeners, secrets)).status_code == 200
    answer = listeners.ask(None, "GET", link(listeners, secrets))
    sessions.end_all(people["ada"].id)
    with pytest.raises(ConnectionResetError):
        answer.get_data()
    answer.close()
    assert long_calls.taken() == 0


def test_wrong_ones_are_counted(listeners: Any, secrets: Secrets) -> None:
    for _ in range(TOKEN_FAILURES_MAX):
        refused(listeners, f"{FILE}&ticket=svc_tkt_{'0' * 64}")
    checked(listeners.ask(None, "GET", f"{FILE}&ticket=x"), 429, "too_many_requests")
    assert listeners.ask(None, "GET", link(listeners, secrets)).status_code == 200


def test_on_the_host_socket(listeners: Any, secrets: Secrets) -> None:
    """A peer's ticket is for that peer there, and opens nothing over TLS; nor a session's there."""
    url = listeners.ask("ada", "POST", "/api/tickets", json={"url": FILE}).get_json()["url"]
    assert listeners.ask("ada", "GET", url).status_code == 200
    for who, used_by in (("ada", "bob"), ("ada", None)):
        url = listeners.ask(who, "POST", "/api/tickets", json={"url": FILE}).get_json()["url"]
        checked(listeners.ask(used_by, "GET", url), 401, "unauthenticated")
    checked(listeners.ask("ada", "GET", link(listeners, secrets)), 401, "unauthenticated")


def test_svc_api_gets_none(listeners: Any) -> None:
    options = {"json": {"url": FILE}, "headers": {"X-Svc-Via": "api"}}
    checked(listeners.ask("ada", "POST", "/api/tickets", **options), 403, "not_allowed_on_socket")


def test_it_is_seen_nowhere(
    listeners: Any, secrets: Secrets, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither in the environ that is handed on, nor in the audit, nor in the cache of queries."""
    seen = []
    load = inputs._load
    monkeypatch.setattr(
        inputs, "_load", lambda schema: seen.append(inputs.request.query_string) or load(schema)
    )
    for url in (FILE.replace("notes", "fresh"), FILE + "%00"):
        url = link(listeners, secrets, url)
        listeners.ask(None, "GET", url, headers={"Referer": url}).close()
        assert url.rpartition("=")[2] not in "\n".join(database.connection().iterdump())
    assert seen
    assert not any(b"ticket" in query for query in seen)
    assert "svc_tkt_" not in "".join(capfd.readouterr())


def test_the_query_without_it() -> None:
    for query, rest in (
        ("ticket=x", ""), ("path=a&ticket=x", "path=a"), ("ticket=x&path=a", "path=a"),
        ("path=ticket", "path=ticket"), ("a=1&%74ick%65t=x&b=&c", "a=1&b=&c"), ("tickets=1", "tickets=1"),
    ):  # fmt: skip
        environ = {"QUERY_STRING": query, "RAW_URI": f"/api?{query}"}
        tickets.take(environ)
        assert environ["QUERY_STRING"] == rest
        assert environ.get(tickets.KEY, []) == (["x"] if "=x" in query else [])
