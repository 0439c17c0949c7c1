"""What is asked for: queued, or refused at once with the way out."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from unit.serving import IMAGE, MISSING, FarEnd, make_template, make_workspace

from svc import errors
from svc.db.connect import database
from svc.domain import operations
from svc.domain.images import builds, images
from svc.domain.images import requests as image_requests
from svc.domain.principal import Caller
from svc.domain.templates import rows as template_rows
from svc.domain.workspaces import workspaces

DOCKERFILE = "FROM registry.example/debian:12\nRUN true\n"


def refused(call: Any, caller: Caller, ref: str, error: Any) -> errors.SvcError:
    with pytest.raises(error) as caught:
        call(caller, ref)
    assert database.execute_sql("SELECT count(*) FROM operations").fetchone() == (0,)
    created: errors.SvcError = caught.value
    return created


def publish(**columns: Any) -> str:
    """A published recipe: a registry's image with its Dockerfile."""
    template = make_template(None, "recipe", **columns)
    database.execute_sql(
        "UPDATE template_revisions SET dockerfile = ? WHERE template_id = ?", (DOCKERFILE, template)
    )
    return template


def test_a_pull_is_queued_once(ada: Caller, far: FarEnd, template: str, wakes: list[int]) -> None:
    """ "Pulls a registry image into the caller's own store": the worker does it, as the caller."""
    operation = image_requests.pull(ada, "base")
    assert (operation["kind"], operation["status"]) == ("pull", "queued")
    assert operation["subject"] == {"type": "image", "id": IMAGE, "name": IMAGE}
    assert far.verbs() == []
    assert wakes
    with pytest.raises(errors.OperationInProgress) as caught:
        image_requests.pull(ada, "base")
    assert caught.value.details["operation"]["id"] == operation["id"]


def test_a_build_is_queued_with_the_revision(ada: Caller, far: FarEnd, wakes: list[int]) -> None:
    """ "Builds a Dockerfile-backed template in the caller's own store"."""
    template = make_template(ada.user_id, "made", status="disabled", dockerfile=DOCKERFILE)
    operation = image_requests.build(ada, "made")
    image_ref = template_rows.find(ada, "made").image_ref
    assert (operation["kind"], operation["subject"]) == (
        "build",
        {"type": "image", "id": image_ref, "name": image_ref},
    )
    request = database.execute_sql("SELECT request_json FROM operations").fetchone()[0]
    assert json.loads(request) == {"image_ref": image_ref, "template_id": template, "revision": 1}
    assert far.verbs() == []
    assert wakes


def test_what_is_pulled_and_what_is_built(ada: Caller, template: str) -> None:
    make_template(ada.user_id, "made", dockerfile=DOCKERFILE)
    assert refused(image_requests.pull, ada, "made", errors.Conflict).hint == "svc image build made --wait"
    assert refused(image_requests.build, ada, "base", errors.Conflict).hint == "svc image pull base --wait"


def test_nothing_off_the_list(ada: Caller, policy: Any) -> None:
    make_template(ada.user_id, "far", image_ref="elsewhere.example/x:1")
    make_template(ada.user_id, "made", dockerfile="FROM elsewhere.example/x:1\n")
    assert refused(image_requests.pull, ada, "far", errors.RegistryNotAllowed).hint == "svc image allowlist"
    error = refused(image_requests.build, ada, "made", errors.RegistryNotAllowed)
    assert error.hint == "svc image allowlist"
    for name in ("far", "made"):
        with pytest.raises(errors.RegistryNotAllowed):
            image_requests.require_source(ada, template_rows.find(ada, name))


def test_a_hostile_dockerfile_is_refused_before_it_runs(ada: Caller, far: FarEnd) -> None:
    mounting = "FROM registry.example/a:1\nRUN --mount=type=bind,source=/,target=/x true\n"
    make_template(ada.user_id, "made", dockerfile=mounting)
    assert refused(image_requests.build, ada, "made", errors.ValidationFailed).fields[0]["code"] == "mount"
    database.execute_sql("UPDATE template_revisions SET written_by = ?", (ada.user_id,))
    image_requests.build(ada, "made")  # what one wrote oneself may mount into one's own build
    assert far.verbs() == []


def test_disabled_ones_are_not_pulled_and_built_by_whom_they_belong_to(
    ada: Caller, bob: Caller, boss: Caller, far: FarEnd
) -> None:
    make_template(ada.user_id, "off", status="disabled")
    refused(image_requests.pull, ada, "off", errors.TemplateDisabled)
    make_template(ada.user_id, "made", status="disabled", dockerfile=DOCKERFILE)
    refused(image_requests.build, bob, "made", errors.NotFound)
    make_template(None, "shared", status="disabled", dockerfile=DOCKERFILE)
    refused(image_requests.build, ada, "shared", errors.NotFound)
    refused(image_requests.build, replace(boss, kind="pat"), "shared", errors.NotFound)
    assert image_requests.build(boss, "shared")["kind"] == "build"


