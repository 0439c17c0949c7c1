"""The image routes: what they answer is what their schemas say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from unit.serving import IMAGE, MISSING, checked, make_template

from svc.db.connect import database, write

DOCKERFILE = "FROM registry.example/debian:12\n"
STORED = {
    "image_id": "a" * 64, "names": [IMAGE, "registry.example/spare:1"], "digest": None, "size_bytes": 9,
    "shared_bytes": 4, "unique_bytes": 5, "containers": 0, "created_at": "2026-01-01T00:00:00.000Z",
}  # fmt: skip


@pytest.fixture
def store(listeners: Any) -> None:
    spare = STORED | {"image_id": "b" * 64, "names": ["registry.example/spare:2"]}
    listeners.far.answers["image.usage"] = {"images": [STORED, spare], "total_bytes": 14, "free_bytes": 99}
    listeners.far.answers["image.prune"] = {"removed": ["b" * 64], "kept": []}


def test_the_overview_and_a_prune(listeners: Any, lab: str, store: None) -> None:
    found = listeners.ask("ada", "GET", "/api/images/overview").get_json()
    assert set(found) == {
        "items", "total", "limit", "offset", "next_offset",
        "total_bytes", "reclaimable_bytes", "free_bytes", "unused_volumes", "quota_bytes",
    }  # fmt: skip
    used, spare = sorted(found["items"], key=lambda item: str(item["image_id"]))
    assert (used["used_by"], used["unused"], used["reclaimable_bytes"]) == (["lab"], False, 0)
    assert (spare["used_by"], spare["unused"], spare["reclaimable_bytes"]) == ([], True, 5)
    assert used["templates"] == [{"id": "tpl-0000base", "name": "base"}]
    assert listeners.ask("ada", "POST", "/api/images/prune", json={}).get_json() == {
        "removed": [{"image_id": "b" * 64, "names": ["registry.example/spare:2"], "size_bytes": 9}],
        "freed_bytes": 5,
        "removed_volumes": 0,
    }


def test_a_build_and_the_list_of_builds(listeners: Any, people: Any) -> None:
    template = make_template(people["ada"].id, "made", status="disabled", dockerfile=DOCKERFILE)
    response = listeners.ask("ada", "POST", "/api/templates/made/image/build", json={})
    assert response.status_code == 202
    operation = response.get_json()["operation"]
    page = listeners.ask("ada", "GET", "/api/images/builds").get_json()
    assert page["items"] == [operation | {"template": {"id": template, "name": "made"}}]
    assert listeners.ask("ada", "GET", "/api/images/builds?status=failed").get_json()["total"] == 0
    checked(listeners.ask("ada", "GET", "/api/images/builds?status=odd"), 422, "validation_failed")
    listeners.far.answers["image.inspect"] = MISSING
    image = listeners.ask("ada", "GET", "/api/templates/made/image").get_json()
    assert (image["operation"]["id"], image["operation"]["kind"]) == (operation["id"], "build")
    checked(
        listeners.ask("ada", "POST", "/api/templates/made/image/build", json={}), 409, "operation_in_progress"
    )
    checked(listeners.ask("ada", "DELETE", "/api/templates/made/image"), 409, "operation_in_progress")


def test_the_arguments_of_a_build(listeners: Any, people: Any) -> None:
    make_template(people["ada"].id, "made", status="disabled", dockerfile=f"{DOCKERFILE}ARG A\n")
    path = "/api/templates/made/image/build"

    def build(*given: tuple[str, str]) -> Any:
        listed = [{"name": name, "value": value} for name, value in given]
        return listeners.ask("ada", "POST", path, json={"build_args": listed})

    for wrong in (
        [("A", "1"), ("A", "2")],
        [("1", "x")],
        [("a.b", "x")],
        [("A", "\0")],
        [("B", "1")],
        [("A", "x" * 5000)],
    ):
        checked(build(*wrong), 422, "validation_failed")
    checked(build(*((f"A{number}", "x" * 4000) for number in range(5))), 422, "validation_failed")
    assert build(("A", "-- $x 1")).status_code == 202
    (request,) = database.execute_sql("SELECT request_json FROM operations").fetchone()
    assert json.loads(request)["build_args"] == {"A": "-- $x 1"}


def test_the_secrets_of_a_build(listeners: Any, people: Any) -> None:
    """No answer repeats a value, and no row has one."""
    dockerfile = f"{DOCKERFILE}RUN --mount=type=secret,id=pip true\n"
    made = make_template(people["ada"].id, "made", status="disabled", dockerfile=dockerfile)
    written = "UPDATE template_revisions SET written_by = ? WHERE template_id = ?"
    with write():
        database.execute_sql(written, (people["ada"].id, made))
    path, value = "/api/templates/made/image/build", "aHVudGVyMg=="

    def build(*given: dict[str, Any]) -> Any:
        return listeners.ask("ada", "POST", path, json={"secrets": list(given)})

    one = {"id": "pip", "value": value}
    for wrong in (
        [one, one], [{"id": "ca", "value": value}], [{"id": "../x", "value": value}], [{"id": "pip"}],
        [{"id": "pip", "value": "hunter2!"}], [{"id": "pip", "value": 7}], [{"id": "none", "value": value}],
        [{"id": "pip", "value": "A" * 400_000}],
        [{"id": f"a{number}", "value": value} for number in range(17)],
    ):  # fmt: skip
        answer = build(*wrong)
        checked(answer, 422, "validation_failed")
        assert "hunter2" not in answer.text and value not in answer.text
    answer = build(one)
    assert answer.status_code == 202 and value not in answer.text
    assert listeners.far.inputs[-1] == b"hunter2"
    dump = "\n".join(database.connection().iterdump())
    assert "hunter2" not in dump and value not in dump


def test_an_image_goes_unless_a_workspace_needs_it(listeners: Any, people: Any, lab: str) -> None:
    error = checked(listeners.ask("ada", "DELETE", "/api/templates/base/image"), 409, "conflict")
    assert error["details"] == {"workspaces": ["lab"]}
    make_template(people["ada"].id, "made", dockerfile=DOCKERFILE)
    assert listeners.ask("ada", "DELETE", "/api/templates/made/image").status_code == 204
    listeners.far.answers["image.remove"] = {"removed": False}
    checked(listeners.ask("ada", "DELETE", "/api/templates/made/image"), 404, "not_found")
    listeners.far.answers["image.remove"] = "conflict"  # a container of the user's own
    checked(listeners.ask("ada", "DELETE", "/api/templates/made/image"), 409, "conflict")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/images"),
        ("GET", "/api/images/builds"),
        ("GET", "/api/images/overview"),
        ("POST", "/api/images/prune"),
        ("GET", "/api/templates/base/image"),
        ("POST", "/api/templates/base/image/pull"),
        ("POST", "/api/templates/base/image/build"),
        ("DELETE", "/api/templates/base/image"),
    ],
)
def test_root_has_no_images(listeners: Any, method: str, path: str) -> None:
    """ "`image list`, `pull`, `build`, `delete` and `prune` are not available to the root account"."""
    checked(listeners.ask("root", method, path), 403, "root_not_allowed")
    assert listeners.far.verbs() == []
