"""Who gets the pages, under which policy, and what no name leads to."""

from __future__ import annotations

from typing import Any

import pytest
from unit.web.pages.addresses import PATHS, static

from svc.web.pages import policy


@pytest.mark.parametrize("path", PATHS)
def test_a_page_needs_no_credential_and_has_the_policy(listeners: Any, path: str) -> None:
    answer = listeners.ask(None, "GET", path)
    assert (answer.status_code, answer.mimetype) == (200, "text/html")
    for name, value in policy.PAGE.items():
        assert answer.headers[name] == value
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert "Set-Cookie" not in answer.headers


def test_the_policy_allows_this_service_alone() -> None:
    directives = dict(part.split(" ", 1) for part in policy.PAGE["Content-Security-Policy"].split("; "))
    assert directives["default-src"] == "'none'"
    assert directives["trusted-types"] == "'none'"
    assert directives["require-trusted-types-for"] == "'script'"
    assert directives["frame-ancestors"] == directives["base-uri"] == "'none'"
    assert set(directives.values()) <= {"'none'", "'self'", "'script'"}


@pytest.mark.parametrize("path", ["/", *PATHS[:3], "/static/x/app.js"])
def test_the_hosts_socket_has_no_pages(listeners: Any, path: str) -> None:
    """`svc` is the interface there; what is asked for is not found, for root too."""
    for who in ("ada", "root"):
        answer = listeners.ask(who, "GET", path)
        assert (answer.status_code, answer.get_json()["error"]["code"]) == (404, "not_found")


def test_the_first_page_is_the_list_of_workspaces(listeners: Any) -> None:
    answer = listeners.ask(None, "GET", "/")
    assert (answer.status_code, answer.headers["Location"], answer.data) == (302, "/workspaces", b"")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_a_page_is_only_read(listeners: Any, method: str) -> None:
    answer = listeners.ask(None, method, "/workspaces", headers={"Sec-Fetch-Site": "same-origin"})
    assert answer.status_code == 405


def test_a_file_of_another_release_is_not_found(listeners: Any) -> None:
    answer = listeners.ask(None, "GET", "/static/0123456789abcdef/app.js")
    assert (answer.status_code, answer.headers["Cache-Control"]) == (404, "no-store")


@pytest.mark.parametrize(
    "name",
    [
        *("", "..", "../app.js", "..%2fassets.py", "%2e%2e/assets.py", "....//assets.py", "/etc/passwd"),
        *(
            "%2fetc%2fpasswd",
            "app.js%00",
            "app.js/",
            "app.js/..",
            "..%5cassets.py",
            "__init__.py",
            "icons.js",
            "frame/icons.js",
        ),
        *("shells/workspaces.html", "APP.JS"),
    ],
)
def test_no_name_leaves_the_static_files(listeners: Any, name: str) -> None:
    """Names are looked up in a table: what is not in it is not found, whatever it spells."""
    answer = listeners.ask(None, "GET", f"{static('')}{name}")
    if name == "app.js/":  # one path, as everywhere: without its last slash
        assert answer.status_code == 200
    else:
        assert (answer.status_code, answer.mimetype) == (404, "application/json")


def test_data_and_errors_are_no_pages(listeners: Any) -> None:
    """They may load nothing, be framed by nobody, and be embedded by no page of another port."""
    for path in ("/api/version", "/api/health", "/api/workspaces", "/nowhere"):
        headers = listeners.ask(None, "GET", path).headers
        for name, value in policy.OTHERS.items():
            assert headers[name] == value
    refused = listeners.ask(None, "GET", "/workspaces", headers={"Host": "evil.example"})
    assert refused.status_code == 421 or refused.get_json()["error"]["code"] == "unknown_host"
    assert refused.headers["Content-Security-Policy"] == policy.OTHERS["Content-Security-Policy"]


BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"}


@pytest.mark.parametrize(
    "path", ["/nowhere", "/workspaces/lab/nowhere", "/settings/x", "/apis", "/index.php"]
)
def test_a_browser_gets_a_page_for_a_path_that_nothing_has(listeners: Any, path: str) -> None:
    answer = listeners.ask(None, "GET", path, headers=BROWSER)
    assert (answer.status_code, answer.mimetype) == (404, "text/html")
    assert "There is nothing here" in answer.get_data(as_text=True)
    assert answer.headers["Content-Security-Policy"] == policy.PAGE["Content-Security-Policy"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert "ETag" not in answer.headers
    assert path not in answer.get_data(as_text=True)
    head = listeners.ask(None, "HEAD", path, headers=BROWSER)
    assert (head.status_code, head.data, head.mimetype) == (404, b"", "text/html")


@pytest.mark.parametrize("accepts", ["", "*/*", "application/json", "text/html;q=0.5, application/json"])
def test_other_clients_get_the_error(listeners: Any, accepts: str) -> None:
    answer = listeners.ask(None, "GET", "/nowhere", headers={"Accept": accepts})
    assert (answer.status_code, answer.get_json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize("path", ["/api", "/api/", "/api/nowhere", "/API/nowhere", "/static", "/static/x/y"])
def test_below_the_api_there_are_no_pages(listeners: Any, path: str) -> None:
    answer = listeners.ask(None, "GET", path, headers=BROWSER)
    is_page = path == "/API/nowhere"  # a path like any other
    assert (answer.status_code, answer.mimetype) == (404, "text/html" if is_page else "application/json")
    assert listeners.ask(None, "POST", "/nowhere", headers=BROWSER).mimetype == "application/json"


def test_the_hosts_socket_has_no_page_for_nothing(listeners: Any) -> None:
    assert listeners.ask("ada", "GET", "/nowhere", headers=BROWSER).mimetype == "application/json"


def test_the_description_of_the_api_has_no_pages(listeners: Any) -> None:
    """Both listeners describe the same."""
    paths = listeners.ask("ada", "GET", "/api/openapi.json").get_json()["paths"]
    assert all(path.startswith("/api/") for path in paths)
