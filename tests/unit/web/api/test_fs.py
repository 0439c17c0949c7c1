"""Files over HTTP: how a path is said, what comes back as JSON, and every way to say it wrong."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

import pytest
from unit.configuring import configured
from unit.serving import checked

from svc.db.connect import close_database, database
from svc.domain.audit import audit, budget
from svc.limits import FILE_READ_MAX
from svc.web import outputs
from svc_helper.wire.limits import FILES_LISTED_MAX

ODD = [b"caf\xe9", b"-rf", b"a\nb", b"\x1b[31m", "\u202egpj.exe".encode(), b"<img onerror=x>",
       b"a b+c&d=e%41#?",
       b"\xff\xfe", "ä/ö".encode(), b"a;b", b"%e2%80"]  # fmt: skip
ELSEWHERE = ["../x", "..%2fx", "%2e%2e/x", "%252e%252e", "%252e", "/etc/passwd", "%2Fetc", "a//b", "a/", ".",
             "a/./b", "%5C%5C", "..%5C..", "a%00b", "x" * 256, "%2e%2e%5cx"]  # fmt: skip
ROUTES = [("GET", "list", None), ("GET", "entries", None), ("GET", "read", None),
          ("GET", "download", None), ("GET", "archive", None), ("PUT", "file", b"x"), ("POST", "mkdir", {}),
          ("POST", "move", {"to": "x"}), ("DELETE", "file", None)]  # fmt: skip

VERBS = ["list", "list", "read", "download", "archive", "upload", "mkdir", "move", "remove"]


def ask(
    listeners: Any, method: str, verb: str, query: str = "", body: Any = None, root: str = "work", **more: Any
) -> Any:
    if isinstance(body, bytes):
        more |= {"data": body, "content_type": "application/octet-stream"}
    elif body is not None:
        more["json"] = body
    return listeners.ask("ada", method, f"/api/fs/{root}/{verb}?{query}", **more)


@pytest.mark.parametrize("path", ODD)
def test_a_path_is_its_bytes(listeners: Any, path: bytes) -> None:
    encoded = quote(path, safe="/")
    listeners.far.files.content[path] = b"odd"
    listed = ask(listeners, "GET", "list", f"path={quote(path, safe='')}").get_json()
    assert (listed["path"], listed["entry"]["path"]) == (encoded, encoded)
    assert listeners.far.calls[-1].args["path"] == encoded
    got = ask(listeners, "GET", "read", f"path={encoded}").get_json()
    assert (base64.b64decode(got["content"]), got["size"], got["truncated"]) == (b"odd", 3, False)
    moved = ask(listeners, "POST", "move", f"path={encoded}", {"to": encoded + "2"}).get_json()
    assert moved["path"] == encoded + "2"
    assert ask(listeners, "PUT", "file", f"path={encoded}&force=1", b"new").status_code == 201
    assert listeners.far.files.content[path] == b"new"
    ask(listeners, "DELETE", "file", f"path={encoded}&recursive=true")
    assert listeners.far.calls[-1].args == {"root": "work", "path": encoded, "recursive": True}


def rows() -> list[tuple[str, str, str]]:
    """The audit's (action, target, outcome) but for the beginnings."""
    statement = "SELECT action, target, outcome FROM audit WHERE outcome <> 'begun' ORDER BY id"
    found = [tuple(row) for row in database.execute_sql(statement).fetchall()]
    close_database()
    return found


@pytest.mark.parametrize("path", ELSEWHERE)
def test_a_path_that_leads_elsewhere(listeners: Any, path: str) -> None:
    """ "Every `fs` operation is audited on the server": each of these has its row, with what was sent."""
    for method, verb, body in ROUTES:
        checked(ask(listeners, method, verb, f"path={path}", body), 400, "invalid_request")
    checked(ask(listeners, "POST", "move", "path=a", {"to": path}), 400, "invalid_request")
    assert listeners.far.verbs() == []
    actions = [action for action, _, _ in rows()]
    assert actions == [f"fs.{verb}" for verb in (*VERBS, "move")]
    assert {outcome for _, _, outcome in rows()} == {"invalid_request"}


