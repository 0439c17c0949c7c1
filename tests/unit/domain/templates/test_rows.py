"""Which template a reference leads to, at which revision; what a row does whose JSON was broken by hand."""

from __future__ import annotations

import json

import pytest
from unit.serving import DIGEST, IMAGE, FarEnd, make_template, make_workspace

from svc import errors
from svc.db.connect import database, write
from svc.domain import operations
from svc.domain.images import builds, images
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates import history, reviews, templates
from svc.domain.templates import rows as template_rows
from svc.domain.workspaces import idle, launchers, workspaces

BROKEN = [
    ("spec_json", text)
    for text in (
        "",
        "{",
        "[]",
        "7",
        '{"env": 7}',
        '{"launchers": ["one"]}',
        '{"mounts": ["a"]}',
        '{"idle": []}',
    )
] + [("sealed_json", "{"), ("images_json", "[7]"), ("findings_json", '["one"]')]


def test_at_a_revision(ada: Caller) -> None:
    template_id = templates.create(ada, {"name": "py", "source": {"image_ref": IMAGE}})["id"]
    templates.edit(ada, "py", {"description": "second"})
    first, second = (template_rows.at_revision(template_id, number) for number in (1, 2))
    assert (first.revision, first.spec["description"]) == (1, "")
    assert (second.revision, second.spec["description"]) == (2, "second")
    with pytest.raises(errors.NotFound):
        template_rows.at_revision(template_id, 3)


def test_an_id_wins_over_a_name(ada: Caller) -> None:
    first = templates.create(ada, {"name": "one", "source": {"image_ref": IMAGE}})["id"]
    templates.create(ada, {"name": first, "source": {"image_ref": IMAGE}})
    assert template_rows.find(ada, first).name == "one"


def test_what_a_template_is_called_on_a_command_line(ada: Caller, bob: Caller, boss: Caller) -> None:
    """By its name where the name means no other one to this user: an id says nothing to people."""
    source = {"image_ref": IMAGE}
    own = templates.create(ada, {"name": "own", "source": source})["id"]
    twice = templates.create(ada, {"name": "twice", "source": source})["id"]
    for_all = templates.create(boss, {"name": "twice", "scope": "global", "source": source})["id"]
    called = [
        (user.name, template_rows.reference(user.user_id, id_))
        for user in (ada, bob)
        for id_ in (own, for_all)
    ]
    assert called == [("ada", "own"), ("ada", for_all), ("bob", own), ("bob", "twice")]
    assert template_rows.reference(ada.user_id, twice) == twice
    assert template_rows.reference(ada.user_id, "tpl-gone") == "tpl-gone"


@pytest.fixture(params=BROKEN, ids=":".join)
def damaged(request: pytest.FixtureRequest, ada: Caller) -> str:
    """A template with such a column, and the name of a running workspace of it; another one beside each."""
    template = make_template(ada.user_id, "odd")
    make_template(ada.user_id, "sound")
    make_workspace(ada.user_id, template, "lab", status="running")
    make_workspace(ada.user_id, make_template(ada.user_id, "other"), "two")
    column, text = request.param
    with write():
        database.execute_sql(
            f"UPDATE template_revisions SET {column} = ? WHERE template_id = ?", (text, template)
        )
    return "odd"


def test_lists_show_it_and_the_others(ada: Caller, far: FarEnd, damaged: str) -> None:
    found = {one["name"]: one for one in templates.page_of(ada, Page())["items"]}
    assert set(found) == {damaged, "sound", "other"}
    (finding,) = (one for one in found[damaged]["findings"] if one["code"] == "damaged")
    assert "revision 1 of the template odd is damaged in the database" in finding["message"]
    assert "damaged" not in {one["code"] for one in found["sound"]["findings"]}
    assert templates.get(ada, damaged)["findings"] == [finding]
    page = json.loads(workspaces.page_of(ada, Page()))
    assert {one["name"] for one in page["items"]} == {"lab", "two"}
    far.answers["image.list"] = {"images": []}
    assert {one["template"]["name"] for one in images.page_of(ada, Page())["items"]} == set(found)
    assert (launchers.started_runs(), idle.watched()) == ([], [])


@pytest.mark.parametrize("damaged", BROKEN[:8], ids=":".join, indirect=True)
def test_nothing_is_made_of_it(ada: Caller, damaged: str) -> None:
    """Least of all a workspace without the limits that it had."""
    for act in (
        lambda: templates.edit(ada, damaged, {"description": "new"}),
        lambda: templates.clone(ada, damaged, "copy"),
        lambda: workspaces.create(ada, {"template": damaged, "name": "new"}),
    ):
        with pytest.raises(errors.TemplateDamaged, match="the template odd is damaged") as refused:
            act()
        assert refused.value.hint == f"svc template revisions {templates.get(ada, damaged)['id']}"
    assert [one["revision"] for one in history.page_of(ada, damaged, Page())["items"]] == [1]


def test_it_can_be_disabled_and_deleted(ada: Caller, damaged: str) -> None:
    assert reviews.disable(ada, damaged)["status"] == "disabled"
    with write():
        database.execute_sql("DELETE FROM workspaces")
    templates.delete(ada, damaged)
    assert templates.page_of(ada, Page())["total"] == 2


@pytest.mark.parametrize("text", ["", "{", "nope"])
def test_a_broken_user_of_an_image_hides_nothing(ada: Caller, far: FarEnd, text: str) -> None:
    """It is as if its programs ran as root, until its store is inspected again."""
    make_workspace(ada.user_id, make_template(ada.user_id, "sound"), "lab")
    image_row(ada, text)
    assert json.loads(workspaces.page_of(ada, Page()))["items"][0]["warnings"] == []
    assert templates.get(ada, "sound")["findings"] == templates.page_of(ada, Page())["items"][0]["findings"]
    far.answers["image.list"] = {"images": []}
    assert images.page_of(ada, Page())["total"] == 1
    far.answers["image.list"] = {"images": [{"names": [IMAGE], "digest": DIGEST, "size_bytes": 5}]}
    image_row(ada, text)
    assert [one["warnings"] for one in images.page_of(ada, Page())["items"]] == [[]]


def image_row(caller: Caller, user: str) -> None:
    with write():
        database.execute_sql(
            "REPLACE INTO images (owner_id, image_ref, status, digest, size_bytes, updated_at, user_json)"
            " VALUES (?, ?, 'ready', ?, 5, '', ?)",
            (caller.user_id, IMAGE, DIGEST, user),
        )


@pytest.mark.parametrize("text", ["", "{", "nope"])
def test_a_broken_request_of_an_operation_stops_no_other(ada: Caller, far: FarEnd, text: str) -> None:
    template = make_template(ada.user_id, "sound", dockerfile="FROM x")
    odd = operations.enqueue(ada, "build", "image", "localhost/one", {"template_id": template})["id"]
    operations.enqueue(ada, "build", "image", "localhost/two", {"template_id": template})
    with write():
        database.execute_sql("UPDATE operations SET request_json = ? WHERE id = ?", (text, odd))
    assert builds.page_of(ada, Page())["total"] == 2
    with pytest.raises(errors.OperationInProgress):
        templates.delete(ada, "sound")
    claimed = [operations.claim({}, 9) for _ in range(2)]
    assert [one and one["request"] for one in claimed] == [{}, {"template_id": template}]


def test_a_document_without_keys_is_one(ada: Caller) -> None:
    template = make_template(ada.user_id, "plain")
    with write():
        database.execute_sql(
            "UPDATE template_revisions SET spec_json = '{}' WHERE template_id = ?", (template,)
        )
    assert templates.get(ada, "plain")["ports"] == []
