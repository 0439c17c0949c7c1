"""Builds: what is refused before it is queued, and what counts as built."""

from __future__ import annotations

import io
import tarfile
from typing import Any

import pytest
from unit.reports import RecordedReport
from unit.serving import DIGEST, IMAGE, MISSING, FarEnd, make_template

from svc import errors
from svc.db.connect import database, write
from svc.domain import operations
from svc.domain.images import builds, images
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates import contexts
from svc.domain.templates import rows as template_rows
from svc.domain.templates.bundles import ContextFile
from svc.domain.templates.rows import Template
from svc.host.ids import now

DOCKERFILE = "FROM registry.example/debian:12\nCOPY run /run\n"


def operation(
    owner_id: int, kind: str = "build", status: str = "succeeded", image: str = IMAGE, **columns: Any
) -> str:
    """An operation's row, newer than those before it; returns its id."""
    with write():
        number = database.execute_sql("SELECT count(*) FROM operations").fetchone()[0]
        row = {
            "id": f"op-{number:08}", "owner_id": owner_id, "kind": kind, "subject_type": "image",
            "subject_id": image, "status": status, "request_json": "{}", "request_id": "rid",
            "created_at": f"2026-01-01T00:00:{number:02}.000Z", "updated_at": now(),
        } | columns  # fmt: skip
        database.execute_sql(
            f"INSERT INTO operations ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})",
            tuple(row.values()),
        )
    return str(row["id"])


def test_built_is_a_build_of_ones_own_whose_image_is_still_there(
    ada: Caller, bob: Caller, far: FarEnd
) -> None:
    make_template(None, "shared")
    template = template_rows.find(ada, "shared")
    operation(bob.user_id)
    operation(ada.user_id, status="failed")
    operation(ada.user_id, kind="pull")
    operation(ada.user_id, image=f"{IMAGE}2")
    assert not builds.is_built(ada, template)
    assert far.verbs() == []
    assert builds.is_built(bob, template)
    assert far.asked()[0].user == "bob"  # "No shared or root-owned image scope exists"
    far.answers["image.inspect"] = MISSING
    assert not builds.is_built(bob, template)


# --- running ----------------------------------------------------------------------------


@pytest.fixture
def created(ada: Caller, far: FarEnd) -> Template:
    """A Dockerfile template of ada's with a context of one file, for the worker."""
    far.helper.listener = far.listener = "worker"
    make_template(ada.user_id, "made", dockerfile=DOCKERFILE)
    with write():
        context = contexts.store([ContextFile("run", True, lambda: io.BytesIO(b"#!/bin/sh\n"), 10)])
        database.execute_sql("UPDATE template_revisions SET context = ?", (context,))
    return template_rows.find(ada, "made")


def answering(far: FarEnd, *present: str) -> None:
    """A store that has these images, and others after the build."""

    def inspect(call: Any) -> dict[str, Any]:
        there = call.args["image"] in present or "image.build" in far.verbs()
        return {"present": True, "digest": DIGEST, "size_bytes": 1000} if there else MISSING

    far.answers["image.inspect"] = inspect


def test_a_build_gives_the_unchanged_context_to_the_agent(
    ada: Caller, far: FarEnd, created: Template
) -> None:
    """ "Pulled or built in the calling user's own store"."""
    answering(far)
    report = RecordedReport()
    assert builds.run(ada, created, report) == {"image_ref": created.image_ref, "digest": DIGEST}
    assert report.phases == ["checking", "building"]
    called = {call.verb.name: call.args for call in far.asked()}
    assert called["image.preflight"] == {"images": ["registry.example/debian:12"]}
    assert called["image.build"] == {
        "image": created.image_ref, "bases": ["registry.example/debian:12"], "triggers": False,
        "build_args": None, "secrets": None,
    }  # fmt: skip
    with tarfile.open(fileobj=io.BytesIO(far.inputs[0])) as tar:
        assert [(one.name, one.mode & 0o111 != 0) for one in tar] == [
            ("Dockerfile", False),
            ("context/run", True),
        ]
    assert images.of_template(ada, "made")["status"] == "ready"


def test_bases_that_are_there_ask_no_registry(ada: Caller, far: FarEnd, created: Template) -> None:
    answering(far, "registry.example/debian:12")
    builds.run(ada, created, RecordedReport())
    assert "image.preflight" not in far.verbs()


def test_triggers_are_for_the_hands_that_wrote_the_file(ada: Caller, far: FarEnd, created: Template) -> None:
    answering(far)
    builds.run(ada, created._replace(written_by=ada.user_id), RecordedReport())
    assert next(call for call in far.asked() if call.verb.name == "image.build").args["triggers"] is True


ARGUED = "ARG BASE=debian\nFROM registry.example/$BASE:12\nARG VERSION=1 LEVEL\nRUN echo $VERSION\n"


