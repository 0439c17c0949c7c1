"""Rows in a file: nothing goes before it is written, and the chain goes on behind them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from svc.db.connect import database, write
from svc.db.held import numbers
from svc.domain.audit import archive, audit, chain
from svc.domain.audit.chain import Head, Verified
from svc.domain.principal import Caller
from svc.errors import Conflict, DatabaseRefused, FileRefused

UNKNOWN = audit.Actor(None, "(unknown)", "session", "192.0.2.1")


@pytest.fixture(autouse=True)
def opened(db: str) -> None:
    """Every test has a database of its own."""


def append(target: str = "(unknown)", rid: str = "req-1") -> None:
    """A row of nobody's."""
    audit.append(UNKNOWN, "auth.login", target, "unauthenticated", rid, {})


def archived_to(path: Path, until: int | None = None) -> archive.Span:
    with open(path, "wb") as file:
        return archive.write_file(file, until)


def read(path: Path) -> archive.Span:
    with open(path, "rb") as file:
        return archive.read_file(file)


def test_rows_move_to_a_file_and_the_chain_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "STEP", 3)
    for number in range(10):
        append(rid=f"req-{number}", target="ä\x1b" * number)
    until = Head(7, chain.hash_of(7) or "")
    first = archived_to(tmp_path / "1", 7)
    assert first == read(tmp_path / "1") == (7, Head(0, ""), until)
    steps: list[int] = []
    assert archive.remove(until, steps.append) == 7
    assert steps == [3, 6, 7]
    assert database.execute_sql("SELECT min(id), max(id) FROM audit").fetchone() == (8, 10)
    assert chain.archived() == until
    assert chain.verify() == Verified(3, 3, chain.newest(), None)
    append()
    second = archived_to(tmp_path / "2")
    assert (second.rows, second.after, second.until) == (4, until, chain.newest())
    assert read(tmp_path / "2") == second
    row = json.loads((tmp_path / "1").read_text().splitlines()[3])
    assert (row["id"], row["request_id"], row["action"]) == (3, "req-2", "auth.login")


def test_whatever_ends_the_removal_the_chain_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "STEP", 2)
    for _ in range(7):
        append()
    until = Head(6, chain.hash_of(6) or "")

    def end(removed: int) -> None:
        assert chain.verify().broken_at is None
        if removed == 4:
            raise KeyError

    with pytest.raises(KeyError):
        archive.remove(until, end)
    assert (chain.archived().id, chain.verify().rows) == (4, 3)
    assert archive.remove(until) == 2  # the next one goes on


def test_which_rows_may_go(ada: Caller) -> None:
    """The oldest, not one whose action has not ended, and never the newest."""
    assert archive.last_before("9") is None
    append()
    assert archive.last_before("9") is None
    with numbers.holding() as work:
        append()
        audit.begin(ada, "thing.do", "thing-1", work)
        append()
        assert (archive.last_before("9") or Head(0, "")).id == 2
    audit.end_interrupted()
    assert (archive.last_before("9") or Head(0, "")).id == 4
    assert archive.last_before("2020") is None
    for id_, hash_ in ((5, chain.hash_of(5)), (2, "x"), (9, "")):
        with pytest.raises(Conflict):
            archive.remove(Head(id_, hash_ or ""))


def test_only_what_was_archived_can_be_deleted() -> None:
    for _ in range(4):
        append()
    archive.remove(Head(2, chain.hash_of(2) or ""))
    with pytest.raises(Exception, match="only ever added"), write():
        database.execute_sql("DELETE FROM audit WHERE id = 3")
    # and whoever puts a row back behind the archive is found
    database.execute_sql("INSERT INTO audit SELECT 1, at, user_id, user_name, via, address, action, target,"
                         " outcome, request_id, detail_json, hash FROM audit WHERE id = 3")  # fmt: skip
    assert chain.verify().broken_at == 3


def test_a_broken_chain_is_not_archived() -> None:
    for _ in range(4):
        append()
    database.execute_sql("DROP TRIGGER audit_keeps_its_values")
    database.execute_sql("UPDATE audit SET outcome = 'ok' WHERE id = 3")
    with pytest.raises(DatabaseRefused, match="row 3 of the audit"):
        archive.write_file(io.BytesIO())


CHANGED = {
    "a value": (
        lambda lines: [*lines[:2], lines[2].replace("unauthenticated", "ok"), *lines[3:]], "row 2 is not"
    ),
    "a row less": (lambda lines: [*lines[:2], *lines[3:]], "row 2 is not"),
    "the first row less": (lambda lines: [lines[0], *lines[2:]], "row 1 is not"),
    "the last row less": (lambda lines: [*lines[:4], lines[5]], "its end does not"),
    "cut off": (lambda lines: lines[:4], "it ends early"),
    "cut off in a line": (lambda lines: [*lines[:4], lines[4][:20]], "no line of an archive"),
    "something behind": (lambda lines: [*lines, lines[0]], "its end does not"),
    "another beginning": (lambda lines: [lines[0].replace('"id":0', '"id":1'), *lines[1:]], "row 2 is not"),
    "no beginning": (lambda lines: lines[1:], "no archive"),
    "a list": (lambda lines: ["[]", *lines[1:]], "no line of an archive"),
    "nested without end": (lambda lines: [lines[0], "[" * 100000, *lines[1:]], "no line of an archive"),
    "a number for a row": (
        lambda lines: [lines[0].replace('{"id":0,"hash":""}', "0"), *lines[1:]], "names no row"
    ),
}  # fmt: skip


@pytest.mark.parametrize("how", CHANGED)
def test_a_changed_archive_is_refused(how: str, tmp_path: Path) -> None:
    for _ in range(4):
        append()
    archived_to(tmp_path / "1")
    lines = (tmp_path / "1").read_text().splitlines()
    change, why = CHANGED[how]
    text = "\n".join(change(lines)) + ("" if how == "cut off in a line" else "\n")
    (tmp_path / "1").write_text(text)
    with pytest.raises(FileRefused, match=why):
        read(tmp_path / "1")
