"""Runs: pulls, builds and set-ups, repeated after a restart, ended by a cancellation."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from unit.configuring import configured
from unit.serving import IMAGE, MISSING, FarEnd, caller_of, make_template

from svc.db import condition, reserve
from svc.db.connect import database
from svc.domain import operations
from svc.domain.images import requests as image_requests
from svc.domain.principal import Caller
from svc.domain.workspaces import workspaces
from svc.errors import DatabaseDamaged, NameTaken, OperationInProgress
from svc.worker import runs
from svc.worker.runs import Runner

DOCKERFILE = "FROM registry.example/debian:12\nRUN true\n"


@pytest.fixture
def far(owner: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FarEnd]:
    policy = tmp_path / "registries.json"
    policy.write_text('{"registries": [{"host": "registry.example", "path_prefix": "", "insecure": false}]}')
    configured(registries_path=str(policy))
    end = FarEnd("worker")
    end.answers["image.inspect"] = lambda call: (
        {"present": True, "digest": None, "size_bytes": 1}
        if {"image.build", "image.pull"} & set(end.verbs())
        else MISSING
    )
    yield end
    end.close()


@pytest.fixture
def ada(owner: int, far: FarEnd) -> Caller:
    class Ada:
        id, name, uid, superuser = owner, "ada", 2001, False

    return caller_of(Ada, far)


def run_all(far: FarEnd) -> list[dict[str, Any]]:
    """Run what is queued to its end; the operations' rows."""
    Runner(far.helper, lambda: None).dispatch()
    for _ in range(500):
        if not database.execute_sql("SELECT 1 FROM operations WHERE finished_at IS NULL").fetchone():
            break
        time.sleep(0.01)
    rows = database.execute_sql("SELECT id FROM operations ORDER BY created_at").fetchall()
    return [row[0] for row in rows]


def ended(caller: Caller, operation_id: str) -> dict[str, Any]:
    return operations.get(caller, operation_id)


def test_a_build(ada: Caller, far: FarEnd) -> None:
    make_template(ada.user_id, "made", dockerfile=DOCKERFILE)
    record = image_requests.build(ada, "made")
    run_all(far)
    after = ended(ada, record["id"])
    assert (after["status"], after["phase"], after["result"]["image_ref"]) == (
        "succeeded",
        "building",
        record["subject"]["id"],
    )


def test_a_step_that_fails_points_to_the_log(ada: Caller, far: FarEnd) -> None:
    make_template(ada.user_id, "made", dockerfile=DOCKERFILE)
    far.answers["image.build"] = "build"
    record = image_requests.build(ada, "made")
    run_all(far)
    error = ended(ada, record["id"])["error"]
    assert (error["code"], error["message"]) == ("build_failed", "said build")
    assert error["hint"] == f"svc operation log {record['id']}"
    assert operations.log(ada, record["id"])["lines"][-1]["text"] == "said build"


def test_a_run_that_a_restart_cut_is_repeated(ada: Caller, far: FarEnd) -> None:
    """ "an interrupted pull or build is resumed"."""
    make_template(ada.user_id, "made", dockerfile=DOCKERFILE)
    record = image_requests.build(ada, "made")
    operations.claim({}, 2)  # a worker took it and died
    operations.recover()
    run_all(far)
    assert ended(ada, record["id"])["status"] == "succeeded"


@pytest.mark.parametrize("dockerfile", [None, DOCKERFILE])
def test_a_set_up_gets_the_image_and_makes_the_workspace(
    ada: Caller, far: FarEnd, dockerfile: str | None
) -> None:
    """Downloads or builds a missing image and creates the workspace as one operation."""
    make_template(ada.user_id, "base", **({"dockerfile": dockerfile} if dockerfile else {}))
    record = workspaces.set_up(ada, {"name": "lab", "template": "base"})
    run_all(far)
    assert ended(ada, record["id"])["status"] == "succeeded", ended(ada, record["id"])
    assert ("image.build" if dockerfile else "image.pull") in far.verbs()
    assert workspaces.get(ada, "lab")["image_status"] == "ready"


def test_the_same_set_up_again_names_the_first(ada: Caller, far: FarEnd) -> None:
    """So that a client joins it; another one of that name is refused."""
    make_template(ada.user_id, "base")
    request = {"name": "lab", "template": "base", "resources": {"cpu_limit": 1.5}}
    record = workspaces.set_up(ada, dict(request))
    with pytest.raises(OperationInProgress) as refused:
        workspaces.set_up(ada, dict(request))
    assert refused.value.details["operation"]["id"] == record["id"]
    assert refused.value.hint == f"svc operation watch {record['id']}"
    assert refused.value.message == "a setup of lab is already in progress"
    with pytest.raises(NameTaken):
        workspaces.set_up(ada, {"name": "lab", "template": "base"})
    run_all(far)
    with pytest.raises(NameTaken):
        workspaces.set_up(ada, dict(request))


