"""`svc admin disk`: the figures in a pipe and on a terminal, and what it leaves out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from svc.admin.people import disk
from svc.db.connect import close_database, open_database
from svc.domain.accounts import disk_usage, users
from svc.domain.accounts.disk_usage import AMOUNTS

FIGURES: dict[str, Any] = dict.fromkeys(AMOUNTS, 1 << 20) | {"files": 3, "complete": True}


@pytest.fixture
def two(database: str) -> str:
    """Users with figures, of whom one has more than that; and one without."""
    open_database(database)
    for number, name in enumerate(("ada", "ben", "cleo")):
        users.create(name, uid=40000 + number, provisioning=users.READY)
    disk_usage.request_all(["ada", "ben"])
    for row, change in zip(
        disk_usage.waiting(), ({}, {"images_bytes": 5 << 30, "complete": False}), strict=True
    ):
        disk_usage.keep(row.user_id, FIGURES | change)
    close_database()
    return database


def test_in_a_pipe(svc: Any, two: str) -> None:
    code, out, err = svc("disk")
    rows = [line.split("\t") for line in out.splitlines()]
    assert code == 0
    assert [row[0] for row in rows] == ["ben", "ada", "cleo"]
    assert rows[1][1:9] == [str(6 << 20), *[str(1 << 20)] * 6, ""]
    assert rows[2][1:] == [""] * 9
    assert "svc: ben has more than that" in err
    assert "ada" not in err


def test_on_a_terminal_with_the_sums(svc: Any, two: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc.commandline.output.on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    out = svc("disk")[1]
    assert "5.0 GiB" in out.splitlines()[1]
    assert out.splitlines()[-1].startswith("(all)")
    assert "(all)" not in svc("disk", "ada")[1]


def test_json_and_names(svc: Any, two: str) -> None:
    found = json.loads(svc("disk", "cleo", "--json")[1])
    assert [item["name"] for item in found["items"]] == ["cleo"]
    assert (found["total"], found["waiting"], found["sums"]["files_bytes"]) == (1, 0, 0)
    assert found["oldest_measured_at"] is None
    some = json.loads(svc("disk", "ada", "cleo", "--json")[1])
    assert some["sums"] == {**dict.fromkeys(AMOUNTS, 1 << 20), "total_bytes": len(AMOUNTS) << 20}
    assert some["oldest_measured_at"]
    assert json.loads(svc("disk", "--json")[1])["sums"]["files_bytes"] == 2 << 20


def test_a_name_that_nobody_has(svc: Any, two: str) -> None:
    code, out, err = svc("disk", "ada", "typo")
    assert (code, out) == (1, "")
    assert "there is no user typo" in err


def test_the_service_measures(svc: Any, two: str, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, err = svc("disk", "--measure")
    assert code == 1
    assert "the service measures, and it is not running" in err
    asked: list[str] = []
    monkeypatch.setattr("svc.client.transport.request", lambda *_parts, **_options: asked.append("version"))
    waiting = iter([2, 2, 1, 0])
    monkeypatch.setattr(disk, "count_waiting", lambda: next(waiting))
    monkeypatch.setattr(disk, "as_owner", in_this_process(two))
    monkeypatch.setattr(disk, "POLL_S", 0.0)
    assert svc("disk", "--measure", "ada")[0] == 0
    assert asked == ["version"]
    open_database(two)
    assert [row.name for row in disk_usage.waiting()] == ["ada"]


def in_this_process(path: str) -> Any:
    """as_owner() without a process of its own, so that what is replaced is used."""

    def as_owner(_settings: Any, work: Any) -> Any:
        open_database(path)
        try:
            return work()
        finally:
            close_database()

    return as_owner


def test_one_that_does_not_exist(svc: Any, two: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("svc.client.transport.request", lambda *_parts, **_options: None)
    code, _, err = svc("disk", "--measure", "nobody-here")
    assert (code, "nobody-here" in err) == (1, True)
