"""Tokens over HTTP: where they may be made, what is refused, and where the secret is."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import caller_of, checked

from svc.db.connect import database
from svc.domain.accounts import tokens
from svc.domain.principal import Caller
from svc.host.ids import now

KEYS = {
    "id", "name", "prefix", "scopes", "status", "expires_soon", "created_at", "expires_at", "last_used_at",
    "last_used_from",
}  # fmt: skip


@pytest.fixture
def visit(listeners: Any, people: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Ask over TCP as somebody with a credential of this kind, whatever such a credential looks like."""

    def ask(who: str, kind: str, method: str, path: str, **options: Any) -> Any:
        caller = caller_of(people[who], listeners.far, kind=kind, credential="tok-x")
        monkeypatch.setattr("svc.web.callers.caller.CREDENTIALS", (lambda *_: caller,))
        return listeners.ask(None, method, path, **options)

    return ask


def test_made_on_the_host(listeners: Any) -> None:
    answer = listeners.ask("ada", "POST", "/api/tokens", json={"name": "laptop"})
    assert answer.status_code == 201
    token = answer.get_json()
    assert set(token) == KEYS | {"secret"}
    assert answer.headers["Location"] == f"/api/tokens/{token['id']}"
    assert answer.headers["Cache-Control"] == "no-store"
    assert tokens.well_formed(token["secret"])
    listed = listeners.ask("ada", "GET", "/api/tokens")
    assert set(listed.get_json()["items"][0]) == KEYS
    assert token["secret"] not in listed.text
    assert listeners.ask("bob", "GET", "/api/tokens").get_json()["items"] == []


@pytest.mark.parametrize("days", [0, -1, 366, 1.5, 90.0, "90", True, None, [], 10**30])
def test_a_lifetime_is_1_to_365_days(listeners: Any, days: Any) -> None:
    answer = listeners.ask("ada", "POST", "/api/tokens", json={"name": "ci", "expires_days": days})
    [field] = checked(answer, 422, "validation_failed")["fields"]
    assert field["field"] == "expires_days"
    assert listeners.ask("ada", "GET", "/api/tokens").get_json()["total"] == 0


@pytest.mark.parametrize("name", ["", " ", "x" * 65, "a\nb", "a\x7f", 5, None, "svc_pat_" + "x" * 49])
def test_names_that_are_refused(listeners: Any, name: Any) -> None:
    answer = listeners.ask("ada", "POST", "/api/tokens", json={"name": name})
    error = checked(answer, 422, "validation_failed")
    assert [field["field"] for field in error["fields"]] == ["name"]
    assert "x" * 40 not in answer.text  # a secret that was typed for a name is not said back


@pytest.mark.parametrize("body", [{}, {"name": "x", "secret": "y"}, {"name": "x", "user": "bob"}])
def test_other_bodies_are_refused(listeners: Any, body: Any) -> None:
    checked(listeners.ask("ada", "POST", "/api/tokens", json=body), 422, "validation_failed")


def test_a_name_is_taken_once(listeners: Any) -> None:
    assert listeners.ask("ada", "POST", "/api/tokens", json={"name": "ci"}).status_code == 201
    checked(listeners.ask("ada", "POST", "/api/tokens", json={"name": "ci"}), 409, "name_taken")
    assert listeners.ask("boss", "POST", "/api/tokens", json={"name": "ci"}).status_code == 201


@pytest.mark.parametrize("kind", ["session", "pat"])
def test_creation_is_possible_only_through_the_cli(visit: Any, kind: str) -> None:
    """ "Creation is possible only through the CLI"."""
    for who in ("ada", "boss"):
        code = {"session": "socket_only", "pat": "pat_not_allowed"}[kind]
        checked(visit(who, kind, "POST", "/api/tokens", json={"name": "ci"}), 403, code)


def test_svc_api_creates_none(listeners: Any) -> None:
    """ "The raw passthrough cannot create credentials"."""
    headers = {"X-Svc-Via": "api"}
    for who in ("ada", "boss", "root"):
        answer = listeners.ask(who, "POST", "/api/tokens", json={"name": "ci"}, headers=headers)
        error = checked(answer, 403, "not_allowed_on_socket")
        assert error["hint"] == "svc token create --help"
    assert database.execute_sql("SELECT count(*) FROM tokens").fetchone() == (0,)


def test_root_has_none(listeners: Any) -> None:
    checked(listeners.ask("root", "POST", "/api/tokens", json={"name": "ci"}), 403, "root_not_allowed")
    assert listeners.ask("root", "GET", "/api/tokens").get_json()["total"] == 0


def test_a_token_manages_no_tokens(visit: Any, people: Any, listeners: Any) -> None:
    """ "A token cannot create, list or revoke tokens"."""
    tokens.create(caller_of(people["ada"], listeners.far), "ci")
    for method, path in (("GET", "/api/tokens"), ("DELETE", "/api/tokens/ci"), ("POST", "/api/tokens")):
        checked(visit("ada", "pat", method, path, json={"name": "x"}), 403, "pat_not_allowed")