def test_what_is_refused_before_it_is_looked_at_is_audited(listeners: Any) -> None:
    """Whoever refuses it: the query, the body, the access rule; once each, as tried and failed."""
    ask(listeners, "GET", "list", "path=..%2Fx%FF")
    ask(listeners, "GET", "list", "limit=0", root="a%0Ab")
    ask(listeners, "POST", "mkdir", "path=a", {"parents": 7})
    ask(listeners, "PUT", "file", "path=a", {"no": "bytes"})
    ask(listeners, "GET", "read", "path=a", headers={"X-Svc-Via": "api"})
    ask(listeners, "GET", "download", "path=a", headers={"X-Svc-Via": "api"})
    listeners.ask("ada", "GET", "/api/fs/roots?x=1")
    listeners.ask("root", "GET", "/api/fs/roots")
    assert rows() == [
        ("fs.list", "work/../x\\xff", "invalid_request"),
        ("fs.list", "a\\nb/", "validation_failed"),
        ("fs.mkdir", "work/a", "validation_failed"),
        ("fs.upload", "work/a", "invalid_request"),
        ("fs.read", "work/a", "not_found"),
        ("fs.download", "work/a", "streaming_not_supported"),
        ("fs.roots", "", "validation_failed"),
        ("fs.roots", "", "root_not_allowed"),
    ]


def test_refused_readings_are_counted_beyond_the_budget(
    listeners: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "AUDIT_ROWS", 4)
    for _ in range(9):
        checked(ask(listeners, "GET", "list", "path=.."), 400, "invalid_request")
    assert len(rows()) == 2
    audit.write_counted(everyone=True)
    assert rows()[2][0] == "audit.count"


def test_a_root_is_a_place_and_no_file(listeners: Any) -> None:
    for method, verb, body in ROUTES:
        if verb not in ("list", "entries", "archive"):
            checked(ask(listeners, method, verb, "path=", body), 400, "invalid_request")
            checked(ask(listeners, method, verb, "", body), 422, "validation_failed")
    checked(ask(listeners, "POST", "move", "path=a", {"to": ""}), 400, "invalid_request")
    assert ask(listeners, "GET", "list").get_json()["entry"]["name"] == "work"


