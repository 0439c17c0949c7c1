"""Upgrades: what stays, what changes, who is asked, and what an interruption leaves."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from unit.serving import CONTAINER, IMAGE, FarEnd, make_workspace

from svc import errors
from svc.db.connect import close_database, database, write
from svc.domain import versions
from svc.domain.images import images
from svc.domain.principal import Caller
from svc.domain.templates import templates
from svc.domain.workspaces import reconcile_rules, states, transitions, upgrades, workspaces
from svc.domain.workspaces.reconcile_rules import Seen
from svc.host.ids import now

NEW = "registry.example/team/base:2"
NEXT = "e" * 64
OLD, NEWER = (f"sha256:{digit * 64}" for digit in "12")
IDLE = {"exists": True, "status": "stopped"}
ANOTHER_IMAGE = {"source": {"image_ref": NEW}}

Edit = Callable[..., int]


@pytest.fixture
def edit(ada: Caller, template: str) -> Edit:
    """Edit the template and enable it; returns its revision."""

    def edited(**patch: Any) -> int:
        templates.edit(ada, template, patch)
        with write():
            database.execute_sql("UPDATE templates SET status = 'enabled'")
        return int(templates.get(ada, template)["revision"])

    return edited


@pytest.fixture
def lab(ada: Caller, far: FarEnd, template: str) -> str:
    """A stopped workspace of ada's with a container; its id."""
    far.answers["ctr.inspect"] = IDLE
    return make_workspace(ada.user_id, template, container_id=CONTAINER, memory_bytes=2**30)


def row(lab: str) -> states.Workspace:
    found = states.of_id(lab)
    assert found is not None
    return found


def parts(plan: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(change["part"], change["name"]) for change in plan["changes"]]


# --- what can stay ----------------------------------------------------------------------


def test_what_a_start_can_carry_keeps_the_container(ada: Caller, far: FarEnd, edit: Edit, lab: str) -> None:
    newest = edit(
        env=[{"name": "A", "value": "1"}, {"name": "KEY", "value": "s3cret", "secret": True}],
        defaults={"pids_limit": 100, "env": [{"name": "B", "value": "2"}]},
        limits={"memory_bytes": 2**29},
        ports=[{"name": "web", "container_port": 80, "access": "owner"}],
        launchers=[
            {"name": "lab", "title": "", "command": ["x"], "env": [], "port": "web", "autostart": True}
        ],
        idle={"action": "stop", "after_minutes": 9},
    )
    plan = upgrades.preview(ada, "lab")
    assert (plan["before"], plan["after"], plan["container"]) == (1, newest, "kept")
    assert parts(plan) == [
        ("env", "A"), ("env", "KEY"), ("env", "B"), ("resources", "memory_bytes"),
        ("resources", "pids_limit"), ("ports", "web"), ("launchers", None), ("idle", None),
    ]  # fmt: skip
    assert "s3cret" not in json.dumps(plan)
    record = upgrades.upgrade(ada, "lab")
    assert (record["template"]["revision"], record["template"]["newer_revision"]) == (newest, None)
    assert (record["resources"]["memory_bytes"], record["resources"]["pids_limit"]) == (2**29, 100)
    assert record["env"] == [{"name": "B", "value": "2"}]
    assert [port["name"] for port in record["ports"]] == ["web"]
    assert (row(lab).container_id, row(lab).stale, record["status"]) == (CONTAINER, 0, "stopped")
    assert far.verbs() == ["ctr.inspect"]
    detail = json.loads(
        database.execute_sql("SELECT detail_json FROM audit ORDER BY id DESC LIMIT 1").fetchone()[0]
    )
    assert (detail["after"], detail["container"]) == (newest, "kept")
    assert "ports" in detail["changes"]
    assert upgrades.upgrade(ada, "lab")["template"]["revision"] == newest  # once more changes nothing


