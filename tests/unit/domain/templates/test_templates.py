"""Templates: who makes, sees, changes and enables which."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from unit.configuring import configured
from unit.domain.templates.enabling import enable
from unit.serving import IMAGE, MISSING, FarEnd, caller_of, make_template, make_user, make_workspace

from svc import errors
from svc.db import connect
from svc.db.connect import database
from svc.domain import operations
from svc.domain.principal import Caller
from svc.domain.templates import (
    reviews as template_reviews,
)
from svc.domain.templates import (
    rows as template_rows,
)
from svc.domain.templates import (
    templates,
)
from svc.domain.workspaces import workspaces


def requested(name: str = "py", image_ref: str = IMAGE, **more: Any) -> dict[str, Any]:
    return {"name": name, "source": {"type": "registry", "image_ref": image_ref}} | more


def test_a_private_one_is_enabled_at_creation(ada: Caller, bob: Caller) -> None:
    record = templates.create(ada, requested(description="Python", command=["sleep", "1"]))
    assert (record["status"], record["scope"], record["owner"], record["revision"]) == (
        "enabled", "private", "ada", 1,
    )  # fmt: skip
    assert record["source"] == {
        "type": "registry", "image_ref": IMAGE, "local_only": False, "has_dockerfile": False,
        "context_files": 0, "context_bytes": 0,
    }  # fmt: skip
    assert [finding["code"] for finding in record["findings"]] == ["image_not_pinned"]
    assert templates.get(ada, "py") == templates.get(ada, record["id"]) == record
    with pytest.raises(errors.NotFound):
        templates.get(bob, record["id"])


def test_a_global_one_waits_for_a_superuser(ada: Caller, boss: Caller) -> None:
    """ "Global (managed, visible to everyone after review) or private (owned by one user)"."""
    with pytest.raises(errors.AdminOnly):
        templates.create(ada, requested(scope="global"))
    record = templates.create(boss, requested(scope="global"))
    assert (record["status"], record["owner"]) == ("disabled", None)
    with pytest.raises(errors.NotFound):
        templates.get(ada, "py")
    enable(boss, "py")
    assert templates.get(ada, "py")["status"] == "enabled"
    for act in (template_reviews.disable, enable, templates.delete):
        with pytest.raises(errors.AdminOnly):
            act(ada, "py")


def test_a_new_image_disables_again(boss: Caller, ada: Caller) -> None:
    templates.create(boss, requested(scope="global"))
    enable(boss, "py")
    assert templates.edit(boss, "py", {"description": "x"})["status"] == "enabled"
    edited = templates.edit(boss, "py", {"source": {"image_ref": "registry.example/other:2"}})
    assert (edited["status"], edited["revision"]) == ("disabled", 3)
    templates.create(ada, requested("mine"))
    other = {"source": {"image_ref": "registry.example/x:2"}}
    assert templates.edit(ada, "mine", other)["status"] == "disabled"
    assert enable(ada, "mine")["status"] == "enabled"
    assert templates.edit(ada, "mine", other)["status"] == "enabled"  # the one that it has


def test_changes_stand_in_one_line_before_the_database(ada: Caller) -> None:
    """Sixteen at a time, each of a large Dockerfile, kept everybody else from writing for seconds."""
    templates.create(ada, requested())

    def change() -> None:
        templates.edit(ada, "py", {"description": "later"})
        connect.close_database()

    thread = threading.Thread(target=change)
    with templates.editing(ada):
        thread.start()
        thread.join(0.1)
        assert thread.is_alive()
        with connect.write():
            database.execute_sql("UPDATE templates SET updated_at = updated_at")
        assert templates.get(ada, "py")["description"] == ""
    thread.join()
    assert templates.get(ada, "py")["description"] == "later"


def test_an_edit_makes_a_revision_and_workspaces_keep_theirs(ada: Caller, far: FarEnd) -> None:
    templates.create(ada, requested(env=[{"name": "A", "value": "1"}]))
    workspaces.create(ada, {"name": "lab", "template": "py"})
    templates.edit(ada, "py", {"env": [{"name": "A", "value": "2"}], "name": "python"})
    printed = workspaces.get(ada, "lab")["template"]
    assert (printed["name"], printed["revision"], printed["newer_revision"]) == ("python", 1, 2)
    assert templates.edit(ada, "python", {"name": "py"})["revision"] == 2  # a name is no revision
    assert templates.edit(ada, "py", {"description": ""})["revision"] == 2  # what changes nothing neither
    far.answers["ctr.start"] = "not_found"
    with pytest.raises(errors.NotFound):
        workspaces.start(ada, "lab")
    remade = [call.args["env"] for call in far.calls if call.verb.name == "ctr.create"]
    assert remade == [{"A": "1"}, {"A": "1"}]


def test_an_off_list_registry_is_a_finding_then_a_refusal(ada: Caller, policy: Any) -> None:
    pinned = f"registry.example.evil/team/x@sha256:{'0' * 64}"
    record = templates.create(ada, requested(image_ref=pinned))
    assert [finding["code"] for finding in record["findings"]] == ["registry_not_allowed"]
    with pytest.raises(errors.RegistryNotAllowed):
        enable(ada, "py")
    policy({"host": "registry.example.evil"})
    assert enable(ada, "py")["findings"] == []


def test_names_are_unique_per_owner(ada: Caller, boss: Caller) -> None:
    templates.create(ada, requested())
    templates.create(boss, requested(scope="global"))
    for caller, more in ((ada, {}), (boss, {"scope": "global"})):
        with pytest.raises(errors.NameTaken):
            templates.create(caller, requested(**more))
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


RECIPE = "FROM registry.example/debian:12\n"


def recipe(name: str = "own", text: str = RECIPE, **more: Any) -> dict[str, Any]:
    return {"name": name, "source": {"type": "dockerfile", "dockerfile": text}} | more


def test_one_with_a_dockerfile_starts_disabled(ada: Caller, boss: Caller) -> None:
    """ "Can be backed by a registry image or by a Dockerfile"."""
    record = templates.create(ada, recipe())
    assert (record["status"], record["reviewed_revision"], record["managed"]) == ("disabled", None, False)
    assert record["source"]["image_ref"].startswith(f"localhost/svc/{record['id']}:")
    assert templates.dockerfile(ada, "own") == {"dockerfile": RECIPE, "read_only": False}
    templates.create(boss, recipe("open", scope="global"))
    assert templates.dockerfile(boss, "open")["read_only"] is True
    for caller, name in ((ada, "open"), (boss, "own")):
        with pytest.raises(errors.NotFound):
            templates.dockerfile(caller, name)


def test_a_registrys_image_has_no_dockerfile(ada: Caller) -> None:
    templates.create(ada, requested())
    with pytest.raises(errors.NotFound, match="has no Dockerfile"):
        templates.dockerfile(ada, "py")


def test_another_dockerfile_disables_again(ada: Caller) -> None:
    templates.create(ada, recipe())
    database.execute_sql("UPDATE templates SET status = 'enabled'")
    assert templates.edit(ada, "own", {"source": {"dockerfile": RECIPE}})["revision"] == 1
    edited = templates.edit(ada, "own", {"source": {"dockerfile": RECIPE + "USER 1000\n"}})
    assert (edited["status"], edited["revision"]) == ("disabled", 2)


def test_clones_are_private_and_ones_own(ada: Caller, boss: Caller) -> None:
    spec = {"command": ["sleep", "1"], "limits": {"pids_limit": 5}, "description": "Python"}
    opened = templates.create(boss, requested(scope="global", **spec))
    with pytest.raises(errors.NotFound):
        templates.clone(ada, "py", "mine")
    assert templates.clone(boss, "py", "early")["status"] == "enabled"  # administrators see disabled ones
    enable(boss, "py")
    clone = templates.clone(ada, "py", "mine")
    assert (clone["scope"], clone["owner"], clone["status"], clone["revision"]) == (
        "private", "ada", "enabled", 1,
    )  # fmt: skip
    assert (clone["cloned_from"], clone["managed"]) == (opened["id"], False)
    assert {key: clone[key] for key in spec} == spec
    with pytest.raises(errors.NameTaken):
        templates.clone(ada, "py", "mine")


def test_a_clone_of_a_recipe_is_built_by_its_owner(ada: Caller, boss: Caller) -> None:
    """A published recipe's clone has the Dockerfile alone, and nobody has written it yet."""
    published = recipe("both", scope="global")
    published["source"] |= {"type": "registry", "image_ref": IMAGE}
    templates.create(boss, published)
    templates.create(boss, recipe("local", scope="global"))
    templates.edit(boss, "local", {"source": {"local_only": True}})
    database.execute_sql("UPDATE templates SET status = 'enabled'")
    for name in ("both", "local"):
        clone = templates.clone(ada, name, f"my-{name}")
        assert (clone["source"]["type"], clone["source"]["local_only"]) == ("dockerfile", False)
        assert clone["source"]["image_ref"].startswith(f"localhost/svc/{clone['id']}:")
        assert clone["status"] == "disabled"
        assert template_rows.find(ada, f"my-{name}").written_by is None
        assert templates.dockerfile(ada, f"my-{name}") == {"dockerfile": RECIPE, "read_only": False}
        templates.clone(ada, f"my-{name}", f"again-{name}")
        assert template_rows.find(ada, f"again-{name}").written_by is None
    templates.create(ada, recipe())
    templates.clone(ada, "own", "own-2")
    assert template_rows.find(ada, "own-2").written_by == ada.user_id


