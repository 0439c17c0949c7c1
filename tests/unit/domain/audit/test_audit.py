"""A row before, a row after, nothing lost in between; one chain, and no secret in it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from unit.serving import FarEnd, caller_of, make_user

from svc.db.connect import database, write
from svc.db.held import numbers
from svc.domain.audit import audit, chain
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.errors import EngineTimeout, StorageFull, ValidationFailed

TOKEN = "svc_pat_" + "Ab1" * 14 + "Z" + "000000"


@pytest.fixture(autouse=True)
def opened(db: str) -> None:
    """Every test has a database of its own."""


def rows() -> list[Any]:
    return database.execute_sql(
        "SELECT user_name, via, action, target, outcome, request_id, detail_json FROM audit ORDER BY id"
    ).fetchall()


def append(**values: Any) -> None:
    """A row of nobody's; only what matters is said."""
    row = {
        "user_id": None, "user_name": "(unknown)", "via": "session", "address": "192.0.2.1",
        "action": "auth.login", "target": "(unknown)", "outcome": "unauthenticated", "rid": "req-1",
        "detail": {},
    } | values  # fmt: skip
    actor = audit.Actor(*(row.pop(key) for key in ("user_id", "user_name", "via", "address")))
    audit.append(actor, **row)


def detail_of(**detail: Any) -> Any:
    """What is kept of this detail."""
    append(detail=detail)
    return json.loads(rows()[-1][6])


# --- rows -----------------------------------------------------------------------------------


def test_before_and_after(ada: Caller) -> None:
    with audit.audited(ada, "thing.do", "thing-1", how="well") as more:
        assert rows() == [("ada", "socket", "thing.do", "thing-1", "begun", "req-test", '{"how":"well"}')]
        more["count"] = 3
    assert rows()[1][4:] == ("ok", "req-test", '{"count":3}')


def test_outcomes_are_codes(ada: Caller) -> None:
    for raised, outcome in ((EngineTimeout("late"), "engine_timeout"), (KeyError("x"), "internal_error")):
        with pytest.raises(type(raised)), audit.audited(ada, "thing.do", "thing-1"):
            raise raised
        assert rows()[-1][4] == outcome


def test_an_action_that_nobody_carries_out_any_more_was_interrupted(ada: Caller) -> None:
    """Its outcome is a row of its own, with the request id of its begin; the chain goes on."""
    with numbers.holding() as work:
        audit.begin(ada, "thing.do", "thing-1", work, how="well")
        assert audit.end_interrupted() == 0
    assert audit.end_interrupted() == 1
    assert audit.end_interrupted() == 0
    assert [row[:6] for row in rows()] == [
        ("ada", "socket", "thing.do", "thing-1", "begun", "req-test"),
        ("ada", "socket", "thing.do", "thing-1", "interrupted", "req-test"),
    ]
    assert chain.verify().broken_at is None


def test_an_action_with_its_outcome_was_not_interrupted(ada: Caller) -> None:
    with audit.audited(ada, "thing.do", "thing-1"):
        assert audit.end_interrupted() == 0
    with pytest.raises(EngineTimeout), audit.audited(ada, "thing.do", "thing-2"):
        raise EngineTimeout("too slow")
    assert audit.end_interrupted() == 0
    assert [row[4] for row in rows()] == ["begun", "ok", "begun", "engine_timeout"]
    assert database.execute_sql("SELECT count(*) FROM audit_open").fetchone() == (0,)


