"""Sessions and tokens on the TLS listener: both secrets, one credential, no other origin's page."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

import pytest
from unit.serving import caller_of, checked

from svc.db.connect import database
from svc.domain.accounts import account_status, sessions, tokens, users
from svc.domain.accounts.sessions import Secrets
from svc.host.ids import after, now
from svc.limits import SESSION_IDLE_S, TOKEN_FAILURES_MAX
from svc.web.callers import credentials
from svc.web.callers.credentials import COOKIE, HEADER

SITE = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def secrets(people: Any, listeners: Any) -> Secrets:
    """Of a session of ada's."""
    return sessions.begin(people["ada"].id, "192.0.2.1")[1]


@pytest.fixture
def token(people: Any, listeners: Any) -> str:
    """A token of ada's."""
    return str(tokens.create(caller_of(people["ada"], listeners.far), "laptop")["secret"])


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def refused(listeners: Any, code: str, **options: Any) -> dict[str, Any]:
    status = {"unauthenticated": 401, "token_expired": 401, "invalid_request": 400, "too_many_requests": 429}
    return checked(listeners.ask(None, "GET", "/api/users/me", **options), status[code], code)


# --- sessions -----------------------------------------------------------------------------


def test_a_session_is_its_user(listeners: Any, secrets: Secrets) -> None:
    me = listeners.ask(None, "GET", "/api/users/me", session=secrets).get_json()
    assert (me["name"], me["via"]) == ("ada", "session")


def test_the_stolen_cookie_alone(listeners: Any, secrets: Secrets) -> None:
    """ "replay the stolen cookie: 401" (T7): an app on another port of this host gets it, and no more."""
    cookie = {"Cookie": f"{COOKIE}={secrets.cookie}"}
    refused(listeners, "unauthenticated", headers=cookie)
    refused(listeners, "unauthenticated", headers=cookie | {HEADER: ""})
    refused(listeners, "unauthenticated", headers=cookie | {HEADER: "wrong"})
    refused(listeners, "unauthenticated", headers=cookie | {HEADER: secrets.cookie})
    refused(listeners, "unauthenticated", headers={HEADER: secrets.header})
    for method, path in (("POST", "/api/auth/logout"), ("DELETE", "/api/workspaces/lab")):
        checked(listeners.ask(None, method, path, headers=cookie | SITE), 401, "unauthenticated")


def test_two_cookies_of_our_name(listeners: Any, secrets: Secrets) -> None:
    """ "two cookies of same name" (row 15): 400, whichever of them is right."""
    ours = f"{COOKIE}={secrets.cookie}"
    for cookies in (f"{ours}; {ours}", f"{COOKIE}=x; {ours}", f"{ours};{COOKIE}=", f"{ours}; a=b; {COOKIE};"):
        for header in ({HEADER: secrets.header}, {}):
            refused(listeners, "invalid_request", headers={"Cookie": cookies, **header})


def test_cookies_of_other_apps(listeners: Any, secrets: Secrets) -> None:
    """They share the host, so theirs come too; no name but our own is ours."""
    header = {HEADER: secrets.header}
    mixed = f"theme=dark; {COOKIE}={secrets.cookie}; x; __host-svc=1; {COOKIE}x=2; =;;"
    assert listeners.ask(None, "GET", "/api/users/me", headers=header | {"Cookie": mixed}).status_code == 200
    for name in ("__Host-Svc", "__host-svc", "svc", f"{COOKIE} x", f"x{COOKIE}", f'"{COOKIE}"'):
        refused(listeners, "unauthenticated", headers=header | {"Cookie": f"{name}={secrets.cookie}"})


@pytest.mark.parametrize("authorization", ["Bearer {token}", "Bearer x", "Basic YTpi", ""])
def test_cookie_and_bearer_together(listeners: Any, secrets: Secrets, token: str, authorization: str) -> None:
    """ "Cookie and bearer together: 400", though each alone be right."""
    headers = {"Authorization": authorization.format(token=token)}
    refused(listeners, "invalid_request", session=secrets, headers=headers)
    refused(listeners, "invalid_request", headers=headers | {"Cookie": f"{COOKIE}=x"})