def test_root_has_none_of_its_own(far: FarEnd) -> None:
    root = caller_of(make_user("root", 0, superuser=True), far)
    with pytest.raises(errors.RootNotAllowed):
        templates.create(root, requested())
    templates.create(root, requested(scope="global"))
    with pytest.raises(errors.RootNotAllowed):
        templates.clone(root, "py", "mine")


def test_so_many_and_no_more(ada: Caller, boss: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(templates, "TEMPLATES_PER_USER", 1)
    templates.create(ada, requested())
    for act in (lambda: templates.create(ada, requested("two")), lambda: templates.clone(ada, "py", "two")):
        with pytest.raises(errors.QuotaExceeded) as caught:
            act()
        assert caught.value.details == {"resource": "templates", "limit": 1, "used": 1, "requested": 1}
    for name in ("a", "b"):
        templates.create(boss, requested(name, scope="global"))


def test_one_with_work_under_way_is_not_deleted(ada: Caller, far: FarEnd) -> None:
    templates.create(ada, requested())
    begun = workspaces.set_up(ada, {"name": "lab", "template": "py"})
    request = database.execute_sql("SELECT request_json FROM operations").fetchone()[0]
    created = templates.get(ada, "py")
    assert json.loads(request) == {
        "image_ref": IMAGE, "template_id": created["id"], "revision": 1,
        "workspace": {"name": "lab", "template": created["id"]},
    }  # fmt: skip
    with pytest.raises(errors.OperationInProgress):
        templates.delete(ada, "py")
    operations.cancel(ada, begun["id"])
    templates.delete(ada, "py")


def test_a_set_up_of_a_hostile_dockerfile_is_refused_at_once(ada: Caller, boss: Caller) -> None:
    text = "FROM registry.example/x:1\nRUN --mount=type=bind,source=/,target=/mnt true\n"
    for caller, scope in ((boss, "global"), (ada, "private")):
        templates.create(caller, recipe(scope, text, scope=scope))
    database.execute_sql("UPDATE templates SET status = 'enabled'")
    with pytest.raises(errors.ValidationFailed):
        workspaces.set_up(ada, {"name": "lab", "template": "global"})
    workspaces.set_up(ada, {"name": "lab", "template": "private"})  # it is her own


def test_a_set_up_gets_the_revision_that_was_asked_for(ada: Caller, far: FarEnd) -> None:
    """ "Downloads or builds a missing image and creates the workspace as one operation", however long."""
    templates.create(ada, requested(command=["one"]))
    templates.edit(ada, "py", {"command": ["two"]})
    record = workspaces.create(ada, {"name": "lab", "template": "py"}, revision=1)
    assert record["template"]["revision"] == 1
    assert far.calls[-1].args["command"] == ["one"]


def test_a_missing_image_names_what_brings_it(ada: Caller, far: FarEnd) -> None:
    """ "When the image is missing, the start does not pull or build it."

    "The image must be prepared first with `image pull` or `image build`."
    """
    far.answers["image.inspect"] = MISSING
    for name, argument in (("py", "pull"), ("own", "build")):
        templates.create(ada, requested(name) if argument == "pull" else recipe(name))
        database.execute_sql("UPDATE templates SET status = 'enabled'")
        workspaces.create(ada, {"name": f"lab-{name}", "template": name})
        with pytest.raises(errors.ImageMissing) as caught:
            workspaces.start(ada, f"lab-{name}")
        assert caught.value.hint == f"svc image {argument} {name} --wait"
    templates.edit(ada, "own", {"source": {"dockerfile": RECIPE + "USER 1\n"}})
    with pytest.raises(errors.ImageMissing) as caught:
        workspaces.start(ada, "lab-own")  # nothing brings the former image any more
    assert caught.value.hint == "svc ws setup --template own --name lab-own-2"


def test_mounts_reach_the_container_and_the_record(
    ada: Caller, far: FarEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(file_roots=dict.fromkeys(("work", "data"), False))
    mount = {"root": "data", "path": "/data", "read_only": True}
    templates.create(ada, requested(mounts=[mount]))
    record = workspaces.create(ada, {"name": "lab", "template": "py"})
    assert record["mounts"] == [{"root": "work", "path": "/work", "read_only": False}, mount]
    assert far.calls[-1].args["mounts"] == [mount]
