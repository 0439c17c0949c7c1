"""Making, changing, starting, stopping and deleting a workspace."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from unit.serving import CONTAINER, DIGEST, IMAGE, MISSING, FarEnd, make_template, make_workspace

from svc import errors
from svc.db.connect import close_database, database, write
from svc.domain import operations
from svc.domain.audit import budget
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.workspaces import records, workspaces
from svc.limits import STOP_GRACE_S
from svc_helper.wire import protocol


def column(name: str, workspace_id: str) -> Any:
    row = database.execute_sql(f"SELECT {name} FROM workspaces WHERE id = ?", (workspace_id,)).fetchone()
    return row and row[0]


RUNNING = {"exists": True, "status": "running"}


def audit() -> list[tuple[str, str]]:
    return database.execute_sql("SELECT action, outcome FROM audit ORDER BY id").fetchall()


# --- create ---------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "{broken", "nope"])
def test_a_row_whose_json_is_broken_hides_no_other(ada: Caller, template: str, text: str) -> None:
    """After a change by hand: the row is there, without what cannot be read."""
    lab, _ = (make_workspace(ada.user_id, template, name) for name in ("lab", "other"))
    operation = operations.enqueue(ada, "setup", "workspace", lab, {"workspace": {"name": "lab"}})["id"]
    columns = "last_error_json = ?1, command_json = ?1, limits_missing_json = ?1, env_json = ?1"
    with write():
        database.execute_sql(f"UPDATE workspaces SET {columns} WHERE id = ?2", (text, lab))
        columns = "progress_json = ?1, error_json = ?1, result_json = ?1, request_json = ?1"
        database.execute_sql(f"UPDATE operations SET {columns} WHERE id = ?2", (text, operation))
    found = {item["name"]: item for item in json.loads(workspaces.page_of(ada, Page()))["items"]}
    assert set(found) == {"lab", "other"}
    odd = found["lab"]
    assert (odd["last_error"], odd["command"], odd["limits_missing"], odd["env"]) == (None, None, [], [])
    assert odd["operation"]["progress"] == {}
    (item,) = operations.page_of(ada, Page())["items"]
    assert (item["progress"], item["error"], item["result"]) == ({}, None, None)
    assert (item["subject"]["name"], item["template"]) == ("lab", None)


def test_create_makes_the_container_when_the_image_is_there(ada: Caller, far: FarEnd, template: str) -> None:
    record = workspaces.create(ada, {"name": "lab", "template": "base"})
    assert far.verbs() == ["image.inspect", "image.inspect", "ctr.create"]
    assert record["status"] == "stopped"
    assert record["image_status"] == "ready"
    assert record["image"] == {"ref": IMAGE, "digest": DIGEST}
    assert record["template"] == {"id": template, "name": "base", "revision": 1, "newer_revision": None}
    assert record["allowed_actions"] == ["start", "edit", "upgrade", "rename", "logs", "delete"]
    assert record["mounts"] == [{"root": "work", "path": "/work", "read_only": False}]
    assert column("container_id", record["id"]) == CONTAINER
    assert audit() == [("workspace.create", "begun"), ("workspace.create", "ok")]


def test_create_never_pulls(ada: Caller, far: FarEnd, template: str) -> None:
    far.answers["image.inspect"] = MISSING
    record = workspaces.create(ada, {"name": "lab", "template": template})
    assert far.verbs() == ["image.inspect"]
    assert (record["status"], record["image_status"]) == ("stopped", "missing")
    assert column("container_id", record["id"]) is None


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("UPDATE templates SET status = 'disabled'", errors.TemplateDisabled),
        ("DELETE FROM templates", errors.NotFound),
        ("UPDATE templates SET revision = 2", errors.NotFound),
    ],
)
def test_create_asks_for_the_template_last(
    ada: Caller, far: FarEnd, template: str, change: str, error: type[errors.SvcError]
) -> None:
    """A user's agent may take its time: meanwhile the template is disabled, deleted, or its revision gone."""

    def answer(_call: Any) -> dict[str, Any]:
        with write():
            database.execute_sql(change)
            if "revision" in change:
                database.execute_sql("UPDATE template_revisions SET revision = 2")
        return MISSING

    far.answers["image.inspect"] = answer
    with pytest.raises(error):
        workspaces.create(ada, {"name": "lab", "template": "base"})
    assert workspaces.page_of(ada, Page()).startswith('{"items":[],"total":0')