def test_who_ended_meanwhile(listeners: Any, secrets: Secrets, people: Any) -> None:
    """Expired in the database; disabled; expired on the host: at the next request, and at once."""
    account_status.forget()
    listeners.far.answers["account.check"] = "account"
    checked(listeners.ask(None, "GET", "/api/users/me", session=secrets), 403, "account_disabled")
    listeners.far.answers["account.check"] = {"good_for_ms": 0}
    assert listeners.ask(None, "GET", "/api/users/me", session=secrets).status_code == 200
    users.update(people["ada"], disabled=True)
    checked(listeners.ask(None, "GET", "/api/users/me", session=secrets), 403, "account_disabled")
    users.update(people["ada"], disabled=False, provisioning="cleanup_required")
    checked(listeners.ask(None, "GET", "/api/users/me", session=secrets), 403, "account_incomplete")
    users.update(people["ada"], provisioning="ready")
    database.execute_sql("UPDATE sessions SET last_used_at = ?", (after(now(), -SESSION_IDLE_S),))
    refused(listeners, "unauthenticated", session=secrets)


def test_a_session_administers_by_the_flag_of_now(listeners: Any, secrets: Secrets, people: Any) -> None:
    checked(listeners.ask(None, "GET", "/api/users", session=secrets), 403, "admin_only")
    users.update(people["ada"], superuser=True)
    assert listeners.ask(None, "GET", "/api/users", session=secrets).status_code == 200


# --- other origins' pages -------------------------------------------------------------------

FORMS = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "Text/Plain;x")


def change(listeners: Any, secrets: Secrets | None, **options: Any) -> Any:
    """Something that changes: a stop of ada's workspace, or a login that lacks all."""
    path = "/api/auth/login" if secrets is None else "/api/workspaces/lab/stop"
    return listeners.ask(None, "POST", path, session=secrets, **options)


@pytest.fixture(params=["session", "login"])
def subject(request: pytest.FixtureRequest, lab: str, secrets: Secrets) -> Secrets | None:
    """ "For cookie auth and unsafe methods", and for the login."""
    return secrets if request.param == "session" else None


@pytest.mark.parametrize("site", ["same-site", "cross-site", "none", "", "Same-Origin", "same-origin, x"])
def test_sec_fetch_site(listeners: Any, subject: Secrets | None, site: str) -> None:
    """ "`Sec-Fetch-Site` in {same-origin} if present": another port of this host is only same-site."""
    headers = {"Sec-Fetch-Site": site, "Origin": "https://localhost"}
    checked(change(listeners, subject, json={}, headers=headers), 403, "cross_site")
    assert listeners.far.verbs() == []


@pytest.mark.parametrize(
    "origin",
    [
        "null", "https://localhost:8443", "http://localhost", "https://localhost.evil", "https://evil", "",
        "https://localhost/", "https://localhost:443", "http://localhost:5173",
    ],
)  # fmt: skip
def test_origin(listeners: Any, subject: Secrets | None, origin: str) -> None:
    """ "else Origin exact match"; "Origin null, sibling port" (row 17): 403."""
    checked(change(listeners, subject, json={}, headers={"Origin": origin}), 403, "cross_site")
    assert listeners.far.verbs() == []


def test_null_is_no_origin_of_ours_whatever_else_is_said(listeners: Any, subject: Secrets | None) -> None:
    checked(change(listeners, subject, json={}, headers=SITE | {"Origin": "null"}), 403, "cross_site")


@pytest.mark.parametrize("content_type", FORMS)
def test_forms(listeners: Any, subject: Secrets | None, content_type: str) -> None:
    """ "CSRF form post, `text/plain` JSON" (row 17): 403, though the browser says same-origin."""
    for headers in ({}, SITE):
        for data in (b"", b"{}", b"a=b"):
            answer = change(listeners, subject, data=data, content_type=content_type, headers=headers)
            checked(answer, 403, "cross_site")
    assert listeners.far.verbs() == []


@pytest.mark.parametrize(
    "headers",
    [
        {}, SITE, {"Origin": "https://localhost"}, SITE | {"Origin": "https://localhost"},
        # A proxy in front may rename the host; what the browser itself compared stands.
        SITE | {"Origin": "https://outside.example"},
    ],
)  # fmt: skip
def test_our_own_pages(listeners: Any, lab: str, secrets: Secrets, headers: dict[str, str]) -> None:
    assert change(listeners, secrets, json={}, headers=headers).status_code == 200
    checked(change(listeners, None, json={}, headers=headers), 422, "validation_failed")


def test_our_own_pages_on_a_port(listeners: Any, lab: str, secrets: Secrets) -> None:
    options: dict[str, Any] = {"json": {}, "base_url": "https://localhost:24680"}
    headers = {"Origin": "https://localhost:24680"}
    assert change(listeners, secrets, headers=headers, **options).status_code == 200
    checked(change(listeners, secrets, headers={"Origin": "https://localhost"}, **options), 403, "cross_site")


