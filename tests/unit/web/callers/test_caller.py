"""Who is behind a request: the kernel's uid and a matching account, and no header at all."""

from __future__ import annotations

import os
import socket
from typing import Any

import pytest
from unit.serving import Peer, make_user

from svc import clients
from svc.domain.accounts import throttle, users
from svc.errors import Maintenance, StorageFull
from svc.limits import LOGIN_FAILURES_IN_A_ROW
from svc.web.callers import caller as callers


def printed(response: Any) -> str:
    return "ok" if response.status_code < 300 else str(response.get_json()["error"]["code"])


@pytest.mark.parametrize(
    ("who", "status", "code"),
    [
        ("stranger", 403, "account_missing"),
        ("half", 403, "account_incomplete"),
        ("gone", 403, "account_disabled"),
    ],
)
def test_accounts_that_may_not_call(listeners: Any, who: str, status: int, code: str) -> None:
    response = listeners.ask(who, "GET", "/api/users/me")
    assert (response.status_code, response.get_json()["error"]["code"]) == (status, code)
    assert response.get_json()["error"]["hint"].startswith("sudo svc admin") or who == "gone"


def test_an_account_whose_setup_was_interrupted(listeners: Any, linux: dict[int, str]) -> None:
    """It has no uid yet, and is not told that it has no account."""
    users.create("hal")
    linux[2009] = "hal"
    response = listeners.ask("stranger", "GET", "/api/users/me")
    assert printed(response) == "account_incomplete"
    assert response.get_json()["error"]["hint"] == "sudo svc admin create-user hal"


def test_a_uid_that_was_given_to_another_person_is_not_that_account(
    listeners: Any, linux: dict[int, str], lab: str
) -> None:
    linux[2001] = "eve"  # userdel ada; useradd --uid 2001 eve
    assert printed(listeners.ask("ada", "GET", "/api/workspaces")) == "account_missing"
    del linux[2001]
    assert printed(listeners.ask("ada", "GET", "/api/workspaces")) == "account_missing"


@pytest.mark.parametrize("error", [StorageFull("full"), Maintenance("busy")])
def test_wrong_logins_keep_nobody_out_on_the_host(
    listeners: Any, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even when the database takes no word of it: the next call opens the login."""

    def refuse(_name: str) -> None:
        raise error

    users.update(users.get("ada"), failed_logins=LOGIN_FAILURES_IN_A_ROW)
    with monkeypatch.context() as full:
        full.setattr(throttle, "forget_user", refuse)
        assert printed(listeners.ask("ada", "GET", "/api/users/me")) == "ok"
    assert users.get("ada").failed_logins == LOGIN_FAILURES_IN_A_ROW
    assert printed(listeners.ask("ada", "GET", "/api/users/me")) == "ok"
    assert users.get("ada").failed_logins == 0


def test_the_overflow_uid_is_nobody(listeners: Any, linux: dict[int, str], people: Any) -> None:
    linux[65534] = "nobody"
    make_user("nobody", 65534)
    peer = Peer(65534)
    response = listeners.ask("ada", "GET", "/api/users/me", environ={"gunicorn.socket": peer})
    peer.close()
    assert printed(response) == "account_missing"


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Svc-Uid": "2001"},
        {"Remote-User": "ada", "X-Remote-User": "ada"},
        {"X-Forwarded-For": "127.0.0.1", "X-Real-Ip": "127.0.0.1", "X-Forwarded-Proto": "https"},
        {"Authorization": "Bearer svc_pat_x"},
        {"Authorization": "Basic YWRhOmFkYQ=="},
        {"Cookie": "__Host-svc=x"},
    ],
    ids=lambda headers: next(iter(headers)),
)
def test_no_header_says_who_somebody_is(listeners: Any, lab: str, headers: dict[str, str]) -> None:
    assert printed(listeners.ask(None, "GET", "/api/workspaces", headers=headers)) == "unauthenticated"
    if not {"Authorization", "Cookie"} & set(headers):
        response = listeners.ask("bob", "GET", "/api/users/me", headers=headers)
        assert response.get_json()["name"] == "bob"


@pytest.mark.parametrize("header", ["Authorization", "Cookie", "Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode"])
@pytest.mark.parametrize("path", ["/api/users/me", "/api/health", "/api/nothing"])
def test_the_socket_refuses_what_browsers_and_token_clients_send(
    listeners: Any, header: str, path: str
) -> None:
    """ "No password, login step, session file or token is used": nor taken when it is sent."""
    assert printed(listeners.ask("ada", "GET", path, headers={header: "x"})) == "invalid_request"


def test_a_tcp_socket_has_no_peer() -> None:
    """The kernel would answer for it too, with uid 4294967295."""
    with socket.socket() as sock, pytest.raises(ValueError, match="not a Unix socket"):
        clients.peer_uid(sock)


def test_the_kernels_word_on_a_real_socket() -> None:
    """The server "reads the caller's Linux UID from the kernel and maps it to a service account"."""
    left, right = socket.socketpair()
    with left, right:
        assert clients.peer_uid(left) == os.getuid()
        assert callers.listener({"gunicorn.socket": left}) == "unix"
    with socket.socket() as sock:
        assert callers.listener({"gunicorn.socket": sock}) == "tls"
