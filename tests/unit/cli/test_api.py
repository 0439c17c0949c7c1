"""`svc api`: one raw request, and where it may not go."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_service import Service, Svc

from svc.limits import EXEC_BODY_MAX


def test_the_answer_is_printed_as_it_came(service: Service, svc: Svc) -> None:
    service.raw("GET /api/usage/me?x=1", b'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"a":\n1 }')
    assert svc("api", "get", "/api/usage/me?x=1") == (0, '{"a":\n1 }', "")
    assert service.last.fields["x-svc-via"] == "api"


def test_json_ends_with_a_newline_and_nothing_else_is_changed(service: Service, svc: Svc) -> None:
    for media_type, body, printed in (
        ("application/json", "{}", "{}\n"), ("application/json; charset=utf-8", "{}\n", "{}\n"),
        ("application/json", "", ""), ("text/plain", "x", "x"), ("application/x-tar", "{}", "{}"),
    ):  # fmt: skip
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {len(body)}\r\n\r\n"
        service.raw("GET /api/x", head.encode() + body.encode())
        assert svc("api", "GET", "/api/x").out == printed
        service.replies.clear()


def test_a_body_goes_as_it_is(service: Service, svc: Svc, tmp_path: Path) -> None:
    service.answer("POST /api/workspaces", {"id": "ws-1"}, status=201)
    (tmp_path / "body").write_bytes(b'{"name":  "demo"}\n')
    assert svc("api", "POST", "/api/workspaces", "--body", f"@{tmp_path}/body").code == 0
    assert service.last.body == b'{"name":  "demo"}\n'
    assert svc("api", "POST", "/api/workspaces", "--body", "{bad").code == 0  # the server's to judge
    assert service.last.body == b"{bad"
    assert svc("api", "POST", "/api/workspaces", "--body", "@-", stdin=b"{}").code == 0
    assert service.last.body == b"{}"


def test_a_deletion_asks_nothing(service: Service, svc: Svc) -> None:
    service.answer("DELETE /api/workspaces/ws-1", None, status=204)
    assert svc("api", "DELETE", "/api/workspaces/ws-1") == (0, "", "")


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [
        (403, "not_allowed_on_socket", 1),
        (400, "streaming_not_supported", 1),
        (403, "account_missing", 3),
        (500, "x", 1),
    ],
)
def test_a_refusal_is_printed_on_both_streams(
    service: Service, svc: Svc, status: int, code: str, exit_code: int
) -> None:
    service.refuse("POST /api/auth/login", status, code, "no way")
    done = svc("api", "POST", "/api/auth/login", "--body", "{}")
    assert done.code == exit_code
    assert f'"code": "{code}"' in done.out
    assert done.err == "svc: no way\n"


@pytest.mark.parametrize(
    "path",
    [
        "http://x/api",
        "https://host:24680/api/version",
        "//host/api/version",
        "../x",
        "/",
        "/api",
        "version",
        "",
        "/api/../x",
        "/api/%2e%2E/x",
        "/api/a/..",
        "/api/x y",
        "/api/x\r\nHost: evil",
        "/api/x\n",
        "/api/x\0",
        "/api/\x1b[2J",
        "/api/ü",
        "/api/x#y",
    ],
)
def test_other_paths_are_wrong_usage(service: Service, svc: Svc, path: str) -> None:
    done = svc("api", "GET", path)
    assert done.code == 2
    assert done.err.startswith("svc: ")
    assert "\x1b" not in done.err
    assert service.sent == []


def test_dots_in_a_query_are_nobody_s_business(service: Service, svc: Svc) -> None:
    service.answer("GET /api/fs/work/list?path=a/..", {})
    assert svc("api", "GET", "/api/fs/work/list?path=a/..").code == 0


@pytest.mark.parametrize(
    "line", ["api", "api GET", "api FETCH /api/x", "api GET /api/x y", "api GET /api/x --url y"]
)
def test_other_lines_are_wrong_usage(svc: Svc, line: str) -> None:
    assert svc(*line.split()).code == 2


def test_a_body_file_that_cannot_be_read(service: Service, svc: Svc, tmp_path: Path) -> None:
    done = svc("api", "POST", "/api/workspaces", "--body", f"@{tmp_path}/none")
    assert done.code == 1
    assert "No such file" in done.err
    (tmp_path / "big").write_bytes(b"x" * (EXEC_BODY_MAX + 1))
    assert svc("api", "POST", "/api/workspaces", "--body", f"@{tmp_path}/big").code == 1
    assert service.sent == []


def test_what_is_no_json_is_printed_too(service: Service, svc: Svc) -> None:
    service.raw("GET /api/x", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n\x1b[2Jx")
    assert svc("api", "GET", "/api/x").out == "\x1b[2Jx"
    assert svc("api", "GET", "/api/x", terminal=True).out == "\\u001b[2Jx\n"
