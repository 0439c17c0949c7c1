"""Images that do not run as root: whom they run as, and what a person is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from unit.serving import DIGEST, IMAGE, FarEnd

from svc import errors
from svc.db.connect import database
from svc.domain import image_users
from svc.domain.images import images
from svc.domain.images import records as image_records
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates import templates
from svc.domain.workspaces import workspaces

JOVYAN = {"name": "jovyan", "uid": 1000, "gid": 100}
MESSAGE = (
    "the programs of this image run as jovyan (uid 1000, gid 100) and cannot open /work,"
    " which is that of root inside: the template has no run_as"
)
EDIT, RUN_AS = "svc template edit ", " --run-as 1000:100"


def has_user(far: FarEnd, user: Any) -> None:
    """The image in the store runs as this user."""
    far.answers["image.inspect"] = {"present": True, "digest": DIGEST, "size_bytes": 1000, "user": user}


@pytest.fixture
def own(ada: Caller) -> str:
    """A template of ada's own, enabled."""
    record = templates.create(ada, {"name": "mine", "source": {"type": "registry", "image_ref": IMAGE}})
    return str(record["id"])


def test_a_workspace_and_an_image_say_so(ada: Caller, far: FarEnd, own: str) -> None:
    has_user(far, JOVYAN)
    record = workspaces.create(ada, {"template": own, "name": "lab"})
    hint = f"{EDIT}mine{RUN_AS} && svc ws upgrade lab"
    assert record["warnings"] == [{"code": "image_user", "message": MESSAGE, "hint": hint}]
    found = images.of_template(ada, own)["warnings"]
    assert found == [{"code": "image_user", "message": MESSAGE, "hint": f"{EDIT}mine{RUN_AS}"}]
    assert image_records.warnings(ada, IMAGE, own) == found
    findings = templates.get(ada, own)["findings"]
    told = [one["message"] for one in findings if one["code"] == "image_user"]
    assert told == [f"{MESSAGE}; to set it: {EDIT}mine{RUN_AS}"]


def test_with_run_as_nothing_is_said(ada: Caller, far: FarEnd, own: str) -> None:
    has_user(far, JOVYAN)
    workspaces.create(ada, {"template": own, "name": "old"})
    templates.edit(ada, own, {"run_as": {"uid": 1000, "gid": 100}})
    assert workspaces.create(ada, {"template": own, "name": "lab"})["warnings"] == []
    assert images.of_template(ada, own)["warnings"] == []
    assert "image_user" not in {one["code"] for one in templates.get(ada, own)["findings"]}
    assert len(workspaces.get(ada, "old")["warnings"]) == 1  # made from the revision without it


@pytest.mark.parametrize("user", [None, {"name": "toor", "uid": 0, "gid": 0}])
def test_of_root_nothing_is_said(ada: Caller, far: FarEnd, own: str, user: Any) -> None:
    has_user(far, user)
    assert workspaces.create(ada, {"template": own, "name": "lab"})["warnings"] == []


def test_anothers_template_is_cloned_first(ada: Caller, far: FarEnd, template: str) -> None:
    has_user(far, JOVYAN)
    database.execute_sql("UPDATE templates SET owner_id = NULL")
    (warning,) = workspaces.create(ada, {"template": template, "name": "lab"})["warnings"]
    assert warning["hint"] == f"svc template clone base --name base-own && {EDIT}base-own{RUN_AS}"


def test_unknown_numbers_are_looked_up(ada: Caller, far: FarEnd, own: str) -> None:
    has_user(far, {"name": "ghost", "uid": None, "gid": None})
    (warning,) = workspaces.create(ada, {"template": own, "name": "lab"})["warnings"]
    assert "run as ghost and cannot" in warning["message"]
    assert warning["hint"] == "svc ws start lab && svc ws exec lab -- id"
    (warning,) = images.of_template(ada, own)["warnings"]
    begin = "svc ws setup --template mine --name mine && "
    assert warning["hint"] == begin + "svc ws start mine && svc ws exec mine -- id"


