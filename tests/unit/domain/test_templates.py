"""Registry templates: who makes, sees, changes and enables which."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import IMAGE, FarEnd, make_template, make_workspace

from svc import errors
from svc.domain import templates, workspaces
from svc.domain.callers import Caller


def wanted(name: str = "py", image_ref: str = IMAGE, **more: Any) -> dict[str, Any]:
    return {"name": name, "source": {"type": "registry", "image_ref": image_ref}} | more


def test_a_private_one_is_enabled_at_creation(ada: Caller, bob: Caller) -> None:
    record = templates.create(ada, wanted(description="Python", command=["sleep", "1"]))
    assert (record["status"], record["scope"], record["owner"], record["revision"]) == (
        "enabled", "private", "ada", 1,
    )  # fmt: skip
    assert record["source"] == {"type": "registry", "image_ref": IMAGE}
    assert record["findings"] == []
    assert templates.get(ada, "py") == templates.get(ada, record["id"]) == record
    with pytest.raises(errors.NotFound):
        templates.get(bob, record["id"])


def test_a_global_one_waits_for_a_superuser(ada: Caller, boss: Caller) -> None:
    with pytest.raises(errors.AdminOnly):
        templates.create(ada, wanted(scope="global"))
    record = templates.create(boss, wanted(scope="global"))
    assert (record["status"], record["owner"]) == ("disabled", None)
    with pytest.raises(errors.NotFound):
        templates.get(ada, "py")
    templates.enable(boss, "py")
    assert templates.get(ada, "py")["status"] == "enabled"
    for act in (templates.disable, templates.enable, templates.delete):
        with pytest.raises(errors.AdminOnly):
            act(ada, "py")


def test_a_new_image_disables_a_global_one_again(boss: Caller, ada: Caller) -> None:
    templates.create(boss, wanted(scope="global"))
    templates.enable(boss, "py")
    assert templates.edit(boss, "py", {"description": "x"})["status"] == "enabled"
    edited = templates.edit(boss, "py", {"source": {"image_ref": "registry.example/other:2"}})
    assert (edited["status"], edited["revision"]) == ("disabled", 3)
    templates.create(ada, wanted("mine"))
    assert (
        templates.edit(ada, "mine", {"source": {"image_ref": "registry.example/x:2"}})["status"] == "enabled"
    )


def test_an_edit_makes_a_revision_and_workspaces_keep_theirs(ada: Caller, far: FarEnd) -> None:
    templates.create(ada, wanted(env=[{"name": "A", "value": "1"}]))
    workspaces.create(ada, {"name": "lab", "template": "py"})
    templates.edit(ada, "py", {"env": [{"name": "A", "value": "2"}], "name": "python"})
    shown = workspaces.get(ada, "lab")["template"]
    assert (shown["name"], shown["revision"], shown["newer_revision"]) == ("python", 1, 2)
    assert templates.edit(ada, "python", {"name": "py"})["revision"] == 2  # a name is no revision
    assert templates.edit(ada, "py", {"description": ""})["revision"] == 2  # what changes nothing neither
    far.answers["ctr.start"] = "not_found"
    with pytest.raises(errors.NotFound):
        workspaces.start(ada, "lab")
    remade = [call.args["env"] for call in far.calls if call.verb.name == "ctr.create"]
    assert remade == [{"A": "1"}, {"A": "1"}]


def test_an_off_list_registry_is_a_finding_then_a_refusal(ada: Caller, policy: Any) -> None:
    record = templates.create(ada, wanted(image_ref="registry.example.evil/team/x"))
    assert [finding["code"] for finding in record["findings"]] == ["registry_not_allowed"]
    with pytest.raises(errors.RegistryNotAllowed):
        templates.enable(ada, "py")
    policy({"host": "registry.example.evil"})
    assert templates.enable(ada, "py")["findings"] == []


def test_names_are_unique_per_owner(ada: Caller, boss: Caller) -> None:
    templates.create(ada, wanted())
    templates.create(boss, wanted(scope="global"))
    for caller, more in ((ada, {}), (boss, {"scope": "global"})):
        with pytest.raises(errors.NameTaken):
            templates.create(caller, wanted(**more))
    assert templates.get(ada, "py")["scope"] == "private"  # one's own before a global one


def test_one_in_use_is_not_deleted(ada: Caller) -> None:
    template_id = make_template(ada.user_id)
    make_workspace(ada.user_id, template_id)
    with pytest.raises(errors.Conflict) as caught:
        templates.delete(ada, "base")
    assert caught.value.details == {"workspaces": 1}
    workspaces.delete(ada, "lab")
    templates.delete(ada, "base")
    with pytest.raises(errors.NotFound):
        templates.get(ada, "base")