def test_one_without_a_container_has_nothing_to_lose(
    ada: Caller, far: FarEnd, edit: Edit, template: str
) -> None:
    make_workspace(ada.user_id, template)
    edit(**ANOTHER_IMAGE)
    assert upgrades.preview(ada, "lab")["container"] == "none"
    record = upgrades.upgrade(ada, "lab")
    assert (record["image"]["ref"], far.verbs()) == (NEW, [])


# --- an image that was built or pulled again ---------------------------------------------


def of_image(ada: Caller, lab: str, stored: str, reference: str = IMAGE) -> states.Workspace:
    """The workspace, made from one image of this reference, of which the store has another."""
    sql = "UPDATE workspaces SET image_ref = ?, image_digest = ? WHERE id = ?"
    with write():
        database.execute_sql(sql, (reference, OLD, lab))
    images.remember(ada, reference, "ready", digest=stored)
    return row(lab)


def test_a_newer_image_of_the_same_reference_is_an_upgrade(ada: Caller, far: FarEnd, lab: str) -> None:
    of_image(ada, lab, OLD)
    assert workspaces.get(ada, "lab")["newer_image"] is False
    of_image(ada, lab, NEWER)
    assert workspaces.get(ada, "lab")["newer_image"] is True
    plan = upgrades.preview(ada, "lab")
    assert (plan["before"], plan["after"], plan["container"]) == (1, 1, "replaced")
    assert plan["changes"] == [
        {
            "part": "image", "name": None, "before": f"{IMAGE}@{OLD}", "after": f"{IMAGE}@{NEWER}",
            "needs_container": True,
        }
    ]  # fmt: skip
    with pytest.raises(errors.ReplacementRequired) as caught:
        upgrades.upgrade(ada, "lab", 1)
    assert caught.value.message.startswith("its image was built or pulled again: lab needs a new container")
    assert (caught.value.details, caught.value.hint) == ({"parts": ["image"]}, "svc ws upgrade lab")
    far.answers["image.inspect"] = {"present": True, "digest": NEWER, "size_bytes": 1, "user": None}
    far.answers["ctr.replace"] = {"replaced": True}
    record = upgrades.upgrade(ada, "lab", 1, replace=True)
    assert (record["image"], record["newer_image"]) == ({"ref": IMAGE, "digest": NEWER}, False)
    assert row(lab).container_id == NEXT
    far.calls.clear()
    assert upgrades.upgrade(ada, "lab", 1, replace=True)["image"]["digest"] == NEWER
    assert far.verbs() == []


@pytest.mark.parametrize(
    ("columns", "status", "reference"),
    [
        ({"container_id": None}, "ready", IMAGE),  # its next start takes the newest
        ({"image_digest": None}, "ready", IMAGE),  # of an earlier release
        ({}, "building", IMAGE),
        ({}, "ready", f"{IMAGE}@{OLD}"),  # one and no other
    ],
)
def test_what_is_no_newer_image(
    ada: Caller, lab: str, columns: dict[str, Any], status: str, reference: str
) -> None:
    of_image(ada, lab, NEWER, reference)
    images.remember(ada, reference, status, digest=NEWER if status == "ready" else None)
    for name, value in columns.items():
        with write():
            database.execute_sql(f"UPDATE workspaces SET {name} = ? WHERE id = ?", (value, lab))
    assert workspaces.get(ada, "lab")["newer_image"] is False
    if reference == IMAGE:
        assert upgrades.preview(ada, "lab")["changes"] == []


