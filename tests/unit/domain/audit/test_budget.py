"""Rows of calls that change nothing have a budget; what exceeds it is counted, in one row."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import Any

import pytest
from unit.serving import FarEnd

from svc.db import reserve
from svc.db.connect import database
from svc.domain.accounts import logins
from svc.domain.audit import audit, chain
from svc.domain.audit import budget as audit_budget
from svc.domain.files import fs
from svc.domain.principal import Caller
from svc.errors import NotFound, ReadOnly, StorageFull, TooManyRequests, Unauthenticated


@pytest.fixture(autouse=True)
def opened(db: str) -> None:
    """Every test has a database of its own."""


@pytest.fixture
def budget(monkeypatch: pytest.MonkeyPatch) -> int:
    """Ten rows, or ten refusals, in a minute."""
    monkeypatch.setattr(audit_budget, "AUDIT_ROWS", 10)
    monkeypatch.setattr(audit, "refusals", audit_budget.Recent(10))
    return 10


def rows(action: str = "") -> list[Any]:
    return database.execute_sql(
        "SELECT user_name, action, target, outcome, detail_json FROM audit"
        " WHERE action LIKE ? || '%' ORDER BY id",
        (action,),
    ).fetchall()


def counted() -> list[Any]:
    return [json.loads(row[4]) for row in rows("audit.count")]


def read_missing(caller: Caller, times: int, action: str = "fs.read") -> None:
    for number in range(times):
        with pytest.raises(NotFound), audit.audited(caller, action, f"work/{number}"):
            raise NotFound("there is no such file")


def a_minute_later() -> None:
    """Put all rows, which no statement may change, a minute back."""
    database.execute_sql("DROP TRIGGER audit_keeps_its_values")
    database.execute_sql("UPDATE audit SET at = strftime('%Y-%m-%dT%H:%M:%fZ', julianday(at) - 61.0 / 86400)")


def test_reads_beyond_the_budget_are_one_row(ada: Caller, budget: int) -> None:
    """Each refused read added two rows, 220 KB in a second, until the disk was full."""
    read_missing(ada, 500)
    assert len(rows()) == budget
    audit.write_counted(everyone=True)
    (detail,) = counted()
    assert detail["calls"] == 495
    assert detail["outcomes"] == {"fs.read not_found": 495}
    assert detail["first_targets"][:2] == ["work/5", "work/6"]
    assert len(detail["first_targets"]) == audit_budget.TARGETS_KEPT
    assert detail["since"] <= detail["until"]
    assert chain.verify().broken_at is None


def test_a_count_is_written_before_the_next_row(ada: Caller, budget: int) -> None:
    read_missing(ada, 8)
    a_minute_later()
    read_missing(ada, 1)
    assert [row[1] for row in rows()[budget:]] == ["audit.count", "fs.read", "fs.read"]
    assert [detail["calls"] for detail in counted()] == [3]


def test_a_count_is_written_when_the_minute_ends(
    ada: Caller, budget: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_budget, "PERIOD_S", 0.2)
    read_missing(ada, 5)
    monkeypatch.setattr(audit_budget, "is_spent", lambda _user: True)
    read_missing(ada, 2)
    deadline = time.monotonic() + 5
    while not counted() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert [detail["calls"] for detail in counted()] == [2]


def test_everybody_has_a_budget_of_their_own(ada: Caller, bob: Caller, budget: int) -> None:
    read_missing(ada, 20)
    read_missing(bob, 2)
    assert [row[0] for row in rows()[budget:]] == ["bob"] * 4


def test_a_change_is_never_only_counted(ada: Caller, budget: int) -> None:
    read_missing(ada, 20)
    for _ in range(20):
        with audit.audited(ada, "fs.mkdir", "work/new"):
            pass
        audit.add(ada, "auth.logout", "ada", "ok")
    assert len(rows("fs.mkdir")) == 40
    assert len(rows("auth.logout")) == 20


def test_refused_changes_are_refused_before_they_begin(ada: Caller, bob: Caller, budget: int) -> None:
    """They cannot be counted, for they have begun; so whoever has many refused gets no more of them."""
    for _ in range(budget):
        with pytest.raises(ReadOnly), fs.audited(ada, "mkdir", "work", b"x"):
            raise ReadOnly("no")
    written = len(rows())
    for _ in range(5):
        with pytest.raises(TooManyRequests) as caught, audit.audited(ada, "fs.mkdir", "work/x"):
            pytest.fail("it must not begin")
        assert 1 <= (caught.value.retry_after_s or 0) <= 61
    assert len(rows()) == written
    for action in ("workspace.stop", "workspace.delete", "fs.list"):
        with audit.audited(ada, action, "x"):
            pass
    with audit.audited(bob, "fs.mkdir", "work/x"):
        pass
    audit.write_counted(everyone=True)
    assert {"fs.mkdir too_many_requests": 5}.items() <= counted()[0]["outcomes"].items()


def test_strangers_share_one_budget(far: FarEnd, budget: int) -> None:
    for number in range(13):
        with pytest.raises(Unauthenticated):
            logins.log_in(f"nobody{number}", "wrong", address=f"192.0.2.{number}", helper=far.helper, rid="r")
    assert len(rows("auth.login")) == budget
    audit.write_counted(everyone=True)
    assert counted()[0]["outcomes"] == {"auth.login unauthenticated": 3}
    assert rows("audit.count")[0][0] == logins.UNKNOWN


def test_without_room_the_count_goes_on(
    ada: Caller, budget: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    read_missing(ada, 8)
    with monkeypatch.context() as full:

        def refuse(*_: Any) -> None:
            raise StorageFull("the disk is full")

        full.setattr(audit, "append", refuse)
        audit.write_counted(everyone=True)
    assert "could not be written yet" in capfd.readouterr().err
    read_missing(ada, 2)
    audit.write_counted(everyone=True)
    assert [detail["calls"] for detail in counted()] == [5]


def test_rows_from_the_future_do_not_count(ada: Caller, budget: int) -> None:
    """The clock was set back: what comes now is recorded."""
    read_missing(ada, 5)
    database.execute_sql("DROP TRIGGER audit_keeps_its_values")
    database.execute_sql("UPDATE audit SET at = '2999-01-01T00:00:00.000Z'")
    assert not audit_budget.is_spent(ada.user_id)


@pytest.fixture
def full_disk(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database's disk has no room but its reserve's."""
    reserve.make(db)
    free = {True: 0, False: reserve.SIZE}  # with the reserve there, and given up
    monkeypatch.setattr(reserve, "room", lambda path: free[reserve.is_whole(path)])


