"""Labels and origins of apps: compared whole, parsed from the end, never another one's."""

from __future__ import annotations

import itertools

import pytest

from svc.apps import addresses
from svc.apps.addresses import App, find, origin, parse
from svc.host.ids import ALPHABET, new_id

LAB = App("lab", "ws-f7d3k2qa")


@pytest.mark.parametrize("port", ["lab", "a", "0", "my-app", "web-f7d3k2qa", "a" * addresses.NAME_MAX])
def test_a_label_is_its_apps_alone(port: str) -> None:
    app = App(port, "ws-f7d3k2qa")
    assert app.label == f"{port}-f7d3k2qa"
    assert len(app.label) <= addresses.LABEL_MAX
    assert parse(app.label) == app


def test_every_id_of_a_workspace_is_one() -> None:
    for _ in range(200):
        app = App("lab", new_id("ws"))
        assert parse(app.label) == app
    assert parse(f"lab-{ALPHABET[:8]}") and parse(f"lab-{ALPHABET[-8:]}")


@pytest.mark.parametrize(
    "label",
    [
        "", "lab", "f7d3k2qa", "-f7d3k2qa", "lab-", "lab-f7d3k2q", "lab-f7d3k2qaa", "lab_f7d3k2qa",
        "lab--f7d3k2qa", "-lab-f7d3k2qa", "LAB-f7d3k2qa", "lab-F7D3K2QA", "lab-f7d3k2qi",
        "lab-f7d3k2qo", "lab-f7d3k2qa.x", "lab-f7d3k2qa\n", "läb-f7d3k2qa", f"{'a' * 54}-f7d3k2qa",
    ],
)  # fmt: skip
def test_what_is_no_label(label: str) -> None:
    assert parse(label) is None


def test_a_long_name_has_no_origin() -> None:
    assert App("a" * 54, LAB.workspace).label == ""
    assert origin(App("a" * 54, LAB.workspace), "localhost", "http", 24681) is None


@pytest.mark.parametrize(
    ("parent", "scheme", "port", "expected"),
    [
        ("localhost", "http", 24681, "http://lab-f7d3k2qa.localhost:24681"),
        ("localhost", "http", 80, "http://lab-f7d3k2qa.localhost"),
        ("apps.example.org", "https", 24680, "https://lab-f7d3k2qa.apps.example.org:24680"),
        ("apps.example.org", "https", 443, "https://lab-f7d3k2qa.apps.example.org"),
    ],
)
def test_an_origin_is_found_again(parent: str, scheme: str, port: int, expected: str) -> None:
    assert origin(LAB, parent, scheme, port) == expected
    host = expected.partition("://")[2]
    for spelled in (host, host.upper(), host if ":" in host else f"{host}:{port}"):
        place = find(spelled, parent, scheme)
        assert place is not None
        assert (place.app, place.origin) == (LAB, expected)


@pytest.mark.parametrize(
    "host",
    [
        "", "localhost", "lab-f7d3k2qa", ".localhost", "lab-f7d3k2qa.localhost.",
        "lab-f7d3k2qa.localhost.evil", "evil.lab-f7d3k2qa.localhost", "lab-f7d3k2qa.evil",
        "lab-f7d3k2qa.localhost:", "lab-f7d3k2qa.localhost:0", "lab-f7d3k2qa.localhost:x",
        "lab-f7d3k2qa.localhost:1:2", "x@lab-f7d3k2qa.localhost", "lab-f7d3k2qa.localhost/",
        "lab-f7d3k2qa.localhost, lab-f7d3k2qa.localhost", " lab-f7d3k2qa.localhost",
        "lab-f7d3k2qa.localhost\r\nX: y", "lab-f7d3k2qa%2elocalhost", "lab-f7d3k2qa.local\u212aost",
        "[::1]", "127.0.0.1",
    ],
)  # fmt: skip
def test_no_other_host_is_an_app(host: str) -> None:
    assert find(host, "localhost", "http") is None


def test_no_two_apps_have_one_origin() -> None:
    """Ports with hyphens, and ids that look like parts of names."""
    ports = ["a", "a-a", "a-f7d3k2qa", "f7d3k2qa", "a-b-c"]
    apps = [App(port, f"ws-{number}") for port, number in itertools.product(ports, ["f7d3k2qa", "00000000"])]
    assert len({app.label for app in apps}) == len(apps)
