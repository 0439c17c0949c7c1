"""What images take and who needs them; a prune never removes what a workspace needs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from unit.serving import DIGEST, IMAGE, FarEnd, make_template, make_workspace

from svc import errors
from svc.db.connect import database
from svc.domain.accounts import account_usage
from svc.domain.images import images
from svc.domain.images import records as image_records
from svc.domain.images import requests as image_requests
from svc.domain.images import usage as image_usage
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.quotas import usage as quota_usage

DOCKERFILE = "FROM registry.example/debian:12\n"


def image(number: int, *names: str, **changes: Any) -> dict[str, Any]:
    return {
        "image_id": f"{number:064x}", "names": list(names), "digest": f"sha256:{number:064x}",
        "size_bytes": 1000, "shared_bytes": 400, "unique_bytes": 600, "containers": 0,
        "created_at": "2026-01-01T00:00:00.000Z",
    } | changes  # fmt: skip


def stock(far: FarEnd, *stored: dict[str, Any], volumes: int = 0) -> None:
    """A store with these images and unused volumes, of which a prune removes whatever it is asked to."""
    held = {one["image_id"]: one for one in stored}

    def usage(_call: Any) -> dict[str, Any]:
        alone = sum(one["unique_bytes"] for one in held.values())
        return {
            "images": list(held.values()), "total_bytes": alone + 400 * bool(held), "free_bytes": 5000,
            "unused_volumes": volumes,
        }  # fmt: skip

    def prune(call: Any) -> dict[str, Any]:
        gone = [one for one in call.args["ids"] if held.pop(one, None)]
        return {"removed": gone, "kept": [], "volumes": volumes if call.args["volumes"] else 0}

    far.answers |= {"image.usage": usage, "image.prune": prune}


def asked_to_go(far: FarEnd) -> list[int]:
    return [
        int(one, 16) for call in far.asked() if call.verb.name == "image.prune" for one in call.args["ids"]
    ]


def test_the_overview(ada: Caller, bob: Caller, far: FarEnd, template: str) -> None:
    make_workspace(ada.user_id, template)
    make_workspace(bob.user_id, template, "bobs", image_ref="registry.example/x:1")
    stock(
        far,
        image(1, IMAGE),
        image(2, "registry.example/x:1"),
        image(3),
        image(4, "a.example/y:1", containers=2),
    )
    database.execute_sql("UPDATE quotas SET max_image_bytes = 9000")
    found = image_usage.overview(ada)
    items = {int(item["image_id"], 16): item for item in found["items"]}
    assert (items[1]["used_by"], items[1]["templates"]) == (["lab"], [{"id": template, "name": "base"}])
    assert {number: (item["unused"], item["reclaimable_bytes"]) for number, item in items.items()} == {
        1: (False, 0), 2: (True, 600), 3: (True, 600), 4: (False, 0),
    }  # fmt: skip
    del found["items"]
    assert found == {
        "total": 4, "limit": 4, "offset": 0, "next_offset": None,
        "total_bytes": 2800, "reclaimable_bytes": 1200, "free_bytes": 5000, "unused_volumes": 0,
        "quota_bytes": 9000,
    }  # fmt: skip


def test_a_prune_removes_what_nothing_needs(ada: Caller, far: FarEnd, template: str) -> None:
    """ "Removes unused images in the caller's store"."""
    make_workspace(ada.user_id, template)
    images.remember(ada, "registry.example/x:1", "ready", digest=DIGEST)
    stock(far, image(1, IMAGE), image(2, "registry.example/x:1", "z.example/z:1"), image(3, containers=1))
    assert image_usage.prune(ada) == {
        "removed": [
            {
                "image_id": f"{2:064x}",
                "names": ["registry.example/x:1", "z.example/z:1"],
                "size_bytes": 1000,
            }
        ],
        "freed_bytes": 600,
        "removed_volumes": 0,
    }
    assert asked_to_go(far) == [2]
    assert database.execute_sql("SELECT status FROM images").fetchone() is None
    rows = database.execute_sql("SELECT action, outcome, detail_json FROM audit").fetchall()
    assert [row[:2] for row in rows] == [("image.prune", "begun"), ("image.prune", "ok")]
    assert json.loads(rows[1][2]) == {"removed": ["registry.example/x:1"], "freed_bytes": 600}


@pytest.mark.parametrize(
    ("image_ref", "stored"),
    [
        ("registry.example/x", image(1, "registry.example/x:latest")),
        (f"registry.example/x@sha256:{1:064x}", image(1)),
        ("registry.example/x@sha256:" + "e" * 64, image(1, "registry.example/x@sha256:" + "e" * 64)),
    ],
)
def test_what_a_workspace_names_stays_however_it_is_named(
    ada: Caller, far: FarEnd, template: str, image_ref: str, stored: dict[str, Any]
) -> None:
    make_workspace(ada.user_id, template, image_ref=image_ref)
    stock(far, stored)
    assert image_usage.prune(ada) == {"removed": [], "freed_bytes": 0, "removed_volumes": 0}
    assert asked_to_go(far) == []


def test_a_prune_removes_volumes_of_containers_that_are_gone(ada: Caller, far: FarEnd) -> None:
    """Not with one image that is removed; and not asked for where there are none."""
    stock(far, image(1), image(2), volumes=3)
    image_usage.remove(ada, f"{1:064x}")
    assert [call.args["volumes"] for call in far.asked() if call.verb.name == "image.prune"] == [False]
    assert image_usage.prune(ada)["removed_volumes"] == 3
    detail = json.loads(database.execute_sql("SELECT detail_json FROM audit ORDER BY id").fetchall()[-1][0])
    assert detail["removed_volumes"] == 3


def test_what_an_operation_works_with_stays(ada: Caller, far: FarEnd) -> None:
    created = make_template(ada.user_id, "made", dockerfile=DOCKERFILE)
    database.execute_sql("""UPDATE template_revisions SET images_json = '["registry.example/debian:12"]'""")
    build = image_requests.build(ada, "made")
    stock(
        far,
        image(1, build["subject"]["id"]),
        image(2, "registry.example/debian:12"),
        image(3),
        image(4, "a/b:1"),
    )
    image_usage.prune(ada)
    assert asked_to_go(far) == [4]  # the nameless one may be a step of the build
    assert created


def test_a_large_store_is_looked_at_in_parts(ada: Caller, far: FarEnd) -> None:
    stock(far, *(image(number) for number in range(1, 450)))
    assert len(image_usage.prune(ada)["removed"]) == 449
    assert [len(c.args["ids"]) for c in far.asked() if c.verb.name == "image.prune"] == [200, 200, 49]


def test_a_workspace_made_meanwhile_keeps_its_image(ada: Caller, far: FarEnd, template: str) -> None:
    stock(far, *(image(number) for number in range(1, 201)), image(201, IMAGE))
    usage = far.answers["image.prune"]

    def slowly(call: Any) -> Any:
        make_workspace(ada.user_id, template)
        return usage(call)

    far.answers["image.prune"] = slowly
    image_usage.prune(ada)
    assert 201 not in asked_to_go(far)


@pytest.mark.parametrize(
    "untrusted",
    [
        {},
        {"images": 5},
        {"images": [5], "free_bytes": 1},
        {"images": [image(1) | {"names": "x"}], "free_bytes": 1},
        {"images": [image(1) | {"size_bytes": "1"}], "free_bytes": 1},
        {"images": [image(1) | {"image_id": None}], "free_bytes": 1},
        {"images": [], "free_bytes": None},
    ],
)
def test_a_store_described_in_nonsense(ada: Caller, far: FarEnd, untrusted: Any) -> None:
    far.answers["image.usage"] = untrusted
    with pytest.raises(errors.EngineFailed):
        image_usage.overview(ada)


def test_an_odd_image_is_one_alone(ada: Caller, far: FarEnd, template: str) -> None:
    """Podman takes longer names than a template has, and a disk may report any room."""
    stored = [image(1, IMAGE), image(2, "registry.example/" + "x" * 600 + ":1")]
    far.answers["image.usage"] = {"images": stored, "total_bytes": 2800, "free_bytes": 2**64}
    found = image_usage.of_store(ada)
    assert ([one.names for one in found.images], found.free_bytes) == ([(IMAGE,), ()], 2**63 - 1)


def test_delete(ada: Caller, far: FarEnd, template: str) -> None:
    images.remember(ada, IMAGE, "ready", digest=DIGEST)
    image_usage.delete(ada, "base")
    assert far.asked()[0].args == {"image": IMAGE}
    assert database.execute_sql("SELECT status FROM images").fetchone() is None
    far.answers["image.remove"] = {"removed": False}
    with pytest.raises(errors.NotFound) as caught:
        image_usage.delete(ada, "base")
    assert caught.value.hint == "svc image pull base --wait"


def test_delete_is_refused_while_it_is_needed(ada: Caller, far: FarEnd, template: str) -> None:
    operation = image_requests.pull(ada, "base")
    with pytest.raises(errors.OperationInProgress):
        image_usage.delete(ada, "base")
    database.execute_sql("UPDATE operations SET status = 'failed' WHERE id = ?", (operation["id"],))
    make_workspace(ada.user_id, template)
    with pytest.raises(errors.Conflict) as caught:
        image_usage.delete(ada, "base")
    assert caught.value.details == {"workspaces": ["lab"]}
    assert "lab" in caught.value.message
    assert far.verbs() == []


@pytest.mark.parametrize(
    "hostile",
    [
        [image(1, image_id="../../etc/passwd")],
        [image(1, image_id="A" * 64)],
        [image(1, IMAGE), image(2, IMAGE)],
        [image(number, digest=DIGEST) for number in range(40)],
    ],
)
def test_a_store_that_no_podman_has(ada: Caller, far: FarEnd, hostile: list[dict[str, Any]]) -> None:
    """Ids go back to the helper; a thousand images of one name were a thousand times its workspaces."""
    far.answers["image.usage"] = {"images": hostile, "total_bytes": 1, "free_bytes": 1}
    for ask in (image_usage.overview, image_usage.prune):
        with pytest.raises(errors.EngineFailed):
            ask(ada)
    assert not asked_to_go(far)


# --- a reference that has moved ---------------------------------------------------------------


def moved(ada: Caller, far: FarEnd, template: str) -> None:
    """A workspace whose container is of image 1; the reference is image 2's by now."""
    make_workspace(ada.user_id, template, container_id="c" * 64, image_digest=image(1)["digest"])
    images.remember(ada, IMAGE, "ready", digest=image(2)["digest"])
    stock(far, image(1, containers=1), image(2, IMAGE))