def test_reading_is_not_changing(listeners: Any, secrets: Secrets) -> None:
    """A page of another origin cannot read the answer, nor send the header."""
    headers = {"Origin": "https://evil", "Sec-Fetch-Site": "cross-site"}
    answer = listeners.ask(None, "GET", "/api/users/me", session=secrets, headers=headers)
    assert answer.status_code == 200
    assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_every_unsafe_method(listeners: Any, secrets: Secrets, method: str) -> None:
    """And every path, before anything is said about it."""
    for path in ("/api/users/ada", "/api/nothing", "/api/health"):
        answer = listeners.ask(None, method, path, session=secrets, headers={"Origin": "https://evil"})
        checked(answer, 403, "cross_site")


def test_dev_takes_its_own_origins(listeners: Any, lab: str, secrets: Secrets) -> None:
    """ "Dev: exact list of loopback origins"."""
    for origin in ("http://localhost:5173", "http://127.0.0.1:5173", "http://localhost"):
        headers = {"Origin": origin, "Sec-Fetch-Site": "same-site"}
        answer = change(listeners, secrets, json={}, headers=headers, dev=True)
        assert answer.status_code == 200
        assert answer.headers["Access-Control-Allow-Origin"] == origin
        assert answer.headers["Access-Control-Allow-Credentials"] == "true"
        checked(change(listeners, secrets, json={}, headers=headers), 403, "cross_site")
    for origin in ("http://localhost.evil", "null", "http://evil:5173"):
        answer = change(listeners, secrets, json={}, headers={"Origin": origin}, dev=True)
        checked(answer, 403, "cross_site")
        assert "Access-Control-Allow-Credentials" not in answer.headers
    refused(listeners, "unauthenticated", headers={"Cookie": f"{COOKIE}={secrets.cookie}"}, dev=True)


# --- tokens ---------------------------------------------------------------------------------


def test_a_token_is_its_user(listeners: Any, token: str) -> None:
    for scheme in ("Bearer", "bearer", "BEARER"):
        me = listeners.ask(None, "GET", "/api/users/me", headers={"Authorization": f"{scheme} {token}"})
        assert (me.get_json()["name"], me.get_json()["via"]) == ("ada", "token")


def test_a_token_needs_no_page(listeners: Any, lab: str, token: str) -> None:
    """No browser sends one of its own accord, so no other page's word is asked for."""
    headers = bearer(token) | {"Origin": "https://evil", "Sec-Fetch-Site": "cross-site"}
    assert (
        listeners.ask(None, "POST", "/api/workspaces/lab/stop", json={}, headers=headers).status_code == 200
    )


def test_a_superusers_token_is_no_superuser(listeners: Any, people: Any) -> None:
    """ "It never performs administrator operations" (row 12)."""
    secret = tokens.create(caller_of(people["boss"], listeners.far), "laptop")["secret"]
    checked(listeners.ask(None, "GET", "/api/users", headers=bearer(secret)), 403, "pat_not_allowed")
    environ = {"HTTP_AUTHORIZATION": f"Bearer {secret}", "gunicorn.socket": listeners.far.theirs}
    caller = credentials.by_token(environ, listeners.far.helper, "req-1")
    assert caller is not None
    assert (caller.kind, caller.superuser, caller.administers) == ("pat", False, False)
    assert caller.credential.startswith("tok-")
    assert caller.hangup_fd == listeners.far.theirs.fileno()


def broken(token: str) -> list[str]:
    """ "wrong CRC, truncated, `svc_pat_` only, lower-cased, trailing space/newline" (row 13)."""
    other = "A" if token[-1] != "A" else "B"
    return [
        token[:-1] + other, token[:-1], "svc_pat_", token.lower(), token + " ", token + "\t", " " + token,
        token + "x", token.removeprefix("svc_pat_"), "", token + "\u00e9", f'"{token}"',
        f"{token},Bearer {token}",
    ]  # fmt: skip


def test_broken_tokens_ask_no_database(listeners: Any, token: str) -> None:
    """ "401, no DB hit when CRC is bad" (row 13)."""
    statements: list[str] = []
    connection: sqlite3.Connection = database.connection()
    connection.set_trace_callback(statements.append)
    try:
        texts = {
            refused(listeners, "unauthenticated", headers=bearer(bad))["message"] for bad in broken(token)
        }
    finally:
        connection.set_trace_callback(None)
    assert statements == []
    assert texts == {"a valid credential is needed"}


