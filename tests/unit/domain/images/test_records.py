"""What is remembered of images, as records."""

from __future__ import annotations

import pytest
from unit.serving import DIGEST, IMAGE, MISSING, FarEnd, make_template

from svc.domain import operations
from svc.domain.images import images
from svc.domain.images import records as image_records
from svc.domain.images import requests as image_requests
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.errors import EngineFailed
from svc_helper.agent.images.descriptions import stored_name


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


@pytest.mark.parametrize(
    ("image_ref", "stored"),
    [
        ("reg.example:5000/a/b", "reg.example:5000/a/b:latest"),
        ("reg.example:5000/b:1", "reg.example:5000/b:1"),
        (f"reg.example:5000/b@{DIGEST}", f"reg.example:5000/b@{DIGEST}"),
        (f"reg.example:5000/b:1@{DIGEST}", f"reg.example:5000/b@{DIGEST}"),
    ],
)
def test_a_reference_is_found_as_the_store_lists_it(
    ada: Caller, far: FarEnd, image_ref: str, stored: str
) -> None:
    make_template(ada.user_id, "one", image_ref=image_ref)
    row = {"names": [stored], "image_id": "x", "digest": DIGEST, "size_bytes": 5}
    far.answers["image.list"] = {"images": [row]}
    (item,) = images.page_of(ada, Page())["items"]
    assert (item["ref"], item["status"]) == (image_ref, "ready")
    assert stored_name(image_ref) == stored, "the agent's own rule is the same"


@pytest.mark.parametrize("digest", [[], {"sha256": "x"}, 5, "x" * 81])
def test_a_digest_of_the_wrong_kind_is_an_answer_that_is_refused(
    ada: Caller, far: FarEnd, digest: object
) -> None:
    make_template(ada.user_id, "one")
    far.answers["image.list"] = {"images": [{"names": [IMAGE], "digest": digest, "size_bytes": 5}]}
    with pytest.raises(EngineFailed):
        images.page_of(ada, Page())


def test_what_was_had_for_nothing_any_more_is_not_listed(ada: Caller, far: FarEnd) -> None:
    """A template that went, or another Dockerfile: its image is listed for as long as the store has it."""
    images.remember(ada, IMAGE, "ready", digest=DIGEST, size=5)
    images.remember(ada, "registry.example/never:1", "failed", error="it was not to be had")
    kept = {"names": [IMAGE], "image_id": "x", "digest": DIGEST, "size_bytes": 5}
    far.answers["image.list"] = {"images": [kept]}
    assert [item["ref"] for item in images.page_of(ada, Page())["items"]] == [IMAGE]
    far.answers["image.list"] = {"images": []}
    assert images.page_of(ada, Page())["items"] == []


def test_templates_that_share_an_image_are_all_listed(ada: Caller, bob: Caller, far: FarEnd) -> None:
    """ "Status per template", "per template, per user": one row each, and one for an image without any."""
    for name in ("one", "two"):
        make_template(ada.user_id, name)
    make_template(bob.user_id, "bobs")
    images.remember(ada, IMAGE, "ready", digest=DIGEST, size=5)
    images.remember(ada, "registry.example/alone:1", "ready", digest=DIGEST, size=5)
    names = [IMAGE, "registry.example/alone:1"]
    far.answers["image.list"] = {
        "images": [{"names": names, "image_id": "x", "digest": DIGEST, "size_bytes": 5}]
    }
    page = images.page_of(ada, Page())
    listed = [(item["ref"], (item["template"] or {}).get("name")) for item in page["items"]]
    assert listed == [("registry.example/alone:1", None), (IMAGE, "one"), (IMAGE, "two")]
    assert page["total"] == 3
    assert {item["status"] for item in page["items"]} == {"ready"}
    first, second = (images.page_of(ada, Page(limit=2, offset=offset))["items"] for offset in (0, 2))
    assert first + second == page["items"]


def test_pulling_lasts_no_longer_than_the_work(ada: Caller, far: FarEnd, template: str) -> None:
    far.answers["image.inspect"] = MISSING
    operation = image_requests.pull(ada, "base")
    images.remember(ada, IMAGE, "pulling")
    assert images.of_template(ada, "base")["status"] == "pulling"
    operations.cancel(ada, operation["id"])
    assert images.of_template(ada, "base")["status"] == "missing"


def test_a_record_shows_the_work_under_way(ada: Caller, far: FarEnd, template: str) -> None:
    assert images.of_template(ada, "base")["operation"] is None
    operation = image_requests.pull(ada, "base")
    printed = images.of_template(ada, "base")["operation"]
    assert (printed["id"], printed["kind"], printed["progress"]) == (operation["id"], "pull", {})


def test_how_one_comes_by_an_image() -> None:
    assert image_records.verb("localhost/svc/tpl-1:0123456789abcdef") == "build"
    assert image_records.verb("localhost:5000/svc/x:1") == "pull"


def test_a_reference_as_the_store_lists_it() -> None:
    assert image_records.whole("r.example:5000/a") == "r.example:5000/a:latest"
    for ref in ("r.example/a:1", "r.example/a@sha256:x"):
        assert image_records.whole(ref) == ref
    assert image_records.whole("r.example:5000/a:1@sha256:x") == "r.example:5000/a@sha256:x"