@pytest.mark.parametrize(
    ("user", "says"),
    [
        (
            {"name": "ghost", "uid": None, "gid": None, "fault": "missing"},
            "this image runs as ghost, whom its /etc/passwd or /etc/group does not have",
        ),
        (
            {"name": None, "uid": 1000650000, "gid": 0, "fault": "range"},
            "this image runs as a user of an id beyond 65535, which no account has",
        ),
    ],
)
def test_a_user_as_whom_no_container_runs(
    ada: Caller, far: FarEnd, own: str, user: dict[str, Any], says: str
) -> None:
    """No start is prescribed to look the numbers up: it could not work."""
    has_user(far, user)
    (warning,) = workspaces.create(ada, {"template": own, "name": "lab"})["warnings"]
    assert warning["message"] == f"{says}; a workspace of it cannot start while the template has no run_as"
    assert warning["hint"] == "svc template get mine"
    has_user(far, user | {"fault": ["nonsense"]})
    (warning,) = images.of_template(ada, own)["warnings"]
    assert "cannot start" not in warning["message"]


def test_a_list_of_the_store_does_not_forget_it(ada: Caller, far: FarEnd, own: str) -> None:
    has_user(far, JOVYAN)
    workspaces.create(ada, {"template": own, "name": "lab"})
    row = {"names": [image_records.whole(IMAGE)], "digest": DIGEST, "size_bytes": 1000}
    far.answers["image.list"] = {"images": [row]}
    images._refresh(ada)
    assert len(workspaces.get(ada, "lab")["warnings"]) == 1
    far.answers["image.list"] = {"images": [row | {"digest": "sha256:" + "e" * 64}]}
    images._refresh(ada)
    assert workspaces.get(ada, "lab")["warnings"] == []


@pytest.mark.parametrize("user", ["root", [], {"name": 7}, {"name": "a" * 33}, {"name": "a", "uid": "0"}])
def test_a_hostile_user(user: Any) -> None:
    with pytest.raises(errors.EngineFailed):
        image_users.of({"user": user})


@pytest.mark.parametrize("name", ["a b", "x'; rm -rf /", "\x1b[2J", "-rf", ""])
def test_a_hostile_name_is_left_out(name: str) -> None:
    kept = json.loads(image_users.of({"user": JOVYAN | {"name": name}}) or "")
    assert kept == {"name": None, "uid": 1000, "gid": 100}


@pytest.mark.parametrize("uid", [10**6, -1, 2**62])
def test_numbers_that_no_template_can_have(uid: int) -> None:
    kept = json.loads(image_users.of({"user": {"name": "far", "uid": uid, "gid": 5}}) or "")
    assert kept == {"name": "far", "uid": None, "gid": None}


FOREIGN = {
    "code": "wrong_architecture",
    "message": "this image is for linux/arm64, which this host does not execute: its programs may not start",
    "hint": "svc template get mine",
}


@pytest.mark.parametrize("user", [None, JOVYAN])
def test_an_image_for_another_platform(ada: Caller, far: FarEnd, own: str, user: Any) -> None:
    """A registry has one without a list of platforms: its pull succeeds, and says so."""
    has_user(far, user)
    far.answers["image.inspect"]["platform"] = "linux/arm64"
    record = workspaces.create(ada, {"template": own, "name": "lab"})
    codes = ["image_user"] * (user is not None) + ["wrong_architecture"]
    assert [one["code"] for one in record["warnings"]] == codes
    assert record["warnings"][-1] == FOREIGN
    assert image_records.warnings(ada, IMAGE, own)[-1] == FOREIGN
    image = {"names": [IMAGE], "image_id": "x", "digest": DIGEST, "size_bytes": 1000}
    far.answers["image.list"] = {"images": [image]}
    (listed,) = images.page_of(ada, Page())["items"]  # which says nothing of platforms
    assert listed["warnings"][-1] == FOREIGN
    has_user(far, user)  # pulled again, for this host
    assert "wrong_architecture" not in {one["code"] for one in images.of_template(ada, own)["warnings"]}


@pytest.mark.parametrize("platform", ["", "linux/arm64'; --", "linux"])
def test_a_platform_that_is_none_is_not_kept(platform: str) -> None:
    assert image_users.of({"user": None, "platform": platform}) is None