def test_a_workspace_uses_what_its_container_was_made_from(ada: Caller, far: FarEnd, template: str) -> None:
    moved(ada, far, template)
    items = {int(item["image_id"], 16): item for item in image_usage.overview(ada)["items"]}
    uses = {number: (item["used_by"], item["newer_for"], item["unused"]) for number, item in items.items()}
    assert uses == {1: (["lab"], [], False), 2: ([], ["lab"], False)}
    listed = image_records.page_of(ada, Page())["items"]
    assert [(item["ref"], item["used_by"]) for item in listed] == [(IMAGE, [])]


def test_what_an_upgrade_takes_is_not_pruned(ada: Caller, far: FarEnd, template: str) -> None:
    moved(ada, far, template)
    assert image_usage.prune(ada)["removed"] == []


def test_no_workspace_keeps_an_image_that_only_its_upgrade_takes(
    ada: Caller, far: FarEnd, template: str
) -> None:
    moved(ada, far, template)
    with pytest.raises(errors.Conflict) as caught:
        image_usage.remove(ada, image(2)["image_id"])
    assert caught.value.hint == "svc image delete base"
    image_usage.delete(ada, "base")
    with pytest.raises(errors.Conflict) as caught:
        image_usage.remove(ada, image(1)["image_id"])
    assert (caught.value.hint, caught.value.details) == ("svc ws delete lab", {"workspaces": ["lab"]})


