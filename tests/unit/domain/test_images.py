"""Images in the caller's own store, pulls, set-ups and the registry policy."""

from __future__ import annotations

import json
from typing import Any

import pytest
from unit.serving import DIGEST, IMAGE, MISSING, FarEnd, make_template, make_workspace

from svc import errors
from svc.db.connect import database
from svc.domain import images, workspaces
from svc.domain.callers import Caller


def never() -> bool:
    return False


def test_a_templates_image(ada: Caller, far: FarEnd, template: str) -> None:
    make_workspace(ada.user_id, template)
    record = images.of_template(ada, "base")
    assert record["template"] == {"id": template, "name": "base"}
    assert (record["ref"], record["status"], record["digest"], record["size_bytes"]) == (
        IMAGE,
        "ready",
        DIGEST,
        1000,
    )
    assert record["used_by"] == ["lab"]
    far.answers["image.inspect"] = MISSING
    record = images.of_template(ada, "base")
    assert (record["status"], record["digest"]) == ("missing", None)
    assert workspaces.get(ada, "lab")["image_status"] == "missing"


def test_pull_queues_an_operation(ada: Caller, far: FarEnd, template: str, wakes: list[int]) -> None:
    operation = images.pull(ada, "base")
    assert (operation["kind"], operation["status"]) == ("pull", "queued")
    assert operation["subject"] == {"type": "image", "id": IMAGE}
    assert far.verbs() == []
    assert wakes
    with pytest.raises(errors.OperationInProgress) as caught:
        images.pull(ada, "base")
    assert caught.value.details["operation"]["id"] == operation["id"]


def test_pull_is_refused_off_the_list_and_for_a_disabled_template(ada: Caller, policy: Any) -> None:
    make_template(ada.user_id, "far", image_ref="elsewhere.example/x:1")
    make_template(ada.user_id, "off", status="disabled")
    with pytest.raises(errors.RegistryNotAllowed):
        images.pull(ada, "far")
    with pytest.raises(errors.TemplateDisabled):
        images.pull(ada, "off")


def test_fetch_remembers(ada: Caller, far: FarEnd, template: str) -> None:
    far.helper.door = far.door = "worker"
    assert images.fetch(ada, IMAGE, lambda _: None, never) == {"image_ref": IMAGE, "digest": DIGEST}
    assert far.verbs() == ["image.pull", "image.inspect"]
    far.answers |= {"image.pull": "registry", "image.inspect": MISSING}
    database.execute_sql("DELETE FROM images")
    with pytest.raises(errors.EngineFailed):
        images.fetch(ada, IMAGE, lambda _: None, never)
    record = images.of_template(ada, "base")
    assert (record["status"], record["error"]) == ("failed", "said registry")


def test_a_failed_pull_keeps_an_older_copy(ada: Caller, far: FarEnd, template: str) -> None:
    far.helper.door = far.door = "worker"
    far.answers["image.pull"] = "registry"
    with pytest.raises(errors.EngineFailed):
        images.fetch(ada, IMAGE, lambda _: None, never)
    assert images.of_template(ada, "base")["status"] == "ready"


def test_set_up_queues_one_operation_per_name(ada: Caller, far: FarEnd, template: str) -> None:
    operation = workspaces.set_up(ada, {"name": "lab", "template": "base"})
    assert operation["kind"] == "setup"
    assert operation["subject"]["type"] == "workspace"
    request = json.loads(database.execute_sql("SELECT request_json FROM operations").fetchone()[0])
    assert request == {"image_ref": IMAGE, "workspace": {"name": "lab", "template": template}}
    for name in ("lab",):
        with pytest.raises(errors.NameTaken):
            workspaces.set_up(ada, {"name": name, "template": "base"})
    assert far.verbs() == []
