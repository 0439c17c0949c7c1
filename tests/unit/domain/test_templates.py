"""Registry templates: who makes, sees, changes and enables which."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import IMAGE, FarEnd, make_template, make_workspace

from svc import errors
from svc.domain import templates, workspaces
from svc.domain.callers import Caller
from svc.domain.pages import Page


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


@pytest.mark.parametrize(
    ("image_ref", "says"),
    [
        ("ubuntu:22.04", "docker.io/library/ubuntu:22.04"),
        ("team/tool", "docker.io/team/tool"),
        ("library/ubuntu", "docker.io/library/ubuntu"),
        ("registry.example/Team/x", "in lower case"),
        ("-v/:/x", "registry/repository:tag"),
        ("--privileged", "registry/repository:tag"),
        ("docker-archive:/etc/shadow", "registry/repository:tag"),
        ("dir:/", "registry/repository:tag"),
        ("containers-storage:[overlay@/x]y", "registry/repository:tag"),
        ("registry.example/x:1@sha256:abc", "registry/repository:tag"),
        ("registry.example/x\n", "registry/repository:tag"),
        ("registry.example/" + "a" * 300, "registry/repository:tag"),
        ("", "registry/repository:tag"),
    ],
)
def test_an_image_reference_is_whole(ada: Caller, image_ref: str, says: str) -> None:
    with pytest.raises(errors.ValidationFailed) as caught:
        templates.create(ada, wanted(image_ref=image_ref))
    assert says in caught.value.fields[0]["message"]
    assert caught.value.fields[0]["field"] == "source.image_ref"


@pytest.mark.parametrize(
    "image_ref",
    ["localhost/x", "localhost:5000/a/b:1", "10.0.0.1:80/x", "r.example/x@sha256:" + "a" * 64],
)
def test_image_references_that_are_good(ada: Caller, image_ref: str) -> None:
    assert templates.create(ada, wanted(image_ref=image_ref))["source"]["image_ref"] == image_ref


def test_an_off_list_registry_is_a_finding_then_a_refusal(ada: Caller, policy: Any) -> None:
    record = templates.create(ada, wanted(image_ref="registry.example.evil/team/x"))
    assert [finding["code"] for finding in record["findings"]] == ["registry_not_allowed"]
    with pytest.raises(errors.RegistryNotAllowed):
        templates.enable(ada, "py")
    policy({"host": "registry.example.evil"})
    assert templates.enable(ada, "py")["findings"] == []


def test_a_default_over_the_own_limit(ada: Caller) -> None:
    with pytest.raises(errors.ValidationFailed) as caught:
        templates.create(ada, wanted(defaults={"cpu_limit": 3.0}, limits={"cpu_limit": 2.0}))
    assert caught.value.fields[0]["field"] == "defaults.cpu_limit"


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


def test_lists(ada: Caller, bob: Caller, boss: Caller) -> None:
    for name in ("b", "a", "c"):
        make_template(ada.user_id, name)
    make_template(None, "open")
    make_template(None, "shut", status="disabled")

    def names(caller: Caller, page: Page = Page(), owner: str | None = None) -> list[str]:  # noqa: B008
        return [item["name"] for item in templates.page_of(caller, page, owner)["items"]]

    assert names(ada) == ["a", "b", "c", "open"]
    assert names(bob) == ["open"]
    assert names(boss) == ["open", "shut"]
    assert names(boss, owner="ada") == ["a", "b", "c", "open", "shut"]
    assert names(ada, Page(sort="-name", limit=2, offset=1)) == ["c", "b"]
    assert names(boss, Page(status=("disabled",))) == ["shut"]
    assert names(ada, Page(q="%")) == []
    page = templates.page_of(ada, Page(limit=2))
    assert (page["total"], page["next_offset"]) == (4, 2)
    with pytest.raises(errors.ValidationFailed):
        names(ada, Page(sort="name; DROP TABLE users"))
