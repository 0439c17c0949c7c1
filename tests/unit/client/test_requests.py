"""What a command sends and how it shows what comes."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_service import Service

from svc.client import requests
from svc.commandline.arguments import Arguments
from svc.errors import BadAnswer, FileRefused, NotFound


@pytest.fixture
def args() -> Arguments:
    args = Arguments()
    args.json = False
    return args


def test_an_answer_is_given_and_a_refusal_raised(service: Service, args: Arguments) -> None:
    service.answer("POST /api/x", {"a": 1})
    service.refuse("GET /api/x", 404, "not_found", "gone")
    assert requests.ask(args, "POST", "/api/x", {"name": "ü"}).json() == {"a": 1}
    assert service.last.body == b'{"name": "\\u00fc"}'
    with pytest.raises(NotFound, match="gone"):
        requests.ask(args, "GET", "/api/x")


def test_the_items_of_a_page() -> None:
    assert requests.items({"items": [1, 2]}) == [1, 2]
    with pytest.raises(BadAnswer):
        requests.items({"items": {}})


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("demo-1_x.~", "demo-1_x.~"),
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("a/b?c", "a%2Fb%3Fc"),
        ("ü\r\n", "%C3%BC%0D%0A"),
    ],
)
def test_quote(text: str, quoted: str) -> None:
    assert requests.quote(text) == quoted


def test_query() -> None:
    assert requests.query(a=None) == ""
    assert requests.query(limit=5, owner=None, q="a&b") == "?limit=5&q=a%26b"


def test_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\xff")
    assert requests.read_file(f"{tmp_path}/a") == b"\xff"
    for path in (f"{tmp_path}/b", f"{tmp_path}", "a\0b", ""):
        with pytest.raises(FileRefused, match="cannot read"):
            requests.read_file(path)