# --- what cannot ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patch", "part"),
    [
        (ANOTHER_IMAGE, "image"),
        ({"command": ["sleep", "1"]}, "command"),
        ({"run_as": {"uid": 7, "gid": 7}}, "run_as"),
    ],
)
def test_a_new_container_must_be_asked_for(
    ada: Caller, far: FarEnd, edit: Edit, lab: str, patch: dict[str, Any], part: str
) -> None:
    newest = edit(**patch)
    assert upgrades.preview(ada, "lab")["container"] == "replaced"
    before = workspaces.get(ada, "lab")
    with pytest.raises(errors.ReplacementRequired) as caught:
        upgrades.upgrade(ada, "lab")
    assert caught.value.details == {"parts": [part]}
    assert "what was installed in the present one is lost" in caught.value.message
    kept = workspaces.get(ada, "lab")
    assert kept | {"status_since": "", "updated_at": ""} == before | {"status_since": "", "updated_at": ""}
    far.calls.clear()
    far.answers["ctr.replace"] = {"replaced": True}
    record = upgrades.upgrade(ada, "lab", newest, replace=True)
    assert (record["status"], record["status_reason"], record["template"]["revision"]) == (
        "stopped",
        None,
        newest,
    )
    copied = ["image.map"] if "run_as" in patch else []  # first of a stopped one: it may take two hours
    assert far.verbs() == ["ctr.inspect", *copied, "image.inspect", *copied, "ctr.prepare", "ctr.replace"]
    assert far.calls[-1].args == {"id": lab, "container_id": NEXT}
    assert (row(lab).container_id, row(lab).stale) == (NEXT, 0)


def test_the_new_container_has_the_new_values(ada: Caller, far: FarEnd, edit: Edit, lab: str) -> None:
    edit(command=["sleep", "1"], env=[{"name": "A", "value": "1"}], limits={"memory_bytes": 2**23})
    upgrades.upgrade(ada, "lab", replace=True)
    [prepared] = [call.args for call in far.asked() if call.verb.name == "ctr.prepare"]
    assert (prepared["command"], prepared["env"], prepared["resources"]["memory_bytes"]) == (
        ["sleep", "1"], {"A": "1"}, 2**23,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({"image.inspect": {"present": False}}, errors.ImageMissing),
        ({"ctr.prepare": "image_missing"}, errors.ImageMissing),
        ({"ctr.prepare": "storage_full"}, errors.SvcError),
        ({"ctr.prepare": "timeout"}, errors.EngineTimeout),
        ({"ctr.prepare": None}, errors.EngineUnavailable),
        ({"ctr.prepare": {"container_id": 7}}, errors.EngineFailed),
    ],
)
def test_a_failure_before_the_commit_leaves_the_old_one(
    ada: Caller, far: FarEnd, edit: Edit, lab: str, answers: dict[str, Any], error: type[Exception]
) -> None:
    edit(**ANOTHER_IMAGE)
    far.answers |= answers
    before = row(lab)
    with pytest.raises(error):
        upgrades.upgrade(ada, "lab", replace=True)
    assert row(lab)._replace(status_since="") == before._replace(status_since="")
    assert "ctr.replace" not in far.verbs()


@pytest.mark.parametrize("answer", [None, "failed", "timeout", {"replaced": False}])
def test_a_failure_after_it_leaves_the_new_one(
    ada: Caller, far: FarEnd, edit: Edit, lab: str, answer: Any
) -> None:
    """The next start puts the prepared container in its place; then nothing is created or removed."""
    edit(**ANOTHER_IMAGE)
    far.answers["ctr.replace"] = answer
    record = upgrades.upgrade(ada, "lab", replace=True)
    assert (record["status"], record["image"]["ref"]) == ("stopped", NEW)
    assert (row(lab).container_id, row(lab).stale) == (NEXT, 1)
    far.calls.clear()
    far.answers |= {"ctr.replace": {"replaced": True}, "ctr.inspect": IDLE}
    assert workspaces.start(ada, "lab")["status"] == "running"
    assert far.verbs()[:2] == ["ctr.replace", "ctr.start"]
    assert row(lab).stale == 0


def test_the_prepared_one_may_be_gone(ada: Caller, far: FarEnd, edit: Edit, lab: str) -> None:
    edit(**ANOTHER_IMAGE)
    upgrades.upgrade(ada, "lab", replace=True)
    far.calls.clear()
    assert workspaces.start(ada, "lab")["status"] == "running"
    assert far.verbs()[:5] == ["ctr.replace", "image.inspect", "ctr.remove", "ctr.create", "ctr.start"]


# --- interruptions ----------------------------------------------------------------------