def test_a_set_up_builds_a_recipe_whose_download_failed(ada: Caller, far: FarEnd) -> None:
    make_template(None, "recipe")
    database.execute_sql("UPDATE template_revisions SET dockerfile = ?", (DOCKERFILE,))
    far.answers["image.pull"] = "registry"
    far.answers["image.inspect"] = lambda call: (
        {"present": True, "digest": None, "size_bytes": 1} if "image.build" in far.verbs() else MISSING
    )
    record = workspaces.set_up(ada, {"name": "lab", "template": "recipe"})
    run_all(far)
    assert ended(ada, record["id"])["status"] == "succeeded", ended(ada, record["id"])
    build = next(call for call in far.asked() if call.verb.name == "image.build")
    assert build.args["image"] == IMAGE
    texts = [line["text"] for line in operations.log(ada, record["id"])["lines"]]
    assert any("the download failed (said registry)" in text for text in texts)


def test_a_set_up_copies_the_image_for_run_as(ada: Caller, far: FarEnd) -> None:
    make_template(ada.user_id, "base", run_as={"uid": 1000, "gid": 100})
    far.answers["image.map"] = lambda call: {
        "copy_bytes": 0 if any(one.args.get("copy") for one in far.asked()[:-1]) else 7,
        "copied": call.args["copy"],
    }
    record = workspaces.set_up(ada, {"name": "lab", "template": "base"})
    run_all(far)
    assert ended(ada, record["id"])["status"] == "succeeded", ended(ada, record["id"])
    assert [call.args["copy"] for call in far.asked() if call.verb.name == "image.map"] == [
        False,
        True,
        False,
        False,
    ]
    texts = [line["text"] for line in operations.log(ada, record["id"])["lines"]]
    assert texts[-2:] == ["copying", "creating"]


def test_a_cancelled_copy_leaves_no_workspace(ada: Caller, far: FarEnd) -> None:
    make_template(ada.user_id, "base", run_as={"uid": 1000, "gid": 100})
    far.answers["image.map"] = lambda call: (
        "cancelled" if call.args["copy"] else {"copy_bytes": 7, "copied": False}
    )
    record = workspaces.set_up(ada, {"name": "lab", "template": "base"})
    run_all(far)
    assert ended(ada, record["id"])["status"] in ("failed", "cancelled")
    assert database.execute_sql("SELECT count(*) FROM workspaces").fetchone() == (0,)


def test_a_set_up_fails_as_its_pull_does(ada: Caller, far: FarEnd) -> None:
    make_template(ada.user_id, "base")
    far.answers |= {"image.pull": "registry", "image.inspect": MISSING}
    record = workspaces.set_up(ada, {"name": "lab", "template": "base"})
    run_all(far)
    assert ended(ada, record["id"])["error"]["code"] == "engine_failed"


@pytest.mark.parametrize(
    ("dockerfile", "code", "hint"),
    [
        (None, "registry_timeout", "svc image pull base --wait"),
        (None, "registry_login_required", "podman login registry.example"),
        (None, "subids_missing", "sudo svc admin create-user ada"),
        (DOCKERFILE, "registry_busy", "svc image build base --wait"),
        (DOCKERFILE, "registry_login_required", "podman login registry.example"),
    ],
)
def test_a_failed_operation_names_the_next_command(
    ada: Caller, far: FarEnd, dockerfile: str | None, code: str, hint: str
) -> None:
    """With what the engine has printed, in the owner's own record, and in no audit row."""
    template = make_template(ada.user_id, "base", **({"dockerfile": dockerfile} if dockerfile else {}))
    verb = image_requests.build if dockerfile else image_requests.pull
    far.answers |= {"image.pull": (code, "theirs\n"), "image.build": (code, "theirs\n")}
    far.answers["image.inspect"] = MISSING
    record = verb(ada, template)
    run_all(far)
    error = ended(ada, record["id"])["error"]
    assert (error["code"], error["hint"], error["details"]) == (code, hint, {"engine": "theirs"})
    assert "theirs" not in str(database.execute_sql("SELECT * FROM audit").fetchall())


