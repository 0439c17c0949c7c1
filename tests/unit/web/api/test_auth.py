"""Login, logout and the session at hand, over HTTP: one cookie, one secret, each shown once."""

from __future__ import annotations

import json
from http.cookies import SimpleCookie
from typing import Any, NamedTuple

import pytest
from unit.configuring import SECRET
from unit.serving import caller_of, checked

from svc.db.connect import database
from svc.domain import events
from svc.domain.accounts import passwords, sessions, tokens, users
from svc.domain.accounts.sessions import Secrets
from svc.limits import LOGIN_FAILURES_MAX
from svc.web.callers.credentials import COOKIE, HEADER

PASSWORD = "tall Lamp, 7 rivers"
NEW = "another Kettle of 3 tins"
LOGIN = "/api/auth/login"


class Browser(NamedTuple):
    """What a browser has after a login."""

    answer: Any
    cookie: Any
    secrets: Secrets


@pytest.fixture(autouse=True)
def password(listeners: Any, people: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ada has one, hashed in no time."""
    monkeypatch.setattr(passwords, "COST", 4)
    users.set_password(people["ada"], passwords.hash_password(PASSWORD, SECRET), len(PASSWORD))


def ask(listeners: Any, argument: str = PASSWORD, name: str = "ada", **options: Any) -> Any:
    return listeners.ask(None, "POST", LOGIN, json={"username": name, "password": argument}, **options)


def cookie_of(answer: Any) -> Any:
    [header] = answer.headers.getlist("Set-Cookie")
    return SimpleCookie(header)[COOKIE]


@pytest.fixture
def ada(listeners: Any) -> Browser:
    answer = ask(listeners)
    cookie = cookie_of(answer)
    return Browser(answer, cookie, Secrets(cookie.value, answer.get_json()["session_secret"]))


def test_a_login(listeners: Any, ada: Browser) -> None:
    body = ada.answer.get_json()
    assert ada.answer.status_code == 200
    assert set(body) == {"session_secret", "session", "user"}
    assert body["user"] == {"name": "ada", "display_name": "", "superuser": False}
    assert body["session"]["address"] == "127.0.0.1"
    me = listeners.ask(None, "GET", "/api/users/me", session=ada.secrets).get_json()
    assert (me["name"], me["via"]) == ("ada", "session")


def test_the_cookie(ada: Browser) -> None:
    """ "HttpOnly, Secure, SameSite=Strict, Path=/", and no longer than the browser is open."""
    assert (ada.cookie["httponly"], ada.cookie["secure"]) == (True, True)
    assert (ada.cookie["samesite"], ada.cookie["path"]) == ("Strict", "/")
    assert (ada.cookie["domain"], ada.cookie["max-age"], ada.cookie["expires"]) == ("", "", "")
    assert COOKIE == "__Host-svc"
    assert ada.answer.headers["Cache-Control"] == "no-store"


def test_the_secrets_are_shown_once(listeners: Any, ada: Browser) -> None:
    """The header's in the body and nowhere else, the cookie's in the cookie; never again."""
    assert ada.secrets.cookie not in ada.answer.text
    assert ada.secrets.header not in str(ada.answer.headers)
    again = listeners.ask(None, "GET", "/api/auth/session", session=ada.secrets)
    for secret in ada.secrets:
        assert secret not in again.text + str(again.headers)


def test_the_session_at_hand(listeners: Any, ada: Browser) -> None:
    body = listeners.ask(None, "GET", "/api/auth/session", session=ada.secrets).get_json()
    assert set(body) == {"session", "user", "attention", "events_after"}
    assert body["events_after"] == events.newest_before()
    assert body["user"] == ada.answer.get_json()["user"]
    assert body["session"] == ada.answer.get_json()["session"]


def test_logout(listeners: Any, ada: Browser) -> None:
    """ "logout incomplete" has hit others: the row goes, the cookie goes, the other login stays."""
    other = ask(listeners)
    answer = listeners.ask(None, "POST", "/api/auth/logout", json={}, session=ada.secrets)
    assert (answer.status_code, answer.data) == (204, b"")
    cookie = cookie_of(answer)
    assert (cookie.value, cookie["max-age"], cookie["path"]) == ("", "0", "/")
    assert (cookie["secure"], cookie["httponly"], cookie["samesite"]) == (True, True, "Strict")
    checked(listeners.ask(None, "GET", "/api/auth/session", session=ada.secrets), 401, "unauthenticated")
    left = Secrets(cookie_of(other).value, other.get_json()["session_secret"])
    assert listeners.ask(None, "GET", "/api/auth/session", session=left).status_code == 200


def test_logout_without_a_body(listeners: Any, ada: Browser) -> None:
    assert listeners.ask(None, "POST", "/api/auth/logout", session=ada.secrets).status_code == 204


def test_a_wrong_login(listeners: Any) -> None:
    """ "same body and status" for a wrong password and a wrong name, and no cookie."""
    answers = [ask(listeners, "wrong"), ask(listeners, name="eve"), ask(listeners, name="bob")]
    for answer in answers:
        checked(answer, 401, "unauthenticated")
        assert "Set-Cookie" not in answer.headers
    bodies = [answer.get_json()["error"] | {"request_id": ""} for answer in answers]
    assert bodies[0] == bodies[1] == bodies[2]


def test_too_many(listeners: Any) -> None:
    """ "5 failures in 15 minutes per user and per address answer 429"."""
    for _ in range(LOGIN_FAILURES_MAX):
        checked(ask(listeners, "wrong"), 401, "unauthenticated")
    answer = ask(listeners)
    checked(answer, 429, "too_many_requests")
    assert 0 < int(answer.headers["Retry-After"]) <= 15 * 60
    elsewhere = ask(listeners, environ={"REMOTE_ADDR": "192.0.2.2"})
    checked(elsewhere, 429, "too_many_requests")  # the user's are full too
    assert listeners.ask("ada", "GET", "/api/users/me").status_code == 200  # "the socket never locks"


@pytest.mark.parametrize("who", ["ada", "root", "stranger"])
def test_never_on_the_socket(listeners: Any, who: str) -> None:
    """ "Rejected on the host-local socket", whatever is sent."""
    for method, path in (("POST", LOGIN), ("POST", "/api/auth/logout"), ("GET", "/api/auth/session")):
        answer = listeners.ask(who, method, path, json={"username": "ada", "password": PASSWORD})
        checked(answer, 403, "not_allowed_on_socket")


def test_no_token_reaches_it(listeners: Any, people: Any) -> None:
    """ "PAT on ... login, password" (row 11): 403, also where anybody may try a login."""
    secret = tokens.create(caller_of(people["ada"], listeners.far), "laptop")["secret"]
    headers = {"Authorization": f"Bearer {secret}"}
    for method, path in (("POST", "/api/auth/logout"), ("GET", "/api/auth/session")):
        checked(listeners.ask(None, method, path, headers=headers), 403, "pat_not_allowed")
    body = {"current_password": PASSWORD, "password": NEW}
    answer = listeners.ask(None, "PUT", "/api/users/ada/password", json=body, headers=headers)
    checked(answer, 403, "pat_not_allowed")
    checked(ask(listeners, PASSWORD, headers=headers), 403, "pat_not_allowed")


@pytest.mark.parametrize(
    "body",
    [
        {}, {"username": "ada"}, {"password": "x"}, {"username": "ada", "password": None},
        {"username": 1, "password": "x"}, {"username": "ada", "password": ["x"]},
        {"username": "ada", "password": "x", "remember": True},
        {"username": "ada", "password": "tall Lamp, 7 rivers" * 60},
        {"username": "x" * 1025, "password": "x"},
    ],
    ids=["empty", "no-password", "no-name", "null", "number", "list", "unknown-key", "1-kib", "long-name"],
)  # fmt: skip
def test_what_is_no_login(listeners: Any, body: Any) -> None:
    """Refused before anything is counted or hashed; what was sent is not sent back."""
    answer = listeners.ask(None, "POST", LOGIN, json=body)
    checked(answer, 422, "validation_failed")
    assert "tall Lamp" not in answer.text
    assert database.execute_sql("SELECT count(*) FROM login_failures").fetchone() == (0,)


def test_a_password_of_ten_megabytes(listeners: Any) -> None:
    checked(ask(listeners, "x" * 10_000_000), 413, "too_large")


@pytest.mark.parametrize("argument", ["\0", "x\0y", "\U0001f511" * 64, "\ufdfa" * 8, " " * 12, "\u202e", ""])
def test_strange_passwords(listeners: Any, argument: str) -> None:
    """ "NUL, 64 emoji, ... U+FDFA x 8" (row 20): the answer of every wrong one."""
    checked(ask(listeners, argument), 401, "unauthenticated")


def test_json_only(listeners: Any) -> None:
    text = json.dumps({"username": "ada", "password": PASSWORD})
    for kind, status, code in (
        ("text/plain", 403, "cross_site"),
        ("application/x-www-form-urlencoded", 403, "cross_site"),
        ("application/xml", 400, "invalid_json"),
        (None, 400, "invalid_json"),
    ):
        checked(listeners.ask(None, "POST", LOGIN, data=text, content_type=kind), status, code)
    checked(listeners.ask(None, "POST", f"{LOGIN}?username=ada", json={}), 422, "validation_failed")
    half = '{"username": "ada", "password": "\\ud800"}'
    checked(
        listeners.ask(None, "POST", LOGIN, data=half, content_type="application/json"), 400, "invalid_json"
    )
    assert database.execute_sql("SELECT count(*) FROM sessions").fetchone() == (0,)


def test_a_login_beside_an_old_cookie(listeners: Any, ada: Browser) -> None:
    """ "new id at login": the cookie that was there opens nothing new."""
    again = ask(listeners, headers={"Cookie": f"{COOKIE}={ada.secrets.cookie}"})
    assert again.status_code == 200
    assert cookie_of(again).value != ada.secrets.cookie
    mixed = Secrets(ada.secrets.cookie, again.get_json()["session_secret"])
    checked(listeners.ask(None, "GET", "/api/auth/session", session=mixed), 401, "unauthenticated")


def test_a_new_password_ends_the_session(listeners: Any, ada: Browser) -> None:
    body = {"current_password": PASSWORD, "password": NEW}
    answer = listeners.ask(None, "PUT", "/api/users/ada/password", json=body, session=ada.secrets)
    assert answer.status_code == 204
    assert cookie_of(answer).value == ""
    checked(listeners.ask(None, "GET", "/api/auth/session", session=ada.secrets), 401, "unauthenticated")
    assert ask(listeners, NEW).status_code == 200
    checked(ask(listeners), 401, "unauthenticated")


def test_nobody_changes_anothers_password(listeners: Any, ada: Browser, people: Any) -> None:
    """Administrators neither: `svc admin set-password` is theirs."""
    users.update(people["ada"], superuser=True)
    body = {"current_password": PASSWORD, "password": NEW}
    for name in ("bob", "root", "nobody-here"):
        answer = listeners.ask(None, "PUT", f"/api/users/{name}/password", json=body, session=ada.secrets)
        checked(answer, 404, "not_found")


def test_what_is_answered_is_what_is_described(listeners: Any, ada: Browser) -> None:
    schemas = listeners.ask("ada", "GET", "/api/openapi.json").get_json()["components"]["schemas"]
    body = ada.answer.get_json()
    assert set(schemas["LoginAnswer"]["properties"]) == set(body)
    assert set(schemas["SessionRecord"]["properties"]) == set(body["session"])
    assert set(schemas["SessionUser"]["properties"]) == set(body["user"])
    assert schemas["Credentials"]["properties"]["password"]["format"] == "password"


def test_no_secret_is_logged(
    listeners: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of a login, not of a wrong one, and not when something breaks with the password in hand."""
    ask(listeners, "wrong Lamp 8")
    ask(listeners, name="wrong Lamp 8")

    def broken(*_: Any) -> Any:
        raise ValueError("a bug")

    monkeypatch.setattr(sessions, "begin", broken)
    checked(ask(listeners), 500, "internal_error")
    written = capsys.readouterr().err
    assert "a bug" in written
    assert "wrong Lamp" not in written
    assert PASSWORD not in written
    rows = str(database.execute_sql("SELECT * FROM audit").fetchall())
    assert "wrong Lamp" not in rows
    assert PASSWORD not in rows
    assert HEADER not in written


# --- one's own sessions ---------------------------------------------------------------------

FIREFOX = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"}


def test_own_sessions_are_listed_and_ended(listeners: Any, ada: Browser) -> None:
    """In the browser, and on the host for whoever lost it; no secret and no digest of one."""
    other = ask(listeners, headers=FIREFOX)
    secrets = Secrets(cookie_of(other).value, other.get_json()["session_secret"])
    answer = listeners.ask(None, "GET", "/api/auth/sessions", session=ada.secrets)
    page = answer.get_json()
    assert page["total"] == 2
    assert {record["browser"]: record["current"] for record in page["items"]} == {
        "Firefox on Linux": False,
        "unknown browser": True,
    }
    for secret in (*ada.secrets, *secrets):
        assert secret not in answer.text
    assert "hash" not in answer.text
    gone = next(record["id"] for record in page["items"] if not record["current"])
    path = f"/api/auth/sessions/{gone}"
    assert listeners.ask(None, "DELETE", path, session=ada.secrets).status_code == 204
    checked(listeners.ask(None, "GET", "/api/users/me", session=secrets), 401, "unauthenticated")
    checked(listeners.ask(None, "DELETE", path, session=ada.secrets), 404, "not_found")
    checked(listeners.ask("bob", "DELETE", f"/api/auth/sessions/{page['items'][0]['id']}"), 404, "not_found")
    assert listeners.ask("ada", "GET", "/api/auth/sessions").get_json()["total"] == 1


def test_all_other_sessions_are_ended(listeners: Any, ada: Browser) -> None:
    others = [ask(listeners) for _ in range(2)]
    answer = listeners.ask(None, "DELETE", "/api/auth/sessions", session=ada.secrets)
    assert (answer.status_code, answer.get_json()) == (200, {"ended": 2})
    for other in others:
        secrets = Secrets(cookie_of(other).value, other.get_json()["session_secret"])
        checked(listeners.ask(None, "GET", "/api/users/me", session=secrets), 401, "unauthenticated")
    assert listeners.ask(None, "GET", "/api/users/me", session=ada.secrets).status_code == 200
    assert listeners.ask("ada", "DELETE", "/api/auth/sessions").get_json() == {"ended": 1}
    checked(listeners.ask(None, "GET", "/api/users/me", session=ada.secrets), 401, "unauthenticated")


def test_what_awaits_attention_comes_with_the_session(listeners: Any, ada: Browser, people: Any) -> None:
    tokens.create(caller_of(people["ada"], listeners.far), "soon", 3)
    answer = listeners.ask(None, "GET", "/api/auth/session", session=ada.secrets)
    assert answer.get_json()["attention"] == {
        "tokens_expiring": 1, "reviews_waiting": 0, "gpus_lost": 0, "operations_failed": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "value", "counts"),
    [
        ("GET", "/api/users/me", "1", False),
        ("HEAD", "/api/users/me", "1", False),
        ("GET", "/api/users/me", "0", True),
        ("GET", "/api/users/me", None, True),
        ("PATCH", "/api/users/ada", "1", True),  # what changes something was asked for
    ],
)
def test_background_reading_is_no_use(
    listeners: Any, ada: Browser, method: str, path: str, value: str | None, counts: bool
) -> None:
    used = sessions.after(sessions.now(), -3600)
    database.execute_sql("UPDATE sessions SET last_used_at = ?", (used,))
    headers = {} if value is None else {"X-Svc-Background": value}
    body = {"json": {"display_name": "Ada"}} if method == "PATCH" else {}
    answer = listeners.ask(None, method, path, session=ada.secrets, headers=headers, **body)
    assert answer.status_code == 200
    now_used = database.execute_sql("SELECT last_used_at FROM sessions").fetchone()[0]
    assert (now_used > used) == counts