@pytest.mark.parametrize("by", ["id", "name"])
@pytest.mark.parametrize("kind", ["socket", "session"])
def test_revoking(listeners: Any, visit: Any, people: Any, by: str, kind: str) -> None:
    """They "authenticate only as a signed-in browser session or as the host-local socket"."""
    created = tokens.create(caller_of(people["ada"], listeners.far), "my laptop")
    path = f"/api/tokens/{created[by]}"
    for other in ("bob", "boss", "root"):
        checked(listeners.ask(other, "DELETE", path), 404, "not_found")
    ask = (
        listeners.ask
        if kind == "socket"
        else lambda *arguments: visit(arguments[0], "session", *arguments[1:])
    )
    answer = ask("ada", "DELETE", path)
    assert (answer.status_code, answer.data) == (204, b"")
    checked(ask("ada", "DELETE", path), 404, "not_found")


def test_the_list_takes_filters(listeners: Any) -> None:
    for name in ("a", "b"):
        listeners.ask("ada", "POST", "/api/tokens", json={"name": name, "expires_days": 5})
    page = listeners.ask("ada", "GET", "/api/tokens?limit=1&sort=-name&status=active").get_json()
    assert [item["name"] for item in page["items"]] == ["b"]
    assert page["items"][0]["expires_soon"] is True
    assert (page["total"], page["next_offset"]) == (2, 1)
    checked(listeners.ask("ada", "GET", "/api/tokens?status=revoked"), 422, "validation_failed")
    checked(listeners.ask("ada", "GET", "/api/tokens?owner=bob"), 422, "validation_failed")


def test_a_caller_of_a_token_is_never_a_superuser(listeners: Any, people: Any) -> None:
    """Whatever made the caller: the flag alone opens nothing for a token."""
    caller: Caller = caller_of(people["boss"], listeners.far, kind="pat", superuser=True)
    assert not caller.administers


# --- the token at work: what it reaches, until it ends -----------------------------------------


@pytest.fixture
def bearer(listeners: Any) -> Any:
    """Make a token on the host and call with it from elsewhere: ``bearer("ada")("GET", path)``."""

    def of(who: str, **body: Any) -> Any:
        token = listeners.ask(who, "POST", "/api/tokens", json={"name": "ci"} | body).get_json()
        header = {"Authorization": f"Bearer {token['secret']}"}
        return lambda method, path, **options: listeners.ask(None, method, path, headers=header, **options)

    return of


def test_it_has_its_owner_s_things(bearer: Any, listeners: Any, lab: str) -> None:
    """ "A token has the permissions of the user who created it": that user's workspaces and no others."""
    ada, bob = bearer("ada"), bearer("bob")
    assert [item["id"] for item in ada("GET", "/api/workspaces").get_json()["items"]] == [lab]
    assert ada("POST", f"/api/workspaces/{lab}/stop").status_code == 200
    assert ada("GET", "/api/templates/base").status_code == 200
    assert ada("GET", "/api/users/me").get_json()["via"] == "token"
    assert bob("GET", "/api/workspaces").get_json()["items"] == []
    checked(bob("GET", f"/api/workspaces/{lab}"), 404, "not_found")


def test_a_superuser_s_is_an_ordinary_user_s(bearer: Any, lab: str) -> None:
    """ "It never performs administrator operations", whoever owns it."""
    boss = bearer("boss")
    checked(boss("GET", "/api/users"), 403, "pat_not_allowed")
    checked(boss("GET", "/api/workspaces?owner=ada"), 403, "pat_not_allowed")
    checked(boss("POST", f"/api/workspaces/{lab}/stop"), 404, "not_found")
    checked(boss("POST", f"/api/workspaces/{lab}/exec", json={"command": ["id"]}), 404, "not_found")
    checked(boss("PATCH", "/api/users/ada", json={"disabled": True}), 403, "pat_not_allowed")


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (lambda listeners: listeners.ask("ada", "DELETE", "/api/tokens/ci"), "unauthenticated"),
        (lambda _: database.execute_sql("UPDATE tokens SET expires_at = ?", (now(),)), "token_expired"),
        (lambda listeners: listeners.ask("boss", "PATCH", "/api/users/ada", json={"disabled": True}),
         "unauthenticated"),
    ],
    ids=["revoked", "expired", "disabled"],
)  # fmt: skip
def test_it_ends_at_once(bearer: Any, listeners: Any, end: Any, code: str) -> None:
    ada = bearer("ada")
    assert ada("GET", "/api/workspaces").status_code == 200
    end(listeners)
    checked(ada("GET", "/api/workspaces"), 401, code)
    listeners.ask("boss", "PATCH", "/api/users/ada", json={"disabled": False})
    checked(ada("GET", "/api/workspaces"), 401, code)  # enabled again, and still over


def test_its_use_is_shown_to_its_owner(bearer: Any, listeners: Any) -> None:
    bearer("ada")("GET", "/api/version")  # for anybody: not a use
    [token] = listeners.ask("ada", "GET", "/api/tokens").get_json()["items"]
    assert (token["last_used_at"], token["last_used_from"]) == (None, None)
    listeners.ask("ada", "DELETE", "/api/tokens/ci")
    bearer("ada")("GET", "/api/workspaces", environ={"REMOTE_ADDR": "192.0.2.44"})
    [token] = listeners.ask("ada", "GET", "/api/tokens").get_json()["items"]
    assert token["last_used_from"] == "192.0.2.44"
    assert token["last_used_at"]
