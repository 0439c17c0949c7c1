"""Heads as programs and browsers get them: nothing of the service's to one, nothing lasting to the other."""

from __future__ import annotations

import pytest

from svc.apps.heads import Fields, Target, Visitor, to_browser, to_program

ORIGIN = "http://lab-f7d3k2qa.localhost:24681"
LOCAL = Target(ORIGIN, "127.0.0.1:8888", "http", is_public=False)
PUBLIC = LOCAL._replace(is_public=True)
ADA = Visitor("ada", "192.0.2.7")


def request(*fields: tuple[str, str], target: Target = LOCAL, upgrade: bool = False) -> dict[str, list[str]]:
    """What the program gets, by name."""
    return by_name(to_program(_fields(fields), target, ADA, upgrade=upgrade))


def response(*fields: tuple[str, str], target: Target = LOCAL, upgrade: bool = False) -> dict[str, list[str]]:
    """What the browser gets, by name."""
    return by_name(to_browser(_fields(fields), target, upgrade=upgrade))


def _fields(fields: tuple[tuple[str, str], ...]) -> Fields:
    return [(name.lower().encode(), value.encode()) for name, value in fields]


def by_name(fields: Fields) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in fields:
        found.setdefault(name.decode(), []).append(value.decode())
    return found


@pytest.mark.parametrize("target", [LOCAL, PUBLIC], ids=["local", "public"])
@pytest.mark.parametrize(
    "name",
    [
        "X-Svc-Token", "X-Svc-Anything", "X_Svc_Token", "X-Svc_Token", "Svc-User", "SVC-USER",
        "Svc_User", "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host",
        "X-Forwarded-User", "X_Forwarded_For", "X-Forwarded", "X-Real-IP", "X_Real_Ip", "Expect",
        "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "TE", "Trailer",
        "Transfer-Encoding", "Upgrade",
    ],
)  # fmt: skip
def test_a_browser_says_nothing_in_our_name(name: str, target: Target) -> None:
    assert not [
        value
        for values in request((name, "evil"), target=target).values()
        for value in values
        if "evil" in value
    ]


def test_a_program_is_told_who_comes() -> None:
    assert request() == {"host": ["127.0.0.1:8888"], "svc-user": ["ada"], "x-forwarded-for": ["192.0.2.7"]}
    assert request(target=PUBLIC) == {
        "host": ["lab-f7d3k2qa.localhost:24681"],
        "svc-user": ["ada"],
        "x-forwarded-for": ["192.0.2.7"],
        "x-forwarded-host": ["lab-f7d3k2qa.localhost:24681"],
        "x-forwarded-proto": ["http"],
    }


@pytest.mark.parametrize(
    ("value", "passes"),
    [
        ("Bearer svc_pat_abc", False),
        ("bearer svc_pat_abc", False),
        ("BEARER   svc_pat_abc ", False),
        ("Bearer other", True),
        ("Basic c3ZjX3BhdF8=", True),
        ("token 0123", True),
    ],
)
def test_a_token_of_ours_ends_here(value: str, passes: bool) -> None:
    assert ("authorization" in request(("Authorization", value))) is passes


def test_cookies_of_ours_end_here() -> None:
    assert request(("Cookie", "__Host-svc-app=x")).get("cookie") is None
    assert request(("Cookie", "__Host-svc-app=x; a=1"), ("Cookie", "b=2"))["cookie"] == ["a=1", "b=2"]
    assert request(("Cookie", "__HOST-SVC-APP=x; a=1"), upgrade=True)["cookie"] == ["a=1"]


def test_what_a_connection_names_is_its_own_and_nothing_of_ours() -> None:
    got = request(
        ("Connection", "close, X-Mine, host, Svc-User, content-length"),
        ("X-Mine", "1"),
        ("Content-Length", "5"),
    )
    assert got == {
        "host": ["127.0.0.1:8888"],
        "content-length": ["5"],
        "svc-user": ["ada"],
        "x-forwarded-for": ["192.0.2.7"],
    }


