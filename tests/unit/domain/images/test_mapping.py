"""The copy of an image for run_as: asked about, refused in numbers, made with progress, counted."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import DIGEST, IMAGE, FarEnd

from svc.db.connect import database
from svc.domain.images import mapping
from svc.domain.principal import Caller
from svc.errors import EngineFailed, QuotaExceeded, StorageFull
from svc.limits import COPY_QUESTION_S

RUN_AS = {"uid": 1000, "gid": 100}
SIZE = 8 * 2**30


class Steps:
    """A report that keeps its phases."""

    def __init__(self) -> None:
        self.phases: list[str] = []
        self.reports: list[dict[str, Any]] = []

    def phase(self, name: str) -> None:
        self.phases.append(name)

    def expect(self, download_bytes: int) -> None:
        raise AssertionError

    def progress(self, progress: dict[str, Any]) -> None:
        self.reports.append(progress)

    def add_log(self, text: str) -> None:
        raise AssertionError

    def cancelled(self) -> bool:
        return False


@pytest.fixture(autouse=True)
def to_copy(far: FarEnd) -> None:
    """The store has no copy yet, and room for one."""
    made = [
        {"current": 5, "total": SIZE, "unit": "copied"},
        {"copy_bytes": SIZE, "copied": True},
    ]
    far.answers["image.map"] = lambda call: (
        made if call.args["copy"] else {"copy_bytes": SIZE, "copied": False}
    )
    far.answers["image.usage"] = {"images": [], "total_bytes": 2000, "free_bytes": SIZE}


def test_without_run_as_nothing_is_asked(ada: Caller, far: FarEnd) -> None:
    mapping.ensure(ada, IMAGE, None)
    assert far.verbs() == []


def test_the_question_has_a_limit_of_its_own(ada: Caller, far: FarEnd) -> None:
    """A listener's thread asks it, also while Podman makes another copy, which may take two hours."""
    mapping.ensure(ada, IMAGE, RUN_AS)
    question, copy = (call for call in far.calls if call.verb.name == "image.map")
    assert question.timeout_s == COPY_QUESTION_S < copy.timeout_s


def test_a_copy_that_is_there_costs_one_question(ada: Caller, far: FarEnd) -> None:
    far.answers["image.map"] = {"copy_bytes": 0, "copied": False}
    mapping.ensure(ada, IMAGE, RUN_AS, Steps())
    assert far.verbs() == ["image.map"]


def test_it_is_made_with_progress_and_its_size_is_kept(ada: Caller, far: FarEnd) -> None:
    far.answers["image.inspect"] = {"present": True, "digest": DIGEST, "size_bytes": 1000 + SIZE}
    steps = Steps()
    mapping.ensure(ada, IMAGE, RUN_AS, steps)
    assert steps.phases == ["copying"] and steps.reports[0]["current"] == 5
    assert far.verbs() == ["image.map", "image.usage", "image.map", "image.inspect"]
    copy = far.asked()[2]
    assert copy.args == {"image": IMAGE, "run_as": RUN_AS, "copy": True}
    assert database.execute_sql("SELECT size_bytes FROM images").fetchone() == (1000 + SIZE,)


def test_the_quota_is_asked_first(ada: Caller, far: FarEnd) -> None:
    database.execute_sql("UPDATE quotas SET max_image_bytes = ?", (SIZE,))
    with pytest.raises(QuotaExceeded) as caught:
        mapping.ensure(ada, IMAGE, RUN_AS)
    assert caught.value.details["requested"] == SIZE
    assert far.verbs() == ["image.map", "image.usage"]


def test_a_disk_without_room_is_left_alone(ada: Caller, far: FarEnd) -> None:
    far.answers["image.usage"] = {"images": [], "total_bytes": 0, "free_bytes": SIZE - 1}
    with pytest.raises(StorageFull, match=r"of 8\.0 GiB"):
        mapping.ensure(ada, IMAGE, RUN_AS)
    assert far.verbs() == ["image.map", "image.usage"]


@pytest.mark.parametrize("size", [None, "7", True])
def test_an_answer_that_is_none(ada: Caller, far: FarEnd, size: Any) -> None:
    far.answers["image.map"] = {"copy_bytes": size, "copied": False}
    with pytest.raises(EngineFailed):
        mapping.ensure(ada, IMAGE, RUN_AS)