def test_killed_while_the_new_container_is_prepared(ada: Caller, far: FarEnd, edit: Edit, lab: str) -> None:
    edit(**ANOTHER_IMAGE)
    with write():
        database.execute_sql(
            "UPDATE workspaces SET status = 'creating', status_reason = 'upgrade', status_since = ?,"
            " work = 7",
            (now(),),
        )
    [found] = reconcile_rules.unresolved()
    seen = Seen(running=False, exit_code=0, oom_killed=False)
    working = found._replace(orphan=False, age_s=20)
    assert reconcile_rules.judge(working, seen, rebooted=False) is None
    verdict = reconcile_rules.judge(found, seen, rebooted=False)
    assert verdict is not None
    assert transitions.reconcile(ada, found, verdict, has_container=True)
    assert (row(lab).status, row(lab).image_ref, row(lab).container_id) == ("stopped", IMAGE, CONTAINER)


def restore(lab: str) -> None:
    """As svc.admin.restore.new_database has it."""
    with write():
        database.execute_sql(
            "UPDATE workspaces SET status = 'stopped', status_reason = 'restored', work = NULL, stale = 0"
        )


def test_a_snapshot_from_between_the_upgrade_and_its_next_start(
    ada: Caller, far: FarEnd, edit: Edit, lab: str
) -> None:
    """The row is the new one, the container still the old one: it must not be started as if it were new."""
    edit(**ANOTHER_IMAGE)
    far.answers["ctr.replace"] = None
    upgrades.upgrade(ada, "lab", replace=True)
    assert row(lab).stale == 1
    restore(lab)
    far.answers["ctr.replace"] = {"replaced": True}
    [found] = reconcile_rules.rows(ada.user_id)
    verdict = reconcile_rules.judge(found, None, rebooted=False)  # killed between the removal and the rename
    assert verdict is not None and verdict.reason == "container_missing"
    transitions.reconcile(ada, found, verdict)
    assert (row(lab).status, row(lab).container_id) == ("stopped", NEXT)
    restore(lab)
    far.calls.clear()
    assert workspaces.start(ada, "lab")["status"] == "running"  # before the worker has looked
    assert far.verbs()[:2] == ["ctr.replace", "ctr.start"]


def test_a_snapshot_from_before_the_upgrade(ada: Caller, far: FarEnd, lab: str) -> None:
    """Nothing is removed: what is there now stays."""
    restore(lab)
    assert workspaces.start(ada, "lab")["status"] == "running"
    assert far.verbs() == ["ctr.inspect", "ctr.replace", "ctr.start"] or far.verbs() == [
        "ctr.replace",
        "ctr.start",
    ]


# --- refusals and races -----------------------------------------------------------------


def test_only_a_stopped_one(ada: Caller, far: FarEnd, edit: Edit, lab: str) -> None:
    edit(env=[])
    edit(description="x")
    far.answers["ctr.inspect"] = {"exists": True, "status": "running"}
    with pytest.raises(errors.WorkspaceNotStopped):  # started by hand
        upgrades.upgrade(ada, "lab")
    workspaces.start(ada, "lab")
    with pytest.raises(errors.WorkspaceNotStopped):
        upgrades.upgrade(ada, "lab")
    assert upgrades.preview(ada, "lab")["before"] == 1


def test_refusals(ada: Caller, bob: Caller, edit: Edit, lab: str, template: str) -> None:
    seen = (versions.of_workspace(workspaces.get(ada, "lab")),)
    newest = edit(description="x")
    with pytest.raises(errors.Conflict):
        upgrades.upgrade(ada, "lab", newest - 1)
    with pytest.raises(errors.NotFound):
        upgrades.upgrade(bob, lab)
    workspaces.edit(ada, "lab", {"display_name": "x"})
    with pytest.raises(errors.PreconditionFailed):
        upgrades.upgrade(ada, "lab", expected=seen)
    with write():
        database.execute_sql("UPDATE templates SET status = 'disabled'")
    with pytest.raises(errors.TemplateDisabled):
        upgrades.upgrade(ada, "lab")
    with pytest.raises(errors.TemplateDisabled):
        upgrades.preview(ada, "lab")
    assert row(lab).template_revision == 1