def test_a_root_that_is_none(listeners: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for method, verb, body in ROUTES:
        error = checked(ask(listeners, method, verb, "path=a", body, root="other"), 404, "not_found")
        assert error["hint"] == "svc fs roots"
    configured(file_roots={"work": True})
    for method, verb, body in ROUTES[5:]:
        checked(ask(listeners, method, verb, "path=a", body), 403, "read_only")
    assert listeners.far.verbs() == []


@pytest.mark.parametrize(
    ("method", "verb", "query", "body"),
    [
        ("GET", "list", "limit=0", None), ("GET", "list", f"limit={FILES_LISTED_MAX + 1}", None),
        ("GET", "list", "limit=%FF", None), ("GET", "list", "offset=-1", None),
        ("GET", "list", "offset=1&offset=2", None),
        ("GET", "list", "deep=1", None), ("GET", "read", "path=a&path=b", None),
        ("GET", "read", "path=a&offset=-1", None),
        ("GET", "read", f"path=a&length={FILE_READ_MAX + 1}", None),
        ("PUT", "file", "path=a&force=yes", b"x"),
        ("PUT", "file", "path=a&force=True", b"x"), ("DELETE", "file", "path=a&recursive=", None),
        ("POST", "mkdir", "path=a", {"parents": 1}), ("POST", "mkdir", "path=a", {"mode": 7}),
        ("POST", "move", "path=a", {}), ("POST", "move", "path=a", {"to": 7}),
        ("GET", "read", "%FF=1&path=a", None),
    ],
)  # fmt: skip
def test_what_is_said_wrongly(listeners: Any, method: str, verb: str, query: str, body: Any) -> None:
    checked(ask(listeners, method, verb, query, body), 422, "validation_failed")
    assert listeners.far.verbs() == []


def test_roots_and_limits(listeners: Any) -> None:
    found = listeners.ask("ada", "GET", "/api/fs/roots").get_json()
    assert found["items"][0]["mounted_at"] == "/work"
    assert set(found["limits"]) == {
        "upload_max_bytes", "read_max_bytes", "archive_max_members", "archive_max_bytes",
    }  # fmt: skip


def test_what_is_made_and_moved_is_shown(listeners: Any) -> None:
    created = ask(listeners, "POST", "mkdir", "path=new", {"parents": True})
    assert (created.status_code, created.get_json()["type"]) == (201, "directory")
    assert (
        ask(listeners, "POST", "move", "path=a", {"to": "b%20c", "force": True}).get_json()["name"] == "b c"
    )
    assert listeners.far.calls[-1].args == {"root": "work", "path": "a", "to": "b%20c", "replace": True}
    assert ask(listeners, "DELETE", "file", "path=a").get_json() == {"removed": 1}
    error = checked(ask(listeners, "PUT", "file", "path=notes.txt", b"x"), 409, "file_exists")
    assert "--force" in error["hint"]


def test_all_entries_are_lines(listeners: Any) -> None:
    got = ask(listeners, "GET", "entries", "path=deep&offset=1")
    assert (got.status_code, got.content_type, got.data) == (200, "application/jsonl", b'{"name": "b"}\n')
    assert got.headers["X-Svc-Entries-Total"] == "2"
    assert listeners.far.calls[-1].args == {"root": "work", "path": "deep", "offset": 1}
    got.close()
    checked(ask(listeners, "GET", "entries", "offset=-1"), 422, "validation_failed")
    checked(ask(listeners, "GET", "entries", "limit=5"), 422, "validation_failed")


def test_a_part_as_json(listeners: Any) -> None:
    got = ask(listeners, "GET", "read", "path=notes.txt&offset=1&length=2").get_json()
    assert got == {"path": "notes.txt", "size": 5, "offset": 1, "content": "ZWw=", "truncated": True}
    checked(ask(listeners, "GET", "read", "path=notes.txt&offset=6"), 416, "range_unsatisfiable")


def test_svc_api_gets_no_stream_of_bytes(listeners: Any) -> None:
    via = {"headers": {"X-Svc-Via": "api"}}
    for verb in ("download", "entries", "archive"):
        checked(ask(listeners, "GET", verb, "path=notes.txt", **via), 400, "streaming_not_supported")
    assert ask(listeners, "GET", "read", "path=notes.txt", **via).status_code == 200


@pytest.mark.parametrize(
    ("name", "plain", "exact"),
    [
        (b"a b.txt", "a b.txt", "a%20b.txt"), ("ä.txt".encode(), "_.txt", "%C3%A4.txt"),
        (b'x"; filename="evil.exe', "x__ filename=_evil.exe", "x_%3B%20filename%3D_evil.exe"),
        (b"a\r\nSet-Cookie: x", "a__Set-Cookie_ x", "a__Set-Cookie%3A%20x"), (b"a\\b", "a_b", "a_b"),
        ("\u202egpj.exe".encode(), "_gpj.exe", "_gpj.exe"), (b"a\xffb", "a_b", "a%EF%BF%BDb"),
        (b"<img onerror=x>", "_img onerror=x_", "%3Cimg%20onerror%3Dx%3E"), (b"-rf", "-rf", "-rf"),
    ],
)  # fmt: skip
def test_a_hostile_name_is_saved_as_a_harmless_one(name: bytes, plain: str, exact: str) -> None:
    header = outputs.attachment(name)["Content-Disposition"]
    assert header == f"attachment; filename=\"{plain}\"; filename*=UTF-8''{exact}"
    assert header.isascii()
    assert header.isprintable()