def test_a_set_up_of_an_earlier_release_goes_on(ada: Caller, far: FarEnd) -> None:
    template = make_template(ada.user_id, "base")
    request = {"image_ref": IMAGE, "workspace": {"name": "lab", "template": template}}
    record = operations.enqueue(ada, "setup", "workspace", "ws-00000001", request)
    run_all(far)
    assert ended(ada, record["id"])["status"] == "succeeded", ended(ada, record["id"])


def test_a_broken_way_to_podman_is_tried_again(
    ada: Caller, far: FarEnd, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_template(ada.user_id, "base")
    tries: list[int] = []

    def now_and_then(_call: Any) -> Any:
        tries.append(1)
        return {} if len(tries) > 2 else None

    monkeypatch.setattr(runs, "RETRY_S", 0.0)
    far.answers["image.pull"] = now_and_then
    record = image_requests.pull(ada, "base")
    run_all_now(far)
    assert (ended(ada, record["id"])["status"], len(tries)) == ("succeeded", 3)


def run_all_now(far: FarEnd) -> None:
    runner = Runner(far.helper, lambda: None)
    taken = operations.claim({}, 2)
    assert taken
    runner.owners[taken["owner_id"]] += 1
    operations.succeed(taken["id"], runner._attempts(taken))


def test_whoever_has_none_finds_a_place_where_it_is_crowded(ada: Caller, far: FarEnd) -> None:
    """Operations that never end hold places; each owner's second one only while there are many left."""
    for number in range(2):
        operations.enqueue(ada, "pull", "image", f"registry.example/a:{number}", {})
    runner = Runner(far.helper, lambda: None)
    runner.owners.update({ada.user_id: 1} | {-other: 1 for other in range(1, runs.CROWDED)})
    runner.dispatch()
    assert runner.owners[ada.user_id] == 1
    assert {row[0] for row in database.execute_sql("SELECT status FROM operations")} == {"queued"}


def wait_for_nobody(runner: Runner) -> None:
    for _ in range(3000):
        if not runner.owners.total():
            return
        time.sleep(0.01)
    raise AssertionError("a run goes on")


def test_on_a_full_disk_an_operation_ends_with_the_reserve(
    ada: Caller, far: FarEnd, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing but what is entitled has room: the last line of its log is no reason to lose the end."""
    make_template(ada.user_id, "base")
    record = image_requests.pull(ada, "base")

    def fill(_call: Any) -> Any:
        full = SimpleNamespace(f_bavail=0, f_frsize=1)
        monkeypatch.setattr(reserve.os, "statvfs", lambda _path: full)
        return "registry"

    far.answers["image.pull"] = fill
    run_all(far)
    after = ended(ada, record["id"])
    assert (after["status"], after["error"]["code"]) == ("failed", "storage_full")
    assert operations.log(ada, record["id"])["lines"][-1]["text"] == after["error"]["message"]


def test_an_end_that_cannot_be_written_is_written_later(ada: Caller, far: FarEnd, db: str) -> None:
    """Nobody runs it any more, so that it would be "running" until the worker's next start."""
    make_template(ada.user_id, "base")
    record = image_requests.pull(ada, "base")

    def damage(_call: Any) -> Any:
        condition.note(db, DatabaseDamaged("not now"))
        return "registry"

    far.answers["image.pull"] = damage
    runner = Runner(far.helper, lambda: None)
    runner.dispatch()
    wait_for_nobody(runner)
    with pytest.raises(DatabaseDamaged):
        runner.dispatch()
    assert ended(ada, record["id"])["status"] == "running"
    condition.clear(db, DatabaseDamaged.code)
    runner.dispatch()
    assert ended(ada, record["id"])["status"] == "failed"
    assert not runner.unwritten


def test_a_success_that_cannot_be_written_stays_one(ada: Caller, far: FarEnd, db: str) -> None:
    make_template(ada.user_id, "base")
    record = image_requests.pull(ada, "base")
    runner = Runner(far.helper, lambda: None)
    taken = operations.claim({}, 2)
    assert taken
    runner.unwritten.append(("ada", runner._run_to_end(taken)))
    condition.note(db, DatabaseDamaged("not now"))
    for _ in range(2):
        with pytest.raises(DatabaseDamaged):
            runner.dispatch()
    condition.clear(db, DatabaseDamaged.code)
    runner.dispatch()
    assert ended(ada, record["id"])["status"] == "succeeded"
    found = database.execute_sql("SELECT outcome FROM audit WHERE action = 'image.pull' ORDER BY rowid")
    assert [row[0] for row in found] == ["begun", "ok"]