def test_a_token_comes_as_bearer_only(listeners: Any, token: str) -> None:
    """ "the header `Authorization: Bearer <PAT>`": not "in query, as Basic, as cookie" (row 13)."""
    for scheme in ("Basic", "Token", "Digest", "Bearer:", ""):
        refused(listeners, "unauthenticated", headers={"Authorization": f"{scheme} {token}"})
    refused(listeners, "unauthenticated", headers={"Authorization": token})
    refused(listeners, "unauthenticated", headers={"Cookie": f"{COOKIE}={token}", HEADER: token})
    refused(listeners, "unauthenticated", headers={"Cookie": f"token={token}", HEADER: token})
    for query in (f"access_token={token}", f"token={token}", f"Authorization=Bearer+{token}"):
        checked(listeners.ask(None, "GET", f"/api/users/me?{query}"), 401, "unauthenticated")


def test_one_text_for_all(listeners: Any, token: str, secrets: Secrets) -> None:
    """ "401 `unauthenticated`, one text for all; `token_expired` only when the secret matched"."""
    texts = {
        refused(listeners, "unauthenticated", headers=headers)["message"]
        for headers in ({}, bearer("x"), {"Cookie": f"{COOKIE}={secrets.cookie}"}, {"Cookie": f"{COOKIE}=x"})
    }
    assert len(texts) == 1
    database.execute_sql("UPDATE tokens SET expires_at = ?", (now(),))
    refused(listeners, "token_expired", headers=bearer(token))


def test_too_many_wrong_tokens(listeners: Any, token: str) -> None:
    """ "PAT failures: 30 per min per ip"; the right one passes all the same."""
    here, there = {"REMOTE_ADDR": "192.0.2.1"}, {"REMOTE_ADDR": "192.0.2.2"}
    for _ in range(TOKEN_FAILURES_MAX):
        refused(listeners, "unauthenticated", headers=bearer("svc_pat_x"), environ=here)
    refused(listeners, "too_many_requests", headers=bearer("svc_pat_x"), environ=here)
    answer = listeners.ask(None, "GET", "/api/users/me", headers=bearer("x"), environ=here)
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert listeners.ask(None, "GET", "/api/users/me", headers=bearer(token), environ=here).status_code == 200
    refused(listeners, "unauthenticated", headers=bearer("svc_pat_x"), environ=there)


def test_the_count_of_wrong_tokens() -> None:
    wrong = credentials._WrongTokens()
    for last in range(TOKEN_FAILURES_MAX):
        assert wrong.refusal(f"2001:db8::{last:x}").code == "unauthenticated"
    assert wrong.refusal("2001:db8::1:2").code == "too_many_requests"  # one /48
    assert wrong.refusal("2001:db8:1::1").code == "unauthenticated"
    began, count = wrong.counts["2001:db8::/48"]
    wrong.counts["2001:db8::/48"] = began - credentials.TOKEN_WINDOW_S, count
    assert wrong.refusal("2001:db8::1").code == "unauthenticated"  # another minute
    for number in range(credentials.ADDRESSES_MAX + 1):
        wrong.refusal(f"10.0.{number >> 8}.{number & 255}")
    assert len(wrong.counts) <= credentials.ADDRESSES_MAX


# --- addresses and what is written of it all --------------------------------------------------


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("192.0.2.7", "192.0.2.7"), ("::ffff:192.0.2.7", "192.0.2.7"), ("2001:db8::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"), ("", ""),
    ],
)  # fmt: skip
def test_addresses(value: str, address: str) -> None:
    assert credentials.address_of({"REMOTE_ADDR": value}) == address


def test_no_header_changes_the_address(listeners: Any, people: Any) -> None:
    """ "`X-Forwarded-Proto/For`, `X-Real-IP`" (row 3): ignored."""
    environ = {
        "REMOTE_ADDR": "192.0.2.1", "HTTP_X_FORWARDED_FOR": "10.0.0.1", "HTTP_X_REAL_IP": "10.0.0.1",
        "HTTP_FORWARDED": "for=10.0.0.1",
    }  # fmt: skip
    assert credentials.address_of(environ) == "192.0.2.1"


def test_secrets_are_in_no_log_and_no_answer(
    listeners: Any, secrets: Secrets, token: str, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.setattr("svc.web.api.users.pwd.getpwnam", lambda name: 1 / 0)  # a bug, with its trace
    answers = [
        listeners.ask(None, "GET", "/api/users/me", session=secrets),
        listeners.ask(None, "GET", "/api/users/me", headers=bearer(token)),
        listeners.ask(None, "GET", "/api/users/me", headers=bearer(token[:-1])),
        listeners.ask(None, "GET", "/api/auth/session", session=secrets),
    ]
    assert [answer.status_code for answer in answers] == [500, 500, 401, 200]
    written = capsys.readouterr().err + json.dumps([[answer.text, str(answer.headers)] for answer in answers])
    for secret in (secrets.cookie, secrets.header, secrets.cookie.partition(".")[0], token, token[8:51]):
        assert secret not in written
