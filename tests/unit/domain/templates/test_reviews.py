"""Enabling: the allowlist, the build, the review; what waits for one."""

from __future__ import annotations

from typing import Any

import pytest
from unit.domain.templates.enabling import enable
from unit.serving import IMAGE, MISSING, FarEnd, caller_of, make_user

from svc import errors
from svc.db.connect import database
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates import reviews as template_reviews
from svc.domain.templates import rows as template_rows
from svc.domain.templates import templates
from svc.host.ids import new_id, now

RECIPE = "FROM registry.example/debian:12\n"


def make(caller: Caller, scope: str = "private", name: str = "own", **source: Any) -> str:
    requested = {
        "name": name,
        "scope": scope,
        "source": {"type": "dockerfile", "dockerfile": RECIPE} | source,
    }
    return str(templates.create(caller, requested)["id"])


def has_built(caller: Caller, ref: str) -> None:
    """As if a build of the template had succeeded for the caller just now."""
    database.execute_sql(
        "INSERT INTO operations (id, owner_id, kind, subject_type, subject_id, status, created_at,"
        " updated_at) VALUES (?, ?, 'build', 'image', ?, 'succeeded', ?, ?)",
        (new_id("op"), caller.user_id, template_rows.find(caller, ref).image_ref, now(), now()),
    )


def waiting(caller: Caller) -> list[str]:
    return [item["name"] for item in template_reviews.awaiting(caller, Page())["items"]]


def test_what_has_a_dockerfile_is_built_first(ada: Caller, far: FarEnd) -> None:
    """ "A Dockerfile-backed clone or import must be built before it can be enabled." """
    make(ada)
    with pytest.raises(errors.BuildRequired) as caught:
        enable(ada, "own")
    assert caught.value.hint == "svc image build own --wait"
    has_built(ada, "own")
    far.answers["image.inspect"] = MISSING
    with pytest.raises(errors.BuildRequired):  # built once, pruned since
        enable(ada, "own")
    far.answers["image.inspect"] = {"present": True, "digest": None, "size_bytes": 1}
    assert enable(ada, "own")["status"] == "enabled"
    edited = templates.edit(ada, "own", {"description": "the same image"})
    assert (edited["status"], edited["reviewed_revision"]) == ("enabled", 2)
    edited = templates.edit(ada, "own", {"source": {"dockerfile": RECIPE + "USER 1000\n"}})
    assert (edited["status"], edited["reviewed_revision"]) == ("disabled", 2)
    with pytest.raises(errors.BuildRequired):
        enable(ada, "own")


def test_another_ones_build_does_not_count(ada: Caller, boss: Caller, far: FarEnd) -> None:
    make(boss, "global")
    other = caller_of(make_user("other", 2009, superuser=True), far)
    has_built(other, "own")
    with pytest.raises(errors.BuildRequired):
        enable(boss, "own")
    assert enable(other, "own")["status"] == "enabled"


def test_root_builds_nothing_and_enables_what_needs_no_build(boss: Caller, far: FarEnd) -> None:
    root = caller_of(make_user("root", 0, superuser=True), far)
    make(boss, "global", "recipe")
    make(boss, "global", "local", local_only=True)
    with pytest.raises(errors.BuildRequired, match="root builds no images"):
        enable(root, "recipe")
    assert enable(root, "local")["status"] == "enabled"
    assert far.verbs() == []


def test_registries_of_every_image_are_asked_for(boss: Caller, policy: Any) -> None:
    templates.create(
        boss,
        {
            "name": "both", "scope": "global",
            "source": {"type": "registry", "image_ref": IMAGE, "dockerfile": "FROM elsewhere.example/x:1\n"},
        },
    )  # fmt: skip
    with pytest.raises(errors.RegistryNotAllowed):
        enable(boss, "both")
    policy({"host": "registry.example"}, {"host": "elsewhere.example"})
    record = enable(boss, "both")  # pulled by default: nothing to build
    assert (record["status"], record["managed"]) == ("enabled", True)


def test_only_what_was_looked_at_is_enabled(boss: Caller) -> None:
    templates.create(boss, {"name": "py", "scope": "global", "source": {"image_ref": IMAGE}})
    templates.edit(boss, "py", {"description": "x"})
    with pytest.raises(errors.Conflict) as caught:
        enable(boss, "py", revision=1)
    assert caught.value.details == {"revision": 2}
    assert enable(boss, "py", revision=2)["reviewed_revision"] == 2
    assert enable(boss, "py", revision=2)["status"] == "enabled"


def test_what_waits_for_a_review(ada: Caller, boss: Caller) -> None:
    for name in ("a", "b"):
        templates.create(boss, {"name": name, "scope": "global", "source": {"image_ref": IMAGE}})
    make(ada)
    with pytest.raises(errors.AdminOnly):
        waiting(ada)
    assert waiting(boss) == ["a", "b"]
    enable(boss, "a")
    template_reviews.disable(boss, "a")
    assert waiting(boss) == ["b"]  # closed by hand is no question
    templates.edit(boss, "a", {"source": {"image_ref": "registry.example/other:1"}})
    assert waiting(boss) == ["a", "b"]


def test_it_is_audited_with_its_revision(boss: Caller) -> None:
    templates.create(boss, {"name": "py", "scope": "global", "source": {"image_ref": IMAGE}})
    for act in (enable, enable, template_reviews.disable):
        act(boss, "py")
    rows = database.execute_sql("SELECT action, detail_json FROM audit ORDER BY id").fetchall()
    assert rows[1:] == [
        (f"template.{verb}", '{"revision":1,"target_name":"py"}') for verb in ("enable", "disable")
    ]