def test_a_template_of_a_reference_with_a_digest_is_named_once(ada: Caller, far: FarEnd) -> None:
    digest = image(1)["digest"]
    reference = f"registry.example/pinned:1@{digest}"
    pinned = make_template(ada.user_id, "pinned", image_ref=reference)
    make_workspace(ada.user_id, pinned, image_ref=reference)
    stock(far, image(1, f"registry.example/pinned@{digest}", "registry.example/pinned:1"))
    (item,) = image_usage.overview(ada)["items"]
    assert (item["templates"], item["used_by"]) == ([{"id": pinned, "name": "pinned"}], ["lab"])


def test_what_a_failed_build_left_is_named_as_such(ada: Caller, far: FarEnd) -> None:
    stock(far, image(1, left_by_build=True), image(2), image(3, left_by_build="nonsense"))
    items = {int(item["image_id"], 16): item["left_by_build"] for item in image_usage.overview(ada)["items"]}
    assert items == {1: True, 2: False, 3: False}


def test_a_layer_that_images_share_counts_once_in_what_they_take(
    ada: Caller, far: FarEnd, template: str
) -> None:
    """The number of the owner and of administrators is the one that the quota counts."""
    for number in (1, 2):
        images.remember(ada, f"registry.example/x:{number}", "ready", digest=DIGEST, size=1000)
    stock(far, image(1, "registry.example/x:1"), image(2, "registry.example/x:2"))

    def told() -> tuple[int, int]:
        (account,) = account_usage.page_of(Page(q=ada.name))["items"]
        return quota_usage.me(ada)["image_bytes"], account["image_bytes"]

    assert told() == (2000, 2000), "before the first look"
    image_usage.overview(ada)
    assert told() == (1600, 1600)
    image_usage.prune(ada)
    assert told() == (0, 0)