def test_an_outcome_that_finds_no_room_is_in_the_log(
    ada: Caller, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise StorageFull("the disk is full")

    with pytest.raises(StorageFull), audit.audited(ada, "thing.do", "thing-1"):
        monkeypatch.setattr(audit, "append", full)
    assert [row[4] for row in rows()] == ["begun"]
    said = json.loads(capfd.readouterr().err)
    assert (said["action"], said["target"], said["outcome"], said["rid"]) == (
        "thing.do", "thing-1", "ok", "req-test",
    )  # fmt: skip


def test_a_row_goes_with_its_transaction(ada: Caller) -> None:
    with pytest.raises(KeyError), write():
        audit.add(ada, "thing.do", "thing-1", "ok")
        raise KeyError
    assert rows() == []


def test_whoever_came_with_a_credential_leaves_its_id(far: FarEnd) -> None:
    user = make_user("ada", 2001)
    for kind, credential in (
        ("pat", "tok-4k2m9x0c"),
        ("session", "ses-4k2m9x0c"),
        ("peer", ""),
        ("worker", ""),
    ):
        audit.add(caller_of(user, far, kind=kind, credential=credential), "thing.do", "x", "ok", count=1)
    assert [(row[1], json.loads(row[6])) for row in rows()] == [
        ("token", {"token": "tok-4k2m9x0c", "count": 1}),
        ("session", {"session": "ses-4k2m9x0c", "count": 1}),
        ("socket", {"count": 1}),
        ("worker", {"count": 1}),
    ]


def test_rows_are_never_changed_and_never_taken_away() -> None:
    append()
    for statement in ("UPDATE audit SET outcome = 'ok'", "DELETE FROM audit"):
        with pytest.raises(Exception, match="only ever added"), write():
            database.execute_sql(statement)
    assert rows()[0][4] == "unauthenticated"


# --- what is kept of what is handed in --------------------------------------------------------


@pytest.mark.parametrize(
    "key", ["password", "current_password", "passphrase", "secret", "session_secret", "Token", "cookie",
            "Set-Cookie", "Authorization", "credentials", "session"],
)  # fmt: skip
def test_what_is_called_a_secret_is_not_kept(key: str) -> None:
    assert detail_of(inner=[[[[{key: "hunter2"}]]]]) == {"inner": [[["(list)"]]]}
    for value in ("hunter2", ["hunter2"], {"is": "hunter2"}, b"hunter2", 1.5):
        assert detail_of(**{key: value}) == {key: "[redacted]"}
        assert detail_of(inner=[{key: value}]) == {"inner": [{key: "[redacted]"}]}


def test_what_only_sounds_like_a_secret_is_kept() -> None:
    kept = {
        "token": "tok-4k2m9x0c",
        "session": "ses-4k2m9x0c",
        "tokens": 3,
        "password_closed": True,
        "secret": None,
    }
    assert detail_of(**kept) == kept
    assert detail_of(password="tok-4k2m9x0c") == {"password": "[redacted]"}
    assert detail_of(token="ses-4k2m9x0c") == {"token": "[redacted]"}


def test_a_tokens_secret_is_kept_nowhere() -> None:
    texts = ("user_name", "via", "address", "action", "target", "outcome", "rid")
    append(**dict.fromkeys(texts, f"a {TOKEN} b"), detail={TOKEN: [TOKEN, {"name": f"x={TOKEN.upper()}"}]})
    kept = str(database.execute_sql("SELECT * FROM audit").fetchall())
    assert TOKEN[12:24] not in kept
    assert TOKEN[12:24].upper() not in kept
    assert "a svc_pat_Ab1A[redacted] b" in kept  # what tells one's tokens apart is no secret


def test_a_row_is_bounded() -> None:
    deep: Any = "x"
    for _ in range(50):
        deep = [deep]
    append(target="t" * 10**6, detail={"deep": deep, "long": "l" * 10**6, "wide": list(range(10**4))})
    row = rows()[0]
    assert (len(row[3]), row[3][-4:]) == (256, "t...")
    kept = json.loads(row[6])
    assert kept["deep"] == [[["(list)"]]]
    assert (len(kept["long"]), len(kept["wide"]), kept["wide"][-1]) == (256, 65, "...")
    append(detail={f"key{number}": ["x" * 256] * 64 for number in range(10**3)})
    kept = rows()[1][6]
    assert len(kept) < audit.DETAIL_MAX
    assert json.loads(kept)["too_long"][:2] == ["key0", "key1"]


def test_one_line_of_text_whatever_it_was() -> None:
    append(target="a\nb\x1b\u2028\ud800c", detail={"name": "a\nb\x1b", "half": "\ud800", "far": float("inf")})
    row = rows()[0]
    assert row[3] == "a\\nb\\x1b\\u2028\\ud800c"
    assert json.loads(row[6]) == {"name": "a\\nb\\x1b", "half": "\\ud800", "far": "inf"}
    assert chain.verify().broken_at is None


# --- reading ----------------------------------------------------------------------------------


@pytest.fixture
def history(ada: Caller, bob: Caller) -> None:
    """Six rows: what ada and bob did, a wrong login of ada's, and one of `svc admin`."""
    with audit.audited(ada, "workspace.start", "ws-1"):
        pass
    audit.add(bob, "workspace.start", "ws-2", "image_missing", kind="first")
    append(user_id=ada.user_id, user_name="ada", target="ada", rid="req-x")
    append(
        user_name="root", via="admin", action="admin.set_password", target="ada", outcome="ok", rid="admin-1"
    )
    audit.add(bob, "workspace.starting", "ws-2", "ok")


def found(**filters: Any) -> list[int]:
    page = filters.pop("page", Page())
    return [record["id"] for record in audit.page_of(page, **filters)["items"]]


def test_newest_first_with_hashes_for_those_who_see_all(history: None) -> None:
    page = audit.page_of(Page())
    assert [record["id"] for record in page["items"]] == [6, 5, 4, 3, 2, 1]
    assert set(page["items"][0]) == {
        "id", "at", "user", "via", "address", "action", "target", "target_name", "target_owner", "outcome",
        "request_id", "detail", "hash",
    }  # fmt: skip
    assert page["items"][0]["hash"] == chain.hash_of(6)
    third = page["items"][3]
    assert (third["user"], third["outcome"], third["detail"]) == ("bob", "image_missing", {"kind": "first"})


def test_owners_see_their_own(history: None, ada: Caller, bob: Caller) -> None:
    assert found(owner_id=ada.user_id) == [5, 4, 2, 1]
    assert found(owner_id=bob.user_id) == [6, 3]
    assert found(owner_id=ada.user_id, user="bob") == []
    assert found(owner_id=ada.user_id, user="root") == [5]
    assert "hash" not in audit.page_of(Page(), owner_id=ada.user_id)["items"][0]


def test_filters(history: None) -> None:
    assert found(user="root") == [5]
    assert found(action="workspace.start") == [3, 2, 1]
    assert found(action="workspace") == [6, 3, 2, 1]
    assert found(action="work") == found(action="%") == []
    assert found(outcome="begun") == [1]
    assert found(request_id="req-x") == [4]
    assert found(page=Page(q="ws-2")) == [6, 3]
    assert found(page=Page(q="_")) == [5]  # what LIKE would take for anything
    assert found(user="ada", action="auth", outcome="unauthenticated") == [4]


def test_a_span_of_time(history: None) -> None:
    at = database.execute_sql("SELECT at FROM audit WHERE id = 3").fetchone()[0]
    assert set(found(since=at)) >= {3, 4, 5, 6}
    assert not set(found(until=at)) & {3, 4, 5, 6}
    assert found(since="9999", until="9999") == []


def test_pages(history: None) -> None:
    page = audit.page_of(Page(limit=2, offset=2))
    assert ([record["id"] for record in page["items"]], page["total"], page["next_offset"]) == ([4, 3], 6, 4)
    assert found(page=Page(sort="at")) == [1, 2, 3, 4, 5, 6]
    with pytest.raises(ValidationFailed):
        found(page=Page(sort="hash"))


def test_a_detail_that_was_tampered_with_is_shown() -> None:
    append()
    database.execute_sql("DROP TRIGGER audit_keeps_its_values")
    database.execute_sql("UPDATE audit SET detail_json = '{'")
    assert audit.page_of(Page())["items"][0]["detail"] == {"unreadable": "{"}