def test_what_gives_back_is_recorded_on_a_full_disk(ada: Caller, db: str, full_disk: None) -> None:
    with audit.audited(ada, "workspace.stop", "ws-1"):
        pass
    assert [row[3] for row in rows("workspace.stop")] == ["begun", "ok"]
    assert not reserve.is_whole(db)
    with pytest.raises(StorageFull), audit.audited(ada, "workspace.start", "ws-1"):
        pytest.fail("it must not begin")
    with pytest.raises(NotFound), audit.audited(ada, "fs.read", "work/x"):
        raise NotFound("no such file")
    assert rows("fs.read") == [], "reading goes on, and is counted"
    with audit.audited(ada, "fs.remove", "work/x"):
        pass


def test_nobody_uses_the_reserve_up(ada: Caller, bob: Caller, full_disk: None) -> None:
    for _ in range(100):
        audit.add(ada, "auth.login", "ada", "ok")  # what came before does not count
    for _ in range(audit_budget.CALLS_WHEN_FULL):
        with audit.audited(ada, "workspace.stop", "ws-1"):
            pass
    with pytest.raises(TooManyRequests) as caught, audit.audited(ada, "workspace.stop", "ws-1"):
        pytest.fail("it must not begin")
    assert 55 <= (caught.value.retry_after_s or 0) <= 61
    with audit.audited(bob, "workspace.stop", "ws-2"):
        pass


def test_changes_may_add_so_many_bytes(ada: Caller, bob: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Moves of long names to and fro added 328 KB a second, 1.2 GB in an hour."""
    clock = [5000.0]
    monkeypatch.setattr(audit_budget.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(audit, "changes", audit_budget.Allowance(100_000))
    monkeypatch.setattr(
        audit, "uploads", audit_budget.Allowance(100_000)
    )  # without what others noted by the true clock
    before, moved = size_of_database(), 0
    for _ in range(600):
        clock[0] += 6  # an hour in all
        with suppress(TooManyRequests):
            while moved < 10_000:
                with audit.audited(ada, "fs.move", "work/" + "a" * 200, to="work/" + "b" * 200):
                    moved += 1
    assert moved > 150
    assert size_of_database() - before < 250_000
    with pytest.raises(TooManyRequests) as refused:
        audit.add(ada, "workspace.rename", "ws-1", "ok")
    assert 1 <= refused.value.retry_after_s <= 60
    audit.add(ada, "auth.logout", "ada", "ok")
    with audit.audited(ada, "workspace.stop", "ws-1"), audit.audited(ada, "fs.upload", "work/a"):
        pass
    with audit.audited(bob, "fs.move", "work/a"):
        pass


def size_of_database() -> int:
    database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return os.path.getsize(database.path)


def test_what_changes_nothing_is_counted_beyond_the_budget(ada: Caller, budget: int) -> None:
    for _ in range(50):
        with audit.changing_nothing(ada, "workspace.stop", "ws-1"):
            pass
    assert len(rows("workspace.stop")) == budget
