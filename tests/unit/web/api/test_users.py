"""Accounts over HTTP: the caller's own, what may be changed, and the password."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import caller_of, checked

from svc.domain.accounts import logins, users
from svc.domain.principal import Caller
from svc.errors import ValidationFailed
from svc.web.callers.credentials import COOKIE

PASSWORDS = {"current_password": "old and long", "password": "new\tand long"}


@pytest.fixture
def visit(listeners: Any, people: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Ask over TCP as somebody with a credential of this kind, whatever such a credential looks like."""

    def ask(who: str, kind: str, method: str, path: str, **options: Any) -> Any:
        superuser = kind != "pat" and bool(people[who].superuser)
        caller = caller_of(people[who], listeners.far, kind=kind, credential="x", superuser=superuser)
        monkeypatch.setattr("svc.web.callers.caller.CREDENTIALS", (lambda *_: caller,))
        return listeners.ask(None, method, path, **options)

    return ask


@pytest.mark.parametrize(("kind", "via"), [("session", "session"), ("pat", "token")])
@pytest.mark.parametrize(("who", "superuser"), [("ada", False), ("boss", True)])
def test_the_flag_is_the_account_s(visit: Any, kind: str, via: str, who: str, superuser: bool) -> None:
    """A token's owner is told what the account is; what the token may do is another thing."""
    me = visit(who, kind, "GET", "/api/users/me").get_json()
    assert (me["name"], me["superuser"], me["via"]) == (who, superuser, via)


def test_a_linux_account_that_was_just_removed(visit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str) -> None:
        raise KeyError(name)

    monkeypatch.setattr("svc.web.api.users.pwd.getpwnam", gone)
    checked(visit("ada", "pat", "GET", "/api/users/me"), 403, "account_disabled")


def test_one_s_own_display_name(listeners: Any, visit: Any) -> None:
    for ask in (
        listeners.ask,
        lambda who, *arguments, **options: visit(who, "session", *arguments, **options),
    ):
        answer = ask("ada", "PATCH", "/api/users/ada", json={"display_name": "Ada L."})
        assert answer.status_code == 200
        assert answer.get_json()["display_name"] == "Ada L."
        assert "password_hash" not in answer.text
        assert listeners.ask("ada", "GET", "/api/users/me").get_json()["display_name"] == "Ada L."
        users.update(users.get("ada"), display_name="")
    checked(listeners.ask("bob", "PATCH", "/api/users/ada", json={"display_name": "x"}), 404, "not_found")


def test_an_account_of_a_directory_service(listeners: Any, people: Any) -> None:
    """By its own name in a path and in a query, in its own case; digits are a uid."""
    users.create("first.last@example.org", uid=896053708, provisioning=users.READY)
    for name in ("first.last@example.org", "first.last%40example.org"):
        answer = listeners.ask("boss", "PATCH", f"/api/users/{name}", json={"display_name": "F. L."})
        assert (answer.status_code, answer.get_json()["name"]) == (200, "first.last@example.org")
    for owner in ("first.last@example.org", "896053708", "first.last%40example.org"):
        assert listeners.ask("boss", "GET", f"/api/workspaces?owner={owner}").get_json()["total"] == 0, owner
    checked(listeners.ask("boss", "GET", "/api/workspaces?owner=First.Last@example.org"), 404, "not_found")
    for owner in ("a/b", "-x", "..", "a%25b", "%E2%80%AEa", "a%0A"):
        checked(listeners.ask("boss", "GET", f"/api/workspaces?owner={owner}"), 422, "validation_failed")


@pytest.mark.parametrize(
    "body",
    [
        {"name": "eve"}, {"uid": 0}, {"password": "x"}, {"display_name": "a\nb"}, {"display_name": None},
        {"display_name": "x" * 129}, {"superuser": 1}, {"superuser": "true"}, {"disabled": None},
    ],
)  # fmt: skip
def test_what_cannot_be_changed(listeners: Any, body: dict[str, Any]) -> None:
    checked(listeners.ask("boss", "PATCH", "/api/users/ada", json=body), 422, "validation_failed")