def test_create_with_podman_down_leaves_nothing(ada: Caller, far: FarEnd, template: str) -> None:
    far.answers["image.inspect"] = "unavailable"
    with pytest.raises(errors.EngineUnavailable):
        workspaces.create(ada, {"name": "lab", "template": "base"})
    assert workspaces.page_of(ada, Page()).startswith('{"items":[],"total":0')


def test_create_that_the_engine_refuses_leaves_nothing(ada: Caller, far: FarEnd, template: str) -> None:
    far.answers["ctr.create"] = "failed"
    with pytest.raises(errors.EngineFailed):
        workspaces.create(ada, {"name": "lab", "template": "base"})
    assert far.verbs()[-1] == "ctr.remove"
    assert audit() == [("workspace.create", "begun"), ("workspace.create", "engine_failed")]
    assert '"total":0' in workspaces.page_of(ada, Page())


def test_create_whose_answer_is_lost_twice_says_failed(
    ada: Caller, far: FarEnd, template: str, wakes: list[int]
) -> None:
    far.answers |= {"ctr.create": None, "ctr.remove": "unavailable"}
    with pytest.raises(errors.EngineUnavailable):
        workspaces.create(ada, {"name": "lab", "template": "base"})
    assert far.verbs().count("ctr.create") == 1
    record = workspaces.get(ada, "lab")
    assert (record["status"], record["status_reason"]) == ("failed", "engine_error")
    assert wakes


def test_a_stop_on_a_full_disk_says_what_makes_room(ada: Caller, far: FarEnd, template: str) -> None:
    """Podman writes its records at a stop too."""
    make_workspace(ada.user_id, template, status="running", container_id="c" * 64)
    far.answers["ctr.stop"] = "storage_full"
    with pytest.raises(errors.StorageFull) as refused:
        workspaces.stop(ada, "lab")
    assert refused.value.hint == "svc image prune"


def test_names_are_unique_per_owner(ada: Caller, bob: Caller, template: str) -> None:
    make_template(bob.user_id, "bobs")
    workspaces.create(ada, {"name": "lab", "template": "base"})
    with pytest.raises(errors.NameTaken) as caught:
        workspaces.create(ada, {"name": "lab", "template": "base"})
    assert caught.value.fields[0]["field"] == "name"
    assert workspaces.create(bob, {"name": "lab", "template": "bobs"})["owner"] == "bob"


def test_create_from_a_disabled_or_unseen_template(ada: Caller, bob: Caller, template: str) -> None:
    make_template(ada.user_id, "off", status="disabled")
    make_template(None, "secret", status="disabled")
    with pytest.raises(errors.TemplateDisabled, match="you can enable it"):
        workspaces.create(ada, {"name": "lab", "template": "off"})
    for caller, name in ((ada, "secret"), (bob, template), (bob, "no-such")):
        with pytest.raises(errors.NotFound):
            workspaces.create(caller, {"name": "lab", "template": name})


def test_create_twice_with_the_same_id_makes_one(ada: Caller, far: FarEnd, template: str) -> None:
    for _ in range(2):
        record = workspaces.create(ada, {"name": "lab", "template": "base"}, workspace_id="ws-0000abcd")
    assert record["id"] == "ws-0000abcd"
    assert far.verbs().count("ctr.create") == 1


def test_create_goes_on_with_what_a_dead_worker_began(ada: Caller, far: FarEnd, template: str) -> None:
    make_workspace(ada.user_id, template, "lab", id="ws-0000abcd", status="creating")
    record = workspaces.create(ada, {"name": "lab", "template": "base"}, workspace_id="ws-0000abcd")
    assert record["status"] == "stopped"
    assert far.verbs()[-1] == "ctr.create"


def test_variables_that_no_message_could_carry_are_refused(ada: Caller, far: FarEnd, template: str) -> None:
    """Sixty-four of the largest would not fit one call; said at once, not by a call that fails."""
    env = [{"name": f"V{number}", "value": "x" * 4096} for number in range(9)]
    with pytest.raises(errors.ValidationFailed) as caught:
        workspaces.create(ada, {"name": "lab", "template": "base", "env": env})
    assert caught.value.fields[0]["code"] == "too_large"
    assert "ctr.create" not in far.verbs()
    workspaces.create(ada, {"name": "lab", "template": "base", "env": env[:7]})