def test_an_enabled_managed_one_is_built_by_everybody(ada: Caller, bob: Caller) -> None:
    """ "Local-only managed recipes are built this way by each user after the administrator enables the
    recipe".
    """
    make_template(None, "shared", dockerfile=DOCKERFILE)
    for caller in (ada, bob):
        assert image_requests.build(caller, "shared")["status"] == "queued"


def test_a_published_recipe_is_built_after_a_failed_download(ada: Caller, bob: Caller, boss: Caller) -> None:
    """ "private fallback for a published managed recipe whose download failed (builds the unchanged embedded
    Dockerfile under the same image reference)".
    """
    publish()
    error = refused(image_requests.build, ada, "recipe", errors.Conflict)
    assert error.hint == "svc image pull recipe --wait"
    operation = image_requests.pull(ada, "recipe")
    operations.claim({}, 2)
    images.remember(ada, IMAGE, "failed", error="said registry")
    with pytest.raises(errors.OperationInProgress):  # one after the other
        image_requests.build(ada, "recipe")
    operations.fail(operation["id"], errors.EngineFailed("the registry does not answer"), "rid")
    built = image_requests.build(ada, "recipe")
    # "builds the unchanged embedded Dockerfile under the same image reference"
    assert built["subject"]["id"] == IMAGE
    with pytest.raises(errors.Conflict):
        image_requests.build(bob, "recipe")  # whose download did not fail


def test_a_start_names_the_way_to_its_image(ada: Caller, far: FarEnd, template: str) -> None:
    """ "When the image is missing, the start does not pull or build it": "The image must be prepared first
    with `image pull` or `image build`".
    """
    created = make_template(ada.user_id, "made", dockerfile=DOCKERFILE)
    image_ref = template_rows.find(ada, "made").image_ref
    make_workspace(ada.user_id, template, "one")
    make_workspace(ada.user_id, created, "two", image_ref=image_ref)
    far.answers["image.inspect"] = MISSING
    for name, hint in (
        ("one", "svc image pull base --wait"),
        ("two", "svc image build made --wait"),
    ):
        with pytest.raises(errors.ImageMissing) as caught:
            workspaces.start(ada, name)
        assert caught.value.hint == hint
    assert set(far.verbs()) == {"image.inspect"}
    assert database.execute_sql("SELECT count(*) FROM operations").fetchone() == (0,)


def test_a_disabled_recipe_is_no_fallback(boss: Caller) -> None:
    publish(status="disabled")
    images.remember(boss, IMAGE, "failed", error="said registry")
    refused(image_requests.build, boss, "recipe", errors.TemplateDisabled)


def test_an_off_list_recipe_is_no_fallback(ada: Caller, policy: Any) -> None:
    publish(image_ref="elsewhere.example/x:1")
    images.remember(ada, "elsewhere.example/x:1", "failed", error="said registry")
    refused(image_requests.build, ada, "recipe", errors.RegistryNotAllowed)


def test_arguments_are_kept_for_a_set_up(ada: Caller, far: FarEnd, wakes: list[int]) -> None:
    dockerfile = DOCKERFILE.replace("RUN", "ARG VERSION\nRUN")
    make_template(ada.user_id, "made", status="disabled", dockerfile=dockerfile)
    image_ref = template_rows.find(ada, "made").image_ref
    for given, result in ({"VERSION": "3"}, "succeeded"), ({"VERSION": "4"}, "failed"):
        assert image_requests.build(ada, "made", given)
        database.execute_sql("UPDATE operations SET status = ? WHERE status = 'queued'", (result,))
    assert builds.last_arguments(ada, image_ref) == {"VERSION": "3"}
    assert builds.last_arguments(ada, "localhost/svc/other:1") == {}
    with pytest.raises(errors.ValidationFailed):
        image_requests.build(ada, "made", {"OTHER": "3"})


def test_a_published_recipe_takes_no_arguments(ada: Caller, far: FarEnd) -> None:
    """It "builds the unchanged embedded Dockerfile under the same image reference"."""
    publish()
    images.remember(ada, IMAGE, "failed")
    with pytest.raises(errors.Conflict, match="without arguments"):
        image_requests.build(ada, "recipe", {"VERSION": "3"})