def test_the_flags(listeners: Any, visit: Any) -> None:
    checked(listeners.ask("ada", "PATCH", "/api/users/ada", json={"superuser": True}), 403, "admin_only")
    asked = {"superuser": True}
    checked(visit("boss", "session", "PATCH", "/api/users/ada", json=asked), 403, "admin_command_only")
    checked(visit("boss", "pat", "PATCH", "/api/users/ada", json=asked), 403, "pat_not_allowed")
    refused = listeners.ask("boss", "PATCH", "/api/users/ada", json=asked)
    checked(refused, 403, "admin_command_only")
    assert refused.get_json()["error"]["hint"] == "sudo svc admin edit-user ada --superuser"
    assert listeners.far.verbs() == []
    same = listeners.ask("boss", "PATCH", "/api/users/ada", json={"superuser": False, "display_name": "A"})
    assert same.get_json()["display_name"] == "A"
    disabled = visit("boss", "session", "PATCH", "/api/users/ada", json={"disabled": True})
    assert disabled.get_json()["status"] == "DISABLED"
    checked(listeners.ask("ada", "GET", "/api/users/me"), 403, "account_disabled")
    checked(listeners.ask("boss", "PATCH", "/api/users/boss", json={"disabled": True}), 409, "conflict")
    checked(listeners.ask("boss", "PATCH", "/api/users/root", json={"disabled": True}), 409, "conflict")


def test_a_password_change_is_the_domain_s_and_clears_the_cookie(
    visit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[tuple[str, str, str]] = []

    def change(caller: Caller, current: str, new: str) -> None:
        taken.append((caller.name, current, new))

    monkeypatch.setattr(logins, "change_password", change)
    answer = visit("ada", "session", "PUT", "/api/users/ada/password", json=PASSWORDS)
    assert (answer.status_code, answer.data) == (204, b"")
    assert taken == [("ada", "old and long", "new\tand long")]
    cookie = answer.headers["Set-Cookie"]
    assert cookie.startswith(f"{COOKIE}=;")
    for part in ("Max-Age=0", "Path=/", "Secure", "HttpOnly", "SameSite=Strict"):
        assert part in cookie
    checked(visit("boss", "session", "PUT", "/api/users/ada/password", json=PASSWORDS), 404, "not_found")
    assert len(taken) == 1


def test_a_refused_password_is_not_said_back(visit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise ValidationFailed("no", fields=[{"field": "password", "code": "common", "message": "no"}])

    monkeypatch.setattr(logins, "change_password", refuse)
    answer = visit("ada", "session", "PUT", "/api/users/ada/password", json=PASSWORDS)
    checked(answer, 422, "validation_failed")
    assert "Set-Cookie" not in answer.headers
    bodies: list[Any] = [
        {"password": "hunter2hunter2"}, {"current_password": 5, "password": "hunter2hunter2"},
        {"current_password": "a\0b", "password": "hunter2hunter2"},
        {"current_password": "hunter2" * 200, "password": "hunter2hunter2"}, PASSWORDS | {"more": "hunter2"},
    ]  # fmt: skip
    for body in bodies:
        answer = visit("ada", "session", "PUT", "/api/users/ada/password", json=body)
        checked(answer, 422, "validation_failed")
        assert "hunter2" not in answer.text


def test_no_password_change_on_the_socket(listeners: Any, visit: Any) -> None:
    """ "the login endpoint and password changes are rejected on the socket", whoever asks and however."""
    for who in ("ada", "boss", "root", "stranger"):
        for headers in ({}, {"X-Svc-Via": "api"}):
            answer = listeners.ask(who, "PUT", "/api/users/ada/password", json=PASSWORDS, headers=headers)
            checked(answer, 403, "not_allowed_on_socket")
    answer = visit("ada", "pat", "PUT", "/api/users/ada/password", json=PASSWORDS)
    checked(answer, 403, "pat_not_allowed")