def test_template_defaults_fill_and_limits_bind(ada: Caller, far: FarEnd) -> None:
    make_template(
        ada.user_id, "small",
        defaults={"cpu_limit": 0.5, "env": [{"name": "MODE", "value": "a"}]},
        limits={"cpu_limit": 2, "memory_bytes": 2**30}, env=[{"name": "BASE", "value": "1"}],
    )  # fmt: skip
    record = workspaces.create(
        ada,
        {
            "name": "lab",
            "template": "small",
            "resources": {"pids_limit": 50},
            "env": [{"name": "MODE", "value": "b"}, {"name": "BASE", "value": "2"}],
        },
    )
    assert record["resources"]["cpu_limit"] == 0.5
    assert record["resources"]["memory_bytes"] == 2**30  # unlimited would be over the limit
    assert record["env"] == [{"name": "MODE", "value": "b"}, {"name": "BASE", "value": "2"}]
    sent = far.calls[-1].args
    assert sent["env"] == {"BASE": "2", "MODE": "b"}
    assert sent["resources"] == {
        "cpu_limit": 500, "memory_bytes": 2**30, "shm_bytes": None, "pids_limit": 50,
    }  # fmt: skip
    with pytest.raises(errors.ValidationFailed) as caught:
        workspaces.create(ada, {"name": "two", "template": "small", "resources": {"cpu_limit": 3}})
    assert caught.value.fields == [
        {"field": "resources.cpu_limit", "code": "over_limit", "message": "at most 2"}
    ]


# --- start ----------------------------------------------------------------------------


def test_start_makes_the_container_at_the_first_start(ada: Caller, far: FarEnd, template: str) -> None:
    workspace_id = make_workspace(ada.user_id, template)
    record = workspaces.start(ada, "lab")
    assert far.verbs() == ["image.inspect", "ctr.create", "ctr.start"]
    assert (record["status"], record["status_reason"]) == ("running", None)
    assert record["started_at"]
    assert record["allowed_actions"] == ["stop", "restart", "exec", "rename", "logs", "delete"]
    assert column("container_id", workspace_id) == CONTAINER


def test_an_image_is_copied_for_run_as_before_the_start_has_a_deadline(ada: Caller, far: FarEnd) -> None:
    """The copy may take two hours; a state that something passes through ends after two minutes."""
    template = make_template(ada.user_id, run_as={"uid": 1000, "gid": 100})
    workspace_id = make_workspace(ada.user_id, template)
    statuses = []

    def copy(call: protocol.Call) -> dict[str, Any]:
        if call.args["copy"]:
            statuses.append(column("status", workspace_id))
        return {"copy_bytes": 0 if statuses else 8, "copied": bool(statuses)}

    far.answers["image.map"] = copy
    assert workspaces.start(ada, "lab")["status"] == "running"
    assert statuses == ["stopped"]


def test_a_create_leaves_the_copy_for_run_as_to_the_first_start(ada: Caller, far: FarEnd) -> None:
    """It may take two hours, and `creating` ends after two minutes."""
    make_template(ada.user_id, "own", run_as={"uid": 1000, "gid": 100})
    far.answers["image.map"] = lambda call: {"copy_bytes": 8, "copied": call.args["copy"]}
    record = workspaces.create(ada, {"name": "lab", "template": "own"})
    assert (record["status"], record["image_status"]) == ("stopped", "ready")
    assert [call.args["copy"] for call in far.calls if call.verb.name == "image.map"] == [False]
    assert "ctr.create" not in far.verbs()
    assert workspaces.start(ada, "lab")["status"] == "running"
    assert "ctr.create" in far.verbs()


def test_start_with_a_missing_image_never_pulls(ada: Caller, far: FarEnd, template: str) -> None:
    far.answers["image.inspect"] = MISSING
    make_workspace(ada.user_id, template)
    with pytest.raises(errors.ImageMissing) as caught:
        workspaces.start(ada, "lab")
    assert caught.value.hint == "svc image pull base --wait"
    assert far.verbs() == ["image.inspect"]
    assert workspaces.get(ada, "lab")["status"] == "stopped"
    assert audit() == [("workspace.start", "begun"), ("workspace.start", "image_missing")]


