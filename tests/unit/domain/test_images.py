"""Images in the caller's own store, pulls, set-ups and the registry policy."""

from __future__ import annotations

import json
from typing import Any

import pytest
from unit.serving import DIGEST, IMAGE, MISSING, FarEnd, make_template, make_workspace

from svc import errors, limits
from svc.db.connect import database, write
from svc.domain import images, operations, registries, workspaces
from svc.domain.callers import Caller
from svc.domain.pages import Page
from svc_helper import arguments


def never() -> bool:
    return False


def test_the_grammars_are_the_helpers_own() -> None:
    """The limits repeat three patterns of the protocol, which the domain may not import."""
    for ours, theirs, samples in (
        (limits.IMAGE_REF, arguments.image_ref, ("r.example/a:1", "r.example/A", "dir:/", "r/a@sha256:x")),
        (limits.REGISTRY_HOST, arguments.registry_host, ("r.example:5000", "-r", "R", "r.example.")),
        (limits.REGISTRY_PATH, arguments.registry_path, ("", "a/b", "a/b/", "/a", "a//b")),
    ):
        pattern = next(
            cell.cell_contents for cell in theirs.__closure__ if hasattr(cell.cell_contents, "pattern")
        )
        assert pattern.pattern == ours
        assert samples


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


def test_the_list_asks_the_store_once(ada: Caller, bob: Caller, far: FarEnd) -> None:
    make_template(ada.user_id, "one")
    make_template(ada.user_id, "two", image_ref="registry.example/untagged")
    make_template(None, "open", image_ref="registry.example/open:1")
    far.answers["image.list"] = {
        "images": [
            {
                "names": ["registry.example/untagged:latest"],
                "image_id": "x",
                "digest": DIGEST,
                "size_bytes": 5,
            },
            {"names": [7, None], "digest": 5},
            "nonsense",
        ]
    }
    page = images.page_of(ada, Page())
    assert [(item["ref"], item["status"]) for item in page["items"]] == [
        ("registry.example/open:1", "missing"),
        (IMAGE, "missing"),
        ("registry.example/untagged", "ready"),
    ]
    assert far.verbs() == ["image.list"]
    assert images.page_of(ada, Page(status=("ready",)))["total"] == 1
    assert [item["ref"] for item in images.page_of(bob, Page())["items"]] == ["registry.example/open:1"]
    far.answers["image.list"] = {"images": "nonsense"}
    assert images.page_of(ada, Page(status=("ready",)))["total"] == 0


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


def test_pulling_lasts_no_longer_than_the_work(ada: Caller, far: FarEnd, template: str) -> None:
    far.answers["image.inspect"] = MISSING
    operation = images.pull(ada, "base")
    images.remember(ada, IMAGE, "pulling")
    assert images.of_template(ada, "base")["status"] == "pulling"
    operations.cancel(ada, operation["id"])
    assert images.of_template(ada, "base")["status"] == "missing"


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


def test_the_policy_is_the_file(ada: Caller, policy: Any, tmp_path: Any) -> None:
    policy({"host": "reg.example", "path_prefix": "team/a"}, {"host": "localhost:5000", "insecure": True})
    allowed = (
        "reg.example/team/a",
        "reg.example/team/a:1",
        "reg.example/team/a/b@sha256:x",
        "localhost:5000/x:1",
    )
    refused = (
        "reg.example/team/ab",
        "reg.example/team",
        "reg.example.evil/team/a",
        "localhost/x",
        "localhost:50001/x",
    )
    assert [ref for ref in (*allowed, *refused) if registries.allows(ref)] == list(allowed)
    for text in ("", "nonsense", "[]", "{}", '{"registries": 5}', '{"registries": [5, {"host": 5}]}'):
        (tmp_path / "registries.json").write_text(text)
        assert registries.allowlist() == []
    (tmp_path / "registries.json").unlink()
    assert registries.allowlist() == []


def test_the_policy_is_replaced_through_the_helper(ada: Caller, boss: Caller, far: FarEnd) -> None:
    entry = {"host": "reg.example", "path_prefix": "", "insecure": False}
    with pytest.raises(errors.AdminOnly):
        registries.replace(ada, [entry])
    with pytest.raises(errors.ValidationFailed, match="twice"):
        registries.replace(boss, [entry, entry])
    assert far.verbs() == []
    registries.replace(boss, [entry])
    assert far.calls[0].args == {"registries": [entry]}
    with write():
        rows = database.execute_sql("SELECT user_name, action, outcome FROM audit").fetchall()
    assert rows == [("boss", "registries.replace", "begun"), ("boss", "registries.replace", "ok")]