def test_arguments_are_those_of_the_build(ada: Caller, far: FarEnd) -> None:
    far.helper.listener = far.listener = "worker"
    make_template(ada.user_id, "argued", dockerfile=ARGUED)
    template = template_rows.find(ada, "argued")
    answering(far)
    given = {"BASE": "ubuntu", "VERSION": "$(reboot) 2"}
    builds.run(ada, template, RecordedReport(), given)
    called = next(call.args for call in far.asked() if call.verb.name == "image.build")
    assert (called["bases"], called["build_args"]) == (["registry.example/ubuntu:12"], given)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"LEVEL": "2"}, None),
        ({"OTHER": "2"}, "the Dockerfile has no ARG OTHER"),
        ({"TARGETARCH": "arm64"}, "the Dockerfile has no ARG TARGETARCH"),
        ({"BASE": "x y"}, "image"),
        ({"BASE": "../evil.example/x"}, "image"),
    ],
)
def test_arguments_that_are_refused(ada: Caller, given: dict[str, str], error: str | None) -> None:
    make_template(ada.user_id, "argued", dockerfile=ARGUED)
    template = template_rows.find(ada, "argued")
    if error is None:
        builds.require(ada, template, given)
        return
    with pytest.raises(errors.ValidationFailed, match=error):
        builds.require(ada, template, given)


def test_an_argument_selects_no_registry_that_is_not_allowed(ada: Caller) -> None:
    make_template(ada.user_id, "argued", dockerfile="ARG HOST=registry.example\nFROM $HOST/debian:12\n")
    template = template_rows.find(ada, "argued")
    builds.require(ada, template)
    with pytest.raises(errors.RegistryNotAllowed):
        builds.require(ada, template, {"HOST": "evil.example"})


def test_a_step_that_fails_says_so_in_the_row(ada: Caller, far: FarEnd, created: Template) -> None:
    far.answers |= {"image.build": "build", "image.inspect": MISSING}
    with pytest.raises(errors.BuildFailed):
        builds.run(ada, created, RecordedReport())
    record = images.of_template(ada, "made")
    assert (record["status"], record["error"]) == ("failed", "said build")


def test_a_cancelled_build_leaves_nothing_behind(ada: Caller, far: FarEnd, created: Template) -> None:
    far.answers |= {"image.build": "cancelled", "image.inspect": MISSING}
    with pytest.raises(errors.Conflict):
        builds.run(ada, created, RecordedReport(cancelled=True))
    assert images.of_template(ada, "made")["status"] == "missing"


def test_a_build_that_left_no_image_has_failed(ada: Caller, far: FarEnd, created: Template) -> None:
    far.answers |= {"image.build": "failed", "image.inspect": MISSING}
    with pytest.raises(errors.EngineFailed):
        builds.run(ada, created, RecordedReport())
    assert images.of_template(ada, "made")["status"] == "failed"


def test_the_review_is_asked_again_before_a_build_runs(
    ada: Caller, far: FarEnd, created: Template, policy: Any
) -> None:
    policy()
    with pytest.raises(errors.RegistryNotAllowed):
        builds.run(ada, created, RecordedReport())
    assert "image.build" not in far.verbs()


def test_the_context_counts_against_the_quota(ada: Caller, far: FarEnd, created: Template) -> None:
    answering(far)
    database.execute_sql("UPDATE quotas SET max_image_bytes = 1009")
    with pytest.raises(errors.QuotaExceeded) as caught:
        builds.run(ada, created, RecordedReport())
    assert caught.value.details["requested"] == 1010
    assert far.inputs == []


# --- the list ---------------------------------------------------------------------------


def test_the_list_of_builds_is_newest_first_and_names_templates(ada: Caller, bob: Caller) -> None:
    """ "Image builds are listed"; another's are not."""
    template = make_template(ada.user_id, "made", dockerfile=DOCKERFILE)
    first = operation(ada.user_id, request_json=f'{{"template_id": "{template}"}}')
    second = operation(ada.user_id, status="failed", request_json='{"template_id": "tpl-gone"}')
    operation(ada.user_id, kind="pull")
    operation(bob.user_id)
    page = builds.page_of(ada, Page())
    assert [item["id"] for item in page["items"]] == [second, first]
    assert [item["template"] for item in page["items"]] == [None, {"id": template, "name": "made"}]
    assert set(page["items"][0]) == {*operations.get(ada, first), "template"}
    assert [item["id"] for item in builds.page_of(ada, Page(status=("failed",)))["items"]] == [second]
    assert [item["id"] for item in builds.page_of(ada, Page(q="made"))["items"]] == [first]
    assert builds.page_of(ada, Page(limit=1))["next_offset"] == 1