def test_start_of_a_running_one_succeeds(ada: Caller, far: FarEnd, template: str) -> None:
    make_workspace(ada.user_id, template, status="running", container_id=CONTAINER)
    assert workspaces.start(ada, "lab")["status"] == "running"
    assert far.verbs() == ["ctr.inspect"]


def test_start_of_one_that_died_unseen_starts_it(ada: Caller, far: FarEnd, template: str) -> None:
    far.answers["ctr.inspect"] = {"exists": True, "status": "stopped"}
    make_workspace(ada.user_id, template, status="running", container_id=CONTAINER)
    assert workspaces.start(ada, "lab")["status"] == "running"
    assert far.verbs() == ["ctr.inspect", "ctr.start"]


def test_start_after_the_container_was_removed_behind_our_back(
    ada: Caller, far: FarEnd, template: str
) -> None:
    tries = iter(["not_found", {"pid": 5}])
    far.answers["ctr.start"] = lambda _call: next(tries)
    make_workspace(ada.user_id, template, container_id=CONTAINER)
    assert workspaces.start(ada, "lab")["status"] == "running"
    assert far.verbs() == ["ctr.start", "image.inspect", "ctr.create", "ctr.start"]


def test_start_of_one_that_is_gone_with_its_image(ada: Caller, far: FarEnd, template: str) -> None:
    far.answers |= {"ctr.inspect": {"exists": False}, "ctr.start": "not_found", "image.inspect": MISSING}
    make_workspace(ada.user_id, template, status="running", container_id=CONTAINER)
    with pytest.raises(errors.ImageMissing):
        workspaces.start(ada, "lab")
    record = workspaces.get(ada, "lab")
    assert (record["status"], record["status_reason"]) == ("stopped", "container_exited")


@pytest.mark.parametrize("status", ["creating", "starting", "stopping", "deleting"])
def test_start_in_a_transition_is_refused(ada: Caller, far: FarEnd, template: str, status: str) -> None:
    make_workspace(ada.user_id, template, status=status)
    with pytest.raises(errors.OperationInProgress):
        workspaces.start(ada, "lab")
    assert far.verbs() == []


@pytest.mark.parametrize(
    ("answer", "seen", "error", "status", "reason"),
    [
        ("failed", {"exists": True, "status": "stopped"}, errors.EngineFailed, "failed", "engine_error"),
        ("timeout", {"exists": True, "status": "stopped"}, errors.EngineTimeout, "failed", "start_timeout"),
        (None, {"exists": True, "status": "stopped"}, errors.EngineUnavailable, "stopped", "engine_error"),
        (None, {"exists": True, "status": "running"}, errors.EngineUnavailable, "running", "engine_error"),
        (None, "unavailable", errors.EngineUnavailable, "failed", "engine_error"),
        ("account", None, errors.AccountDisabled, "stopped", None),
    ],
)
def test_a_start_that_fails_is_looked_at_and_never_repeated(
    ada: Caller, far: FarEnd, template: str, wakes: list[int],
    answer: Any, seen: Any, error: type[Exception], status: str, reason: str | None,
) -> None:  # fmt: skip
    far.answers |= {"ctr.start": answer, "ctr.inspect": seen}
    make_workspace(ada.user_id, template, container_id=CONTAINER)
    with pytest.raises(error):
        workspaces.start(ada, "lab")
    assert far.verbs().count("ctr.start") == 1
    record = workspaces.get(ada, "lab")
    assert (record["status"], record["status_reason"]) == (status, reason)
    assert wakes


def test_a_start_says_what_holds_for_it(ada: Caller, far: FarEnd) -> None:
    make_template(ada.user_id, "small", env=[{"name": "BASE", "value": "1"}, {"name": "BOTH", "value": "t"}])
    requested = {"env": [{"name": "BOTH", "value": "w"}], "resources": {"cpu_limit": 2}}
    workspaces.create(ada, {"name": "lab", "template": "small"} | requested)
    workspaces.start(ada, "lab")
    assert far.calls[-1].verb.name == "ctr.start"
    sent = far.calls[-1].args
    assert sent["env"] == {"BASE": "1", "BOTH": "w"}
    assert sent["resources"]["cpu_limit"] == 2000
    assert sent["devices"] == []


