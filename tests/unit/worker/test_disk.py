"""Measurements of disks: a few at a time, each kept, a failed one noted."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from unit.serving import FarEnd

from svc.db.connect import database, write
from svc.domain.accounts import disk_usage, users
from svc.domain.pages import Page
from svc.worker.disk import AT_ONCE, DiskWatch


@pytest.fixture
def far() -> Iterator[FarEnd]:
    far = FarEnd("worker")
    yield far
    far.close()


def wait_for_all(watch: DiskWatch) -> None:
    deadline = time.monotonic() + 30
    while watch.measuring or disk_usage.waiting():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_never_more_than_a_few_agents_at_once(db: str, far: FarEnd) -> None:
    for number in range(12):
        users.create(f"user{number}", uid=3000 + number, provisioning=users.READY)
    lock, now, most = threading.Lock(), [0], [0]
    figures = far.answers["disk.usage"]

    def measure(_call: Any) -> Any:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.005)
        with lock:
            now[0] -= 1
        return figures

    far.answers["disk.usage"] = measure
    with write():
        disk_usage.request_all([])
    watch = DiskWatch(far.helper)
    for _ in range(5):  # the worker's rounds, whatever is under way
        watch.begin()
    wait_for_all(watch)
    assert 1 <= most[0] <= AT_ONCE
    items = disk_usage.page_of(Page())["items"]
    assert {item["total_bytes"] for item in items} == {27}
    assert sorted(call.user for call in far.calls if call.verb.name == "disk.usage") == sorted(
        item["name"] for item in items
    )


def test_one_that_fails_is_not_tried_for_ever(owner: int, far: FarEnd) -> None:
    far.answers["disk.usage"] = "timeout"
    with write():
        disk_usage.request_all(["ada"])
    watch = DiskWatch(far.helper)
    watch.begin()
    wait_for_all(watch)
    watch.begin()
    assert far.verbs() == ["disk.usage"]
    assert disk_usage.page_of(Page())["items"][0]["error"]


def test_one_whose_figures_cannot_be_kept_is_not_measured_again_at_once(owner: int, far: FarEnd) -> None:
    """The row stays as it is, so it would be counted again in each round, ten minutes long."""
    with write():
        disk_usage.request_all(["ada"])
        database.execute_sql(
            "CREATE TRIGGER full BEFORE UPDATE ON disk_usage BEGIN SELECT raise(ABORT, 'full'); END"
        )
    watch = DiskWatch(far.helper)
    watch.begin()
    deadline = time.monotonic() + 30
    while not far.verbs() or watch.measuring:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    watch.begin()
    assert not watch.measuring
    assert (far.verbs(), len(disk_usage.waiting())) == (["disk.usage"], 1)


def test_figures_that_are_none(owner: int, far: FarEnd) -> None:
    far.answers["disk.usage"] = {"images_bytes": "\x1b[2J"}
    with write():
        disk_usage.request_all(["ada"])
    watch = DiskWatch(far.helper)
    watch.begin()
    wait_for_all(watch)
    assert "\x1b" not in disk_usage.page_of(Page())["items"][0]["error"]
