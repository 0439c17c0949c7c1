"""Images in the caller's own store: what is seen is remembered, and what is remembered ends."""

from __future__ import annotations

import pytest
from unit.serving import DIGEST, IMAGE, MISSING, FarEnd, make_workspace

from svc import errors
from svc.db.connect import database
from svc.domain.images import images
from svc.domain.principal import Caller
from svc.domain.workspaces import workspaces


def test_a_templates_image(ada: Caller, far: FarEnd, template: str) -> None:
    make_workspace(ada.user_id, template)
    record = images.of_template(ada, "base")
    assert record["template"] == {"id": template, "name": "base"}
    seen = tuple(record[key] for key in ("ref", "status", "digest", "size_bytes", "used_by"))
    assert seen == (IMAGE, "ready", DIGEST, 1000, ["lab"])
    far.answers["image.inspect"] = MISSING
    record = images.of_template(ada, "base")
    assert (record["status"], record["digest"]) == ("missing", None)
    assert workspaces.get(ada, "lab")["image_status"] == "missing"


def test_an_image_that_was_never_there_leaves_no_row(ada: Caller, far: FarEnd, template: str) -> None:
    far.answers["image.inspect"] = MISSING
    assert images.of_template(ada, "base")["status"] == "missing"
    assert database.execute_sql("SELECT count(*) FROM images").fetchone() == (0,)


def test_what_failed_says_why_and_an_older_copy_is_ready(ada: Caller, far: FarEnd, template: str) -> None:
    far.answers["image.inspect"] = MISSING
    images.remember(ada, IMAGE, "pulling")
    images.record_failure(ada, IMAGE, errors.EngineFailed("no such registry"), cancelled=False)
    record = images.of_template(ada, "base")
    assert (record["status"], record["error"]) == ("failed", "no such registry")
    far.answers["image.inspect"] = {"present": True, "digest": DIGEST, "size_bytes": 1000}
    images.record_failure(ada, IMAGE, errors.EngineFailed("no such registry"), cancelled=False)
    assert images.of_template(ada, "base")["status"] == "ready"


def test_what_was_cancelled_is_missing(ada: Caller, far: FarEnd, template: str) -> None:
    far.answers["image.inspect"] = MISSING
    images.remember(ada, IMAGE, "building")
    images.record_failure(ada, IMAGE, errors.Conflict("the call was cancelled"), cancelled=True)
    record = images.of_template(ada, "base")
    assert (record["status"], record["error"]) == ("missing", None)


@pytest.mark.parametrize("answer", ["unavailable", "timeout"])
def test_a_store_that_cannot_be_asked_leaves_the_failure(
    ada: Caller, far: FarEnd, template: str, answer: str
) -> None:
    far.answers["image.inspect"] = answer
    images.record_failure(ada, IMAGE, errors.EngineFailed("broken"), cancelled=False)
    assert database.execute_sql("SELECT status, error FROM images").fetchone() == ("failed", "broken")
