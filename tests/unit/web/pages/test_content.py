"""The answer to a page or a file: compressed, kept by clients, and its headers alone."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from unit.web.pages.addresses import static


@pytest.mark.parametrize("accepts", ["", "gzip", "br, gzip;q=0.5", "gzip;q=0"])
@pytest.mark.parametrize("path", ["/workspaces", static("app.js"), static("app.css"), static("icon.svg")])
def test_compressed_where_the_client_takes_it(listeners: Any, path: str, accepts: str) -> None:
    plain = listeners.ask(None, "GET", path).data
    answer = listeners.ask(None, "GET", path, headers={"Accept-Encoding": accepts})
    is_compressed = "gzip" in accepts and "q=0" not in accepts.replace("q=0.5", "")
    assert answer.headers.get("Content-Encoding") == ("gzip" if is_compressed else None)
    assert (gzip.decompress(answer.data) if is_compressed else answer.data) == plain
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert int(answer.headers["Content-Length"]) == len(answer.data)


@pytest.mark.parametrize("accepts", ["", "gzip"])
@pytest.mark.parametrize("path", ["/workspaces", static("app.js")])
def test_what_a_client_has_is_not_sent_again(listeners: Any, path: str, accepts: str) -> None:
    headers = {"Accept-Encoding": accepts}
    first = listeners.ask(None, "GET", path, headers=headers)
    again = listeners.ask(None, "GET", path, headers=headers | {"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    assert again.headers["Cache-Control"] == first.headers["Cache-Control"]
    other = listeners.ask(None, "GET", path, headers=headers | {"If-None-Match": '"another"'})
    assert other.status_code == 200


def test_a_compressed_answer_has_a_tag_of_its_own(listeners: Any) -> None:
    tags = {
        listeners.ask(None, "GET", "/workspaces", headers={"Accept-Encoding": accepts}).headers["ETag"]
        for accepts in ("", "gzip")
    }
    assert len(tags) == 2


@pytest.mark.parametrize("path", ["/", "/workspaces", static("app.js")])
def test_head_has_the_headers_alone(listeners: Any, path: str) -> None:
    get, head = (listeners.ask(None, method, path) for method in ("GET", "HEAD"))
    assert (head.status_code, head.data) == (get.status_code, b"")
    keep = ("Content-Type", "Content-Length", "ETag", "Cache-Control", "Content-Security-Policy", "Location")
    assert {name: head.headers.get(name) for name in keep} == {name: get.headers.get(name) for name in keep}
