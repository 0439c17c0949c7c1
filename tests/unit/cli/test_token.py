"""`svc token`."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fake_service import Service, Stream, Svc

from svc.cli import token

SECRET = "svc_pat_" + "a" * 49
RECORD = {
    "id": "tok-4k2m9x7p",
    "name": "laptop",
    "prefix": "svc_pat_aaaa",
    "scopes": [],
    "status": "active",
    "expires_soon": False,
    "created_at": "2025-01-02T03:04:05.000Z",
    "expires_at": "2025-04-02T03:04:05.000Z",
    "last_used_at": None,
    "last_used_from": None,
}
VALUES = (
    "tok-4k2m9x7p", "laptop", "svc_pat_aaaa", "active", "2025-01-02T03:04:05.000Z",
    "2025-04-02T03:04:05.000Z", "", "false", "",
)  # fmt: skip
LINE = "\t".join(VALUES) + "\n"


@pytest.mark.parametrize("terminal", [False, True])
def test_the_secret_stands_alone_on_standard_output(service: Service, svc: Svc, terminal: bool) -> None:
    service.answer("POST /api/tokens", RECORD | {"secret": SECRET}, status=201)
    done = svc("token", "create", "--name", "laptop", terminal=terminal)
    assert (done.code, done.out) == (0, SECRET + "\n")
    assert SECRET not in done.err
    assert all(line.startswith("svc: ") for line in done.err.splitlines())
    for argument in ("printed only once", "2025-04-02", "Authorization: Bearer", "0600", "command line"):
        assert argument in done.err
    assert service.last.json == {"name": "laptop"}  # the default lifetime is the server's to know
    assert "x-svc-via" not in service.last.fields


@pytest.mark.parametrize(("mode", "open_to_others"), [(0o644, True), (0o640, True), (0o600, False)])
def test_a_file_that_others_may_read_is_warned_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: int, open_to_others: bool
) -> None:
    (tmp_path / "secret").touch(mode)
    (tmp_path / "secret").chmod(mode)
    with (tmp_path / "secret").open("w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        assert token.in_open_file() is open_to_others
        monkeypatch.undo()


def test_what_is_no_file_is_no_reason_to_warn(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (Stream(terminal=True), Stream(terminal=False)):
        monkeypatch.setattr(sys, "stdout", stream)
        assert not token.in_open_file()
    with open("/dev/null", "w") as nowhere:
        monkeypatch.setattr(sys, "stdout", nowhere)
        assert not token.in_open_file()
        monkeypatch.undo()


def test_create_with_a_lifetime_and_json(service: Service, svc: Svc) -> None:
    answer = RECORD | {"secret": SECRET}
    service.answer("POST /api/tokens", answer, status=201)
    done = svc("token", "create", "--name", "ci", "--expires", "30", "--json")
    assert done == (0, json.dumps(answer) + "\n", "")
    assert service.last.json == {"name": "ci", "expires_days": 30}


def test_a_token_that_reaches_files(service: Service, svc: Svc) -> None:
    service.answer("POST /api/tokens", RECORD | {"secret": SECRET, "scopes": ["files"]}, status=201)
    assert svc("token", "create", "--name", "ci", "--scope", "files").code == 0
    assert service.last.json == {"name": "ci", "scopes": ["files"]}
    assert svc("token", "create", "--name", "ci", "--scope", "admin").code == 2


def test_an_answer_without_a_secret_is_no_success(service: Service, svc: Svc) -> None:
    service.answer("POST /api/tokens", RECORD, status=201)
    done = svc("token", "create", "--name", "laptop")
    assert (done.code, done.out) == (1, "")


def test_a_hostile_answer_commands_no_terminal(service: Service, svc: Svc) -> None:
    hostile = RECORD | {"secret": "a\x1b[2J\nb", "name": "\x1b[31m", "expires_at": "\x07"}
    service.answer("POST /api/tokens", hostile, status=201)
    done = svc("token", "create", "--name", "laptop", terminal=True)
    assert done.out == "a\\x1b[2J\\nb\n"
    assert "\x1b" not in done.err


@pytest.mark.parametrize(
    "days", ["0", "-1", "366", "1.5", '"90"', "true", str(10**30), "", " 9", "+9", "1_0", "٣"]
)
def test_a_lifetime_is_1_to_365_days(service: Service, svc: Svc, days: str) -> None:
    for line in (["--expires", days], [f"--expires={days}"]):
        done = svc("token", "create", "--name", "ci", *line)
        assert (done.code, done.out) == (2, "")
    assert service.sent == []


@pytest.mark.parametrize("days", ["1", "365"])
def test_the_ends_of_the_range(service: Service, svc: Svc, days: str) -> None:
    service.answer("POST /api/tokens", RECORD | {"secret": SECRET}, status=201)
    assert svc("token", "create", "--name", "ci", "--expires", days).code == 0


def test_the_server_s_refusal(service: Service, svc: Svc) -> None:
    service.refuse(
        "POST /api/tokens", 409, "name_taken", "there is already a token ci", hint="svc token list"
    )
    done = svc("token", "create", "--name", "ci")
    assert done == (1, "", "svc: there is already a token ci\nhint: svc token list\n")


def test_list_in_a_pipe(service: Service, svc: Svc) -> None:
    service.answer("GET /api/tokens?limit=200", {"items": [RECORD], "next_offset": None})
    assert svc("token", "list") == (0, LINE, "")
    assert json.loads(svc("token", "list", "--json").out)["items"] == [RECORD]


def test_list_on_a_terminal(service: Service, svc: Svc) -> None:
    in_six_days = (datetime.now(UTC) + timedelta(days=6, hours=1)).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    records = [
        RECORD | {"expires_soon": True, "expires_at": in_six_days},
        RECORD | {"name": "old", "status": "expired"},
    ]
    service.answer("GET /api/tokens?limit=200", {"items": records, "next_offset": None})
    heading, soon, old = svc("token", "list", terminal=True).out.splitlines()
    assert heading.split() == [
        "ID", "NAME", "PREFIX", "STATUS", "CREATED", "EXPIRES", "LAST", "USED", "NOTE", "SCOPES"
    ]  # fmt: skip
    assert "in 7 d" in soon
    assert soon.rstrip().endswith("expires soon")
    assert "\x1b[32mactive" in soon
    assert "expires soon" not in old
    assert "\x1b[31mexpired" in old
    assert len(heading) <= 100


def test_an_empty_list(service: Service, svc: Svc) -> None:
    service.answer("GET /api/tokens?limit=200", {"items": [], "next_offset": None})
    assert svc("token", "list").out == ""
    assert "svc token create --help" in svc("token", "list", terminal=True).out


def test_revoke_asks_nothing(service: Service, svc: Svc) -> None:
    service.answer("DELETE /api/tokens/my%20laptop", None, status=204)
    assert svc("token", "revoke", "my laptop") == (0, "", "")
    assert svc("token", "revoke", "my laptop", "--json") == (0, '{"revoked":"my laptop"}\n', "")
    assert svc("token", "revoke", "my laptop", terminal=True).out == "my laptop is revoked.\n"


def test_revoke_what_is_not_there(service: Service, svc: Svc) -> None:
    service.refuse("DELETE /api/tokens/x", 404, "not_found", "no such token", hint="svc token list")
    assert svc("token", "revoke", "x") == (1, "", "svc: no such token\nhint: svc token list\n")


def test_a_secret_is_never_sent_as_a_name(service: Service, svc: Svc) -> None:
    """It would stand in the path of the request, and in the log."""
    for text in (SECRET, SECRET[:12]):
        done = svc("token", "revoke", text)
        assert done.code == 2
        assert SECRET not in done.err
        assert "svc token list" in done.err
    assert service.sent == []


@pytest.mark.parametrize(
    "line",
    ["token", "token create", "token create laptop --name other",
     "token revoke", "token revoke a b", "token revoke a/b",
     "token show x", "token list --token x", "token revoke x --yes"],
)  # fmt: skip
def test_wrong_usage(service: Service, svc: Svc, line: str) -> None:
    assert svc(*line.split()).code == 2
    assert service.sent == []