# --- one image -----------------------------------------------------------------------------

SPARE = "f" * 12 + "0" * 52


def test_one_image_goes_by_its_id_or_the_beginning_of_it(ada: Caller, far: FarEnd, template: str) -> None:
    images.remember(ada, "registry.example/x:1", "ready", digest=DIGEST)
    make_workspace(ada.user_id, template)
    for ref in (SPARE, SPARE[:12]):
        stock(far, image(1, IMAGE), image(2, "registry.example/x:1", image_id=SPARE))
        image_usage.remove(ada, ref)
        assert [int(SPARE, 16)] == asked_to_go(far)[-1:]
    assert not database.execute_sql("SELECT 1 FROM images WHERE image_ref LIKE '%/x:1'").fetchone()
    rows = database.execute_sql("SELECT outcome, target FROM audit WHERE action = 'image.remove'").fetchall()
    assert rows == [("begun", "registry.example/x:1"), ("ok", "registry.example/x:1")] * 2


@pytest.mark.parametrize(
    "ref", ["", "f" * 11, SPARE[:13] + "1", "F" * 12, "0" * 12, "../x", "sha256:" + SPARE, "f" * 65]
)
def test_an_id_that_names_no_single_image(ada: Caller, far: FarEnd, ref: str) -> None:
    stock(far, image(1, "a.example/a:1"), image(2, "a.example/b:1"), image(3, image_id=SPARE))
    with pytest.raises(errors.NotFound) as refused:
        image_usage.remove(ada, ref)
    assert refused.value.hint == "svc image overview"
    assert not asked_to_go(far)


def test_what_keeps_an_image_is_said_with_the_command(ada: Caller, far: FarEnd, template: str) -> None:
    def refusal(**changes: Any) -> errors.SvcError:
        stock(far, image(1, **{"image_id": SPARE, **changes}))
        with pytest.raises(errors.SvcError) as refused:
            image_usage.remove(ada, SPARE)
        assert not asked_to_go(far)
        return refused.value

    ours = {"names": [IMAGE]}
    of_template = refusal(**ours)
    assert (of_template.message, of_template.hint) == (
        f"{IMAGE} is the image of the template base", "svc image delete base",
    )  # fmt: skip
    with_containers = refusal(containers=2)
    assert with_containers.hint == f"podman ps --all --filter ancestor={SPARE[:12]}"
    assert with_containers.message == "ffffffffffff is needed by 2 containers made from it"
    make_workspace(ada.user_id, template)
    needed = refusal(**ours)
    assert (needed.message, needed.hint) == (f"{IMAGE} is needed by lab", "svc ws delete lab")
    database.execute_sql("DELETE FROM workspaces")
    image_requests.pull(ada, "base")
    busy = refusal(**ours)
    assert isinstance(busy, errors.OperationInProgress)
    assert busy.hint == "svc operation list --open"


def test_one_that_comes_into_use_meanwhile(ada: Caller, far: FarEnd) -> None:
    stock(far, image(1, image_id=SPARE))
    far.answers["image.prune"] = {"removed": [], "kept": [SPARE]}
    with pytest.raises(errors.Conflict, match="has come into use"):
        image_usage.remove(ada, SPARE)
