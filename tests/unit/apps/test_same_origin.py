"""Whose requests an app's cookie opens: what browsers send for each way that a page has."""

from __future__ import annotations

import pytest

from svc.apps.same_origin import Fields, is_own

OWN = "http://lab-f7d3k2qa.localhost:24681"
NEIGHBOUR = "http://evil-aaaaaaaa.localhost:24681"


def fields(**values: str) -> Fields:
    """Fields by their names with low lines, as a browser sends them."""
    return [(name.replace("_", "-").encode(), value.encode()) for name, value in values.items()]


def fetch(site: str, mode: str = "cors", dest: str = "empty", **more: str) -> Fields:
    """What every newer browser says of a request."""
    return fields(sec_fetch_site=site, sec_fetch_mode=mode, sec_fetch_dest=dest, **more)


@pytest.mark.parametrize(
    ("method", "sent"),
    [
        ("GET", fetch("none", "navigate", "document")),  # typed, or a bookmark
        ("GET", fetch("same-origin", "navigate", "document")),
        ("GET", fetch("same-origin", "navigate", "iframe")),
        ("GET", fetch("same-origin", "no-cors", "image")),
        ("POST", fetch("same-origin", origin=OWN)),
        ("POST", fetch("same-origin", "navigate", "document", origin="null")),  # its own Referrer-Policy
        ("DELETE", fetch("same-origin", origin=OWN)),
        ("GET", fetch("same-site", "navigate", "document")),  # a link of the service's own page
        ("GET", fetch("cross-site", "navigate", "document")),  # a link in a mail
        ("HEAD", fetch("cross-site", "navigate", "document")),
        ("GET", fields()),  # a program that keeps cookies
        ("POST", fields(origin=OWN)),  # an older browser
    ],
)
def test_what_is_the_apps_own(method: str, sent: Fields) -> None:
    assert is_own(method, sent, OWN, upgrade=False)


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
@pytest.mark.parametrize(
    ("method", "mode", "dest"),
    [
        ("GET", "cors", "empty"),
        ("GET", "no-cors", "image"),
        ("GET", "no-cors", "script"),
        ("GET", "navigate", "iframe"),
        ("GET", "navigate", "embed"),
        ("GET", "navigate", "empty"),
        ("POST", "navigate", "document"),  # a form
        ("POST", "cors", "empty"),
        ("PUT", "navigate", "document"),
        ("OPTIONS", "cors", "empty"),
    ],
)
def test_what_a_neighbours_page_asks_for_is_not(site: str, method: str, mode: str, dest: str) -> None:
    for more in ({}, {"origin": NEIGHBOUR}, {"origin": "null"}, {"origin": OWN}):
        assert not is_own(method, fetch(site, mode, dest, **more), OWN, upgrade=False)


@pytest.mark.parametrize("origin", [NEIGHBOUR, "null", OWN + ".evil", OWN + "/", OWN.upper(), ""])
def test_an_older_browser_says_whose_page_it_is(origin: str) -> None:
    assert not is_own("POST", fields(origin=origin), OWN, upgrade=False)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (fetch("same-origin", "websocket", origin=OWN), True),
        (fields(origin=OWN), True),
        (fetch("same-site", "websocket", origin=NEIGHBOUR), False),
        (fetch("same-origin", "websocket", origin=NEIGHBOUR), False),
        (fetch("none", "navigate", "document"), False),
        (fields(), False),
        ([*fields(origin=OWN), *fields(origin=OWN)], False),
        ([*fields(origin=NEIGHBOUR), *fields(origin=OWN)], False),
    ],
)
def test_a_websocket_names_its_origin(sent: Fields, expected: bool) -> None:
    assert is_own("GET", sent, OWN, upgrade=True) is expected


@pytest.mark.parametrize(
    "sites",
    [
        ("same-origin", "same-origin"),
        ("same-origin", "cross-site"),
        ("same-origin,none",),
        ("",),
        ("Same-Origin",),
    ],
)
def test_a_site_that_is_said_otherwise_is_none(sites: tuple[str, ...]) -> None:
    sent = [field for site in sites for field in fields(sec_fetch_site=site)]
    assert not is_own("POST", sent, OWN, upgrade=False)