@pytest.mark.parametrize("status", ["stopped", "failed"])
def test_a_restored_one_that_runs_is_running(ada: Caller, far: FarEnd, lab: str, status: str) -> None:
    """Its container has the id of the row, which is no reason to take it for a stopped one."""
    database.execute_sql(
        "UPDATE workspaces SET status = ?, status_reason = ? WHERE id = ?",
        (status, reconcile_rules.RESTORED, lab),
    )
    far.answers["ctr.replace"] = {"replaced": True}
    (found,) = reconcile_rules.rows(ada.user_id)
    verdict = reconcile_rules.judge(found, Seen(True, None, None), rebooted=False)
    assert verdict is not None
    assert transitions.reconcile(ada, found, verdict, has_container=True)
    assert row(lab).status == "running"
    assert "ctr.replace" not in far.verbs()


def test_a_restored_one_that_has_ended_keeps_its_exit_code(ada: Caller, far: FarEnd, lab: str) -> None:
    database.execute_sql(
        "UPDATE workspaces SET status_reason = ? WHERE id = ?", (reconcile_rules.RESTORED, lab)
    )
    far.answers["ctr.replace"] = {"replaced": True}
    (found,) = reconcile_rules.rows(ada.user_id)
    verdict = reconcile_rules.judge(found, Seen(False, 7, None), rebooted=False)
    assert verdict is not None
    assert transitions.reconcile(ada, found, verdict, has_container=True)
    record = workspaces.get(ada, "lab")
    assert (record["status"], record["status_reason"], record["exit_code"]) == ("stopped", None, 7)


def test_too_many_variables(ada: Caller, edit: Edit, template: str, far: FarEnd) -> None:
    far.answers["ctr.inspect"] = IDLE
    env = {f"V{number}": "" for number in range(250)}
    lab = make_workspace(ada.user_id, template, env_json=json.dumps(env))
    edit(env=[{"name": f"T{number}", "value": ""} for number in range(50)])
    with pytest.raises(errors.ValidationFailed):
        upgrades.upgrade(ada, "lab")
    assert (row(lab).status, row(lab).template_revision) == ("stopped", 1)


@pytest.mark.parametrize("replace", [False, True])
def test_fifty_have_one_winner(ada: Caller, far: FarEnd, edit: Edit, lab: str, replace: bool) -> None:
    newest = edit(**(ANOTHER_IMAGE if replace else {"description": "x"}))
    far.answers["ctr.replace"] = {"replaced": True}
    outcomes: list[Any] = []
    gate = threading.Barrier(50)

    def one() -> None:
        gate.wait()
        try:
            outcomes.append(upgrades.upgrade(ada, "lab", replace=replace)["template"]["revision"])
        except errors.SvcError as error:
            outcomes.append(type(error))
        finally:
            close_database()

    threads = [threading.Thread(target=one) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(outcomes) <= {newest, errors.OperationInProgress, errors.TooManyRequests}
    assert newest in outcomes
    assert far.verbs().count("ctr.prepare") == int(replace)
    assert (row(lab).status, row(lab).template_revision, row(lab).stale) == ("stopped", newest, 0)


def test_a_start_beside_an_upgrade(ada: Caller, far: FarEnd, edit: Edit, lab: str) -> None:
    edit(**ANOTHER_IMAGE)
    refused: list[type[Exception]] = []

    def prepared(_call: Any) -> dict[str, Any]:
        for change in (workspaces.start, workspaces.delete, lambda *who: workspaces.edit(*who, {"env": []})):
            try:
                change(ada, "lab")
            except errors.SvcError as error:
                refused.append(type(error))
        close_database()
        return {"container_id": NEXT}

    far.answers["ctr.prepare"] = prepared
    upgrades.upgrade(ada, "lab", replace=True)
    assert refused == [errors.OperationInProgress, errors.OperationInProgress, errors.WorkspaceNotStopped]