def test_a_new_workspace_counts_against_the_quota(ada: Caller, far: FarEnd, template: str) -> None:
    with write():
        database.execute_sql("UPDATE quotas SET max_workspaces = 1, max_running = 0")
    workspaces.create(ada, {"name": "one", "template": "base"})
    with pytest.raises(errors.QuotaExceeded):
        workspaces.create(ada, {"name": "two", "template": "base"})
    with pytest.raises(errors.QuotaExceeded):
        workspaces.start(ada, "one")
    assert workspaces.get(ada, "one")["status"] == "stopped"
    assert "ctr.start" not in far.verbs()


def test_a_new_workspace_has_its_templates_ports_and_its_own(ada: Caller, far: FarEnd) -> None:
    make_template(ada.user_id, "web", ports=[{"name": "http", "container_port": 80}], launchers=[
        {"name": "app", "title": "App", "command": ["app"], "env": [], "port": "http", "autostart": True},
    ])  # fmt: skip
    requested = {"name": "lab", "template": "web", "ports": [{"name": "api", "container_port": 81}]}
    record = workspaces.create(ada, requested)
    assert [(port["name"], port["container_port"]) for port in record["ports"]] == [("api", 81), ("http", 80)]
    url = next(f"http://127.0.0.1:{one['host_port']}" for one in record["ports"] if one["name"] == "http")
    assert record["launchers"] == [
        {"name": "app", "title": "App", "port": "http", "autostart": True, "url": url}
    ]
    assert record["idle"] == {"since": None, "keep_until": None, "action": "none", "after_minutes": None}
    with pytest.raises(errors.ValidationFailed):
        workspaces.create(ada, requested | {"name": "two", "ports": [{"name": "http", "container_port": 1}]})


# --- stop, delete ---------------------------------------------------------------------


def test_stop(ada: Caller, far: FarEnd, template: str) -> None:
    far.answers["ctr.stop"] = {"exit_code": 143, "oom_killed": False}
    make_workspace(ada.user_id, template, status="running")
    record = workspaces.stop(ada, "lab", grace_s=3)
    assert (record["status"], record["status_reason"], record["exit_code"]) == (
        "stopped", "user_requested", 143,
    )  # fmt: skip
    assert far.calls[0].args["grace_s"] == 3
    assert record["stopped_at"]


def test_stop_of_a_stopped_one_succeeds(ada: Caller, far: FarEnd, template: str) -> None:
    make_workspace(ada.user_id, template)
    assert workspaces.stop(ada, "lab")["status"] == "stopped"
    assert far.verbs() == []
    assert audit() == [("workspace.stop", "begun"), ("workspace.stop", "ok")]