@pytest.mark.parametrize(
    ("sent", "got"),
    [
        (ORIGIN, "http://127.0.0.1:8888"),
        (f"{ORIGIN}/lab?x=1#y", "http://127.0.0.1:8888/lab?x=1#y"),
        (ORIGIN.replace("lab-", "LAB-"), "http://127.0.0.1:8888"),
        (f"{ORIGIN}.evil/", f"{ORIGIN}.evil/"),
        (f"{ORIGIN}1/", f"{ORIGIN}1/"),
        ("https://elsewhere.example/", "https://elsewhere.example/"),
        ("null", "null"),
    ],
)
def test_a_local_program_sees_its_own_address(sent: str, got: str) -> None:
    assert request(("Origin", sent))["origin"] == [got]
    assert request(("Referer", sent))["referer"] == [got]
    assert request(("Origin", sent), target=PUBLIC)["origin"] == [sent]


def test_an_upgrade_is_one_to_a_websocket() -> None:
    got = request(
        ("Connection", "keep-alive, Upgrade"),
        ("Upgrade", "h2c, websocket"),
        ("Sec-WebSocket-Key", "k"),
        upgrade=True,
    )
    assert (got["connection"], got["upgrade"], got["sec-websocket-key"]) == (
        ["upgrade"],
        ["websocket"],
        ["k"],
    )
    assert "upgrade" not in request(("Connection", "Upgrade"), ("Upgrade", "h2c"))
    back = response(
        ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Accept", "a"), upgrade=True
    )
    assert (back["connection"], back["upgrade"], back["sec-websocket-accept"]) == (
        ["upgrade"],
        ["websocket"],
        ["a"],
    )
    assert "upgrade" not in response(("Connection", "Upgrade"), ("Upgrade", "h2c"))


@pytest.mark.parametrize(
    "name",
    [
        "Strict-Transport-Security", "Public-Key-Pins", "Public-Key-Pins-Report-Only", "Alt-Svc",
        "Clear-Site-Data", "Service-Worker-Allowed", "NEL", "Report-To", "Connection", "Keep-Alive",
        "Transfer-Encoding", "Trailer", "Proxy-Authenticate", "Svc-User", "X-Svc-Token",
    ],
)  # fmt: skip
def test_a_program_says_nothing_that_lasts(name: str) -> None:
    assert name.lower() not in response((name, "x"))


def test_a_program_is_kept_to_itself_unless_it_says_how() -> None:
    assert response() == {"origin-agent-cluster": ["?1"], "cross-origin-resource-policy": ["same-origin"]}
    assert response(("Cross-Origin-Resource-Policy", "cross-origin"))["cross-origin-resource-policy"] == [
        "cross-origin"
    ]


@pytest.mark.parametrize("name", ["location", "content-location", "access-control-allow-origin"])
@pytest.mark.parametrize(
    ("said", "got"),
    [
        ("http://127.0.0.1:8888/lab", f"{ORIGIN}/lab"),
        ("http://127.0.0.1:8888", ORIGIN),
        ("http://127.0.0.1:88889/", "http://127.0.0.1:88889/"),
        ("https://127.0.0.1:8888/", "https://127.0.0.1:8888/"),
        ("/lab", "/lab"),
        ("*", "*"),
        ("https://elsewhere.example/", "https://elsewhere.example/"),
    ],
)
def test_its_own_address_becomes_the_browsers(name: str, said: str, got: str) -> None:
    assert response((name, said))[name] == [got]
    assert response((name, said), target=PUBLIC)[name] == [said]


def test_its_cookies_stay_at_its_address() -> None:
    got = response(
        ("Set-Cookie", "a=1; Domain=localhost"), ("Set-Cookie", "__Host-svc-app=x"), ("Set-Cookie", "b=2")
    )
    assert got["set-cookie"] == ["a=1; Secure", "b=2; Secure"]
