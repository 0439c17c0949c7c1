"""Pulls: run by the worker, remembered, and what counts as a download that failed."""

from __future__ import annotations

from typing import Any

import pytest
from unit.reports import RecordedReport
from unit.serving import DIGEST, IMAGE, MISSING, FarEnd

from svc import errors
from svc.domain import operations
from svc.domain.images import images, pulls
from svc.domain.principal import Caller


@pytest.fixture(autouse=True)
def as_worker(far: FarEnd) -> None:
    far.helper.listener = far.listener = "worker"


def test_a_pull_looks_ahead_and_remembers(ada: Caller, far: FarEnd, template: str) -> None:
    report = RecordedReport()
    assert pulls.run(ada, IMAGE, report) == {"image_ref": IMAGE, "digest": DIGEST}
    assert far.verbs() == ["image.preflight", "image.pull"]
    assert report.phases == ["checking", "pulling"]
    assert images.of_template(ada, "base")["status"] == "ready"


def test_a_pull_that_fails_says_so_in_the_row(ada: Caller, far: FarEnd, template: str) -> None:
    far.answers |= {"image.pull": "registry", "image.inspect": MISSING}
    with pytest.raises(errors.EngineFailed):
        pulls.run(ada, IMAGE, RecordedReport())
    record = images.of_template(ada, "base")
    assert (record["status"], record["error"]) == ("failed", "said registry")
    assert pulls.last_failed(ada, IMAGE)


def test_nothing_is_pulled_that_does_not_fit(ada: Caller, far: FarEnd, template: str) -> None:
    far.answers["image.preflight"] |= {"free_bytes": 10}
    far.answers["image.inspect"] = MISSING
    with pytest.raises(errors.StorageFull):
        pulls.run(ada, IMAGE, RecordedReport())
    assert "image.pull" not in far.verbs()
    assert images.of_template(ada, "base")["status"] == "failed"


def test_a_policy_that_changed_meanwhile_counts(ada: Caller, far: FarEnd, policy: Any) -> None:
    policy()
    with pytest.raises(errors.RegistryNotAllowed):
        pulls.run(ada, IMAGE, RecordedReport())
    assert far.verbs() == []


def test_the_last_pull_decides(ada: Caller, bob: Caller) -> None:
    assert not pulls.last_failed(ada, IMAGE)
    for ending, failed in ((operations.fail, True), (operations.succeed, False), (operations.fail, True)):
        record = operations.enqueue(ada, "pull", "image", IMAGE, {})
        operations.claim({}, 2)
        if ending is operations.fail:
            operations.fail(record["id"], errors.EngineFailed("no"), "rid")
        else:
            operations.succeed(record["id"], {})
        assert pulls.last_failed(ada, IMAGE) is failed
    assert not pulls.last_failed(bob, IMAGE)