def test_what_is_so_already_is_counted_beyond_the_budget(
    ada: Caller, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stops of a stopped one added 25 KB a second to the audit, renames to the same name 76."""
    make_workspace(ada.user_id, template)
    monkeypatch.setattr(budget, "AUDIT_ROWS", 4)
    for _ in range(6):
        workspaces.stop(ada, "lab")
        workspaces.rename(ada, "lab", "lab")
    assert len(audit()) == 4


def test_stop_of_one_that_was_started_behind_our_back(ada: Caller, far: FarEnd, template: str) -> None:
    make_workspace(ada.user_id, template, container_id=CONTAINER)
    assert workspaces.stop(ada, "lab")["status"] == "stopped"
    assert far.verbs() == ["ctr.inspect", "ctr.stop"]
    far.answers["ctr.inspect"] = "unavailable"
    assert workspaces.stop(ada, "lab")["status"] == "stopped"


def test_an_administrator_stops_and_deletes_anothers(
    ada: Caller, boss: Caller, far: FarEnd, template: str
) -> None:
    make_workspace(ada.user_id, template, status="running")
    record = workspaces.stop(boss, "lab", owner="ada")
    assert record["status_reason"] == "admin_stopped"
    assert far.calls[0].user == "ada"
    workspaces.delete(boss, "lab", owner="ada")
    assert far.calls[1].user == "ada"
    with pytest.raises(errors.NotFound):
        workspaces.get(ada, "lab")


def test_an_administrators_stop_that_is_lost_is_left_to_the_reconciler(
    ada: Caller, boss: Caller, far: FarEnd, template: str, wakes: list[int]
) -> None:
    far.answers["ctr.stop"] = None
    make_workspace(ada.user_id, template, status="running")
    with pytest.raises(errors.EngineUnavailable):
        workspaces.stop(boss, "lab", owner="ada")
    record = workspaces.get(ada, "lab")
    assert (record["status"], record["status_reason"]) == ("stopping", "admin_stopped")
    assert far.verbs() == ["ctr.stop"]
    assert wakes


def test_delete_of_a_missing_container_succeeds(ada: Caller, far: FarEnd, template: str) -> None:
    far.answers["ctr.remove"] = "not_found"
    make_workspace(ada.user_id, template)
    workspaces.delete(ada, "lab")
    assert '"total":0' in workspaces.page_of(ada, Page())


def test_what_is_deleted_under_an_answer_is_not_found(ada: Caller, far: FarEnd, template: str) -> None:
    workspace_id = make_workspace(ada.user_id, template, status="running", container_id=CONTAINER)

    def deleted(_call: Any) -> dict[str, Any]:
        with write():
            database.execute_sql("DELETE FROM workspaces WHERE id = ?", (workspace_id,))
        close_database()
        return {"exit_code": 0, "oom_killed": False}

    far.answers["ctr.stop"] = deleted
    with pytest.raises(errors.NotFound):
        workspaces.stop(ada, workspace_id)


def test_delete_of_a_running_one_stops_it_first(ada: Caller, far: FarEnd, template: str) -> None:
    """ "Deletes.": its processes get the grace period of a stop, and the audit row says that it ran."""
    make_workspace(ada.user_id, template, status="running", container_id=CONTAINER)
    seen: list[str] = []

    def stopped(_call: Any) -> dict[str, Any]:
        seen.append(workspaces.get(ada, "lab")["status"])
        close_database()
        return {"exit_code": 0, "oom_killed": False}

    far.answers["ctr.stop"] = stopped
    workspaces.delete(ada, "lab")
    assert far.verbs() == ["ctr.stop", "ctr.remove"]
    assert far.calls[0].args["grace_s"] == STOP_GRACE_S
    assert seen == ["stopping"]  # so it counts for the quota until it is confirmed stopped
    assert '"total":0' in workspaces.page_of(ada, Page())
    assert audit() == [("workspace.delete", "begun"), ("workspace.delete", "ok")]


def test_delete_of_what_was_started_by_hand_stops_it_first(ada: Caller, far: FarEnd, template: str) -> None:
    make_workspace(ada.user_id, template, container_id=CONTAINER)
    far.answers["ctr.inspect"] = RUNNING
    workspaces.delete(ada, "lab")
    assert far.verbs() == ["ctr.inspect", "ctr.stop", "ctr.remove"]


@pytest.mark.parametrize(("seen", "status"), [(RUNNING, "running"), ("unavailable", "failed")])
def test_what_cannot_be_stopped_is_not_deleted(
    ada: Caller, far: FarEnd, template: str, seen: Any, status: str
) -> None:
    """It is what a failed stop leaves; nothing has to be undone."""
    make_workspace(ada.user_id, template, status="running", container_id=CONTAINER)
    far.answers |= {"ctr.stop": "unavailable", "ctr.inspect": seen}
    with pytest.raises(errors.EngineUnavailable):
        workspaces.delete(ada, "lab")
    assert workspaces.get(ada, "lab")["status"] == status
    assert "ctr.remove" not in far.verbs()
    far.answers["ctr.stop"] = {"exit_code": 0, "oom_killed": False}
    workspaces.delete(ada, "lab")


def test_no_start_comes_between_the_stop_and_the_removal(ada: Caller, far: FarEnd, template: str) -> None:
    """And while it starts or stops, neither a stop nor a removal is tried."""
    make_workspace(ada.user_id, template, status="running", container_id=CONTAINER)
    refused: list[str] = []

    def start(_call: Any) -> dict[str, Any]:
        for change in (workspaces.start, workspaces.delete):
            with pytest.raises(errors.OperationInProgress) as caught:
                change(ada, "lab")
            refused.append(caught.value.code)
        close_database()
        return {"exit_code": 0, "oom_killed": False}

    far.answers |= {"ctr.stop": start, "ctr.remove": start}
    workspaces.delete(ada, "lab")
    assert refused == ["operation_in_progress"] * 4
    assert far.verbs() == ["ctr.stop", "ctr.remove"]


def test_delete_with_podman_down_can_be_repeated(ada: Caller, far: FarEnd, template: str) -> None:
    far.answers["ctr.remove"] = "unavailable"
    make_workspace(ada.user_id, template)
    with pytest.raises(errors.EngineUnavailable):
        workspaces.delete(ada, "lab")
    assert workspaces.get(ada, "lab")["status"] == "failed"
    far.answers["ctr.remove"] = {}
    workspaces.delete(ada, "lab")


# --- edit -----------------------------------------------------------------------------


def test_rename_in_every_state(ada: Caller, template: str) -> None:
    for number, (status, actions) in enumerate(records.ALLOWED_ACTIONS.items()):
        make_workspace(ada.user_id, template, f"old-{number}", status=status)
        record = workspaces.rename(ada, f"old-{number}", f"new-{number}")
        assert (record["name"], record["status"]) == (f"new-{number}", status)
        assert "rename" in actions
    assert set(audit()) == {("workspace.rename", "ok")}


def test_rename_to_a_name_that_is_taken(ada: Caller, template: str) -> None:
    make_workspace(ada.user_id, template, "one")
    make_workspace(ada.user_id, template, "two")
    with pytest.raises(errors.NameTaken):
        workspaces.rename(ada, "one", "two")


@pytest.mark.parametrize(
    ("patch", "hint"),
    [
        ({"name": "new", "display_name": "New"}, "svc ws stop lab"),
        ({"name": "new"}, "svc ws rename lab --name new"),
        ({}, "svc ws stop lab"),
    ],
)
def test_only_a_stopped_workspace_is_edited(
    ada: Caller, template: str, patch: dict[str, Any], hint: str
) -> None:
    """ "Patches a stopped workspace only", whatever the patch has."""
    make_workspace(ada.user_id, template, status="running")
    with pytest.raises(errors.WorkspaceNotStopped) as caught:
        workspaces.edit(ada, "lab", patch)
    assert caught.value.hint == hint
    assert workspaces.get(ada, "lab")["display_name"] == ""


@pytest.mark.parametrize("patch", [{}, {"resources": {}}])
def test_a_patch_without_a_key_is_refused(ada: Caller, template: str, patch: dict[str, Any]) -> None:
    make_workspace(ada.user_id, template)
    with pytest.raises(errors.ValidationFailed, match="no key"):
        workspaces.edit(ada, "lab", patch)


def test_an_edit_holds_from_the_next_start(ada: Caller, far: FarEnd, template: str) -> None:
    """The container stays, "never costs the user what they installed"; its next start says what differs."""
    workspaces.create(ada, {"name": "lab", "template": "base", "resources": {"cpu_limit": 2}})
    workspaces.start(ada, "lab")
    workspaces.stop(ada, "lab")
    far.calls.clear()
    patch = {"resources": {"pids_limit": 9, "cpu_limit": "unlimited"}, "env": [{"name": "A", "value": "b"}]}
    record = workspaces.edit(ada, "lab", patch)
    assert (record["resources"]["cpu_limit"], record["resources"]["pids_limit"]) == (None, 9)
    workspaces.start(ada, "lab")
    assert far.verbs() == ["ctr.start"]
    assert far.calls[0].args["env"] == {"A": "b"}
    assert far.calls[0].args["resources"]["pids_limit"] == 9
    assert far.calls[0].args["resources"]["cpu_limit"] is None


def test_a_container_whose_making_was_not_answered_is_made_anew(
    ada: Caller, far: FarEnd, template: str
) -> None:
    """It may be there, made from what the row said then."""
    far.answers |= {"ctr.create": None, "ctr.inspect": {"exists": True, "status": "created"}}
    make_workspace(ada.user_id, template)
    with pytest.raises(errors.EngineUnavailable):
        workspaces.start(ada, "lab")
    assert workspaces.edit(ada, "lab", {"resources": {"pids_limit": 9}})["status"] == "stopped"
    far.answers["ctr.create"] = {"container_id": CONTAINER, "image_id": "i"}
    far.calls.clear()
    workspaces.start(ada, "lab")
    assert far.verbs() == ["image.inspect", "ctr.remove", "ctr.create", "ctr.start"]
    assert far.calls[2].args["resources"]["pids_limit"] == 9


# --- whose ----------------------------------------------------------------------------


def test_anothers_and_an_unknown_one_are_the_same(ada: Caller, bob: Caller, template: str) -> None:
    workspace_id = make_workspace(ada.user_id, template)
    for act in (workspaces.get, workspaces.start, workspaces.stop, workspaces.delete):
        with pytest.raises(errors.NotFound) as of_ada:
            act(bob, workspace_id)
        with pytest.raises(errors.NotFound) as of_nobody:
            act(bob, "ws-nobodys0")
        printed = of_ada.value.body("r")["error"]
        printed["message"] = printed["message"].replace(workspace_id, "ws-nobodys0")
        assert printed == of_nobody.value.body("r")["error"]


def test_administrators_list_those_of_all(ada: Caller, bob: Caller, boss: Caller, template: str) -> None:
    make_workspace(ada.user_id, template, "lab")
    make_workspace(bob.user_id, template, "bobs", status="running")
    make_workspace(boss.user_id, template, "own")
    found = json.loads(workspaces.page_of(boss, Page(), everyones=True))
    assert {(one["owner"], one["name"]) for one in found["items"]} == {
        ("ada", "lab"), ("bob", "bobs"), ("boss", "own")
    }  # fmt: skip
    assert found["total"] == 3
    running = json.loads(workspaces.page_of(boss, Page(status=("running",)), everyones=True))
    assert ([one["owner"] for one in running["items"]], running["total"]) == (["bob"], 1)
    first = json.loads(workspaces.page_of(boss, Page(limit=2), everyones=True))
    assert (len(first["items"]), first["total"], first["next_offset"]) == (2, 3, 2)
    with pytest.raises(errors.AdminOnly) as refused:
        workspaces.page_of(ada, Page(), everyones=True)
    assert refused.value.hint == "svc ws list"
    with pytest.raises(errors.PatNotAllowed):
        workspaces.page_of(dataclasses.replace(boss, kind="pat"), Page(), everyones=True)
    with pytest.raises(errors.ValidationFailed):
        workspaces.page_of(boss, Page(), "ada", everyones=True)


def test_an_administrator_is_told_whose_it_is(ada: Caller, bob: Caller, boss: Caller, template: str) -> None:
    def hint(caller: Caller, ref: str, owner: str | None = None) -> str:
        with pytest.raises(errors.NotFound) as caught:
            workspaces.get(caller, ref, owner)
        assert caught.value.message == f"no workspace {ref}"
        return caught.value.hint

    lab = make_workspace(ada.user_id, template, "lab")
    assert hint(boss, lab) == hint(boss, "lab") == f"svc ws get {lab} --owner ada"
    assert hint(bob, lab) == hint(bob, "lab") == "svc ws list"
    assert hint(boss, "none") == "svc ws list --all"
    assert hint(boss, lab, "bob") == f"svc ws get {lab} --owner ada"
    other = make_workspace(bob.user_id, template, "other")
    database.execute_sql("UPDATE workspaces SET name = 'lab'")
    assert hint(boss, "lab") == "svc ws list --all"
    assert hint(boss, other) == f"svc ws get {other} --owner bob"


def test_only_administrators_name_another_owner(
    ada: Caller, bob: Caller, boss: Caller, template: str
) -> None:
    make_workspace(ada.user_id, template)
    assert '"total":1' in workspaces.page_of(boss, Page(), "ada")
    assert '"total":1' in workspaces.page_of(boss, Page(), str(ada.uid))
    assert '"total":1' in workspaces.page_of(ada, Page(), str(ada.uid))
    assert '"total":0' in workspaces.page_of(boss, Page())
    with pytest.raises(errors.NotFound):
        workspaces.page_of(boss, Page(), "4000000000")
    with pytest.raises(errors.AdminOnly):
        workspaces.page_of(bob, Page(), "ada")
    with pytest.raises(errors.NotFound):
        workspaces.page_of(boss, Page(), "nobody")
