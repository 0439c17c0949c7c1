"""Workspaces: create, set up, edit, start, stop, delete.

"Owned by one user"; the id and the owner's name for it both lead to it.
Podman is the truth for running and stopped; the row follows, here after a call
and in the worker's reconciler otherwise.
"""

from __future__ import annotations

import json
from typing import Any

from svc.db.connect import database, write
from svc.db.ids import new_id, now
from svc.domain import audit, names, operations
from svc.domain.accounts import users
from svc.domain.gpus import health as gpu_health
from svc.domain.images import images
from svc.domain.images import requests as image_requests
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.quotas import quotas, resources
from svc.domain.quotas.resources import Resources
from svc.domain.templates import rows as template_rows
from svc.domain.templates import templates
from svc.domain.templates import variables as template_variables
from svc.domain.templates.rows import Template
from svc.domain.workspaces import containers, launchers, leases, ports, records, states, transitions
from svc.domain.workspaces.states import Workspace
from svc.errors import SvcError, ValidationFailed, WorkspaceNotStopped
from svc.limits import ENV_BYTES_MAX, ENV_COUNT_MAX, STOP_GRACE_S


def page_of(caller: Caller, page: Page, owner: str | None = None) -> str:
    """One page of the caller's workspaces (an administrator's `owner`'s), as JSON text."""
    return records.page_of(users.owner_id(caller, owner), page)


def get(caller: Caller, ref: str, owner: str | None = None) -> dict[str, Any]:
    """One workspace's record; raises NotFound, identical for an unknown and another's."""
    return records.one(states.find(caller, ref, owner).id)


# --- making ---------------------------------------------------------------------------


def create(
    caller: Caller, wanted: dict[str, Any], workspace_id: str | None = None, revision: int | None = None
) -> dict[str, Any]:
    """Make a workspace from an enabled template; it is stopped, and nothing is pulled.

    With the image in the caller's store its container is made now, else at the
    first start. With `workspace_id` (a set-up that may run twice) an existing one
    is the answer, and `revision` is the template's as it was when that was asked
    for. Raises NameTaken, NotFound, TemplateDisabled, ValidationFailed.
    """
    workspace = states.of_id(workspace_id) if workspace_id else None
    if workspace and workspace.status != "creating":
        return records.one(workspace.id)
    template = templates.usable(caller, wanted["template"])
    if revision is not None:
        template = template_rows.at_revision(template.id, revision)
    granted, env = _granted(template, wanted)
    # Asked before anything is written: a stopped Podman leaves nothing half-done.
    ready = images.present(caller, template.image_ref)
    workspace = workspace or _insert(caller, workspace_id or new_id("ws"), template, wanted, granted, env)
    try:
        if ready:
            containers.make(caller, workspace)
    except SvcError as error:
        _unmake(caller, workspace)
        audit.add(caller, "workspace.create", workspace.id, error.code)
        raise
    with write():
        states.move(workspace, "stopped")
        audit.add(caller, "workspace.create", workspace.id, "ok")
    return records.one(workspace.id)


def set_up(caller: Caller, wanted: dict[str, Any]) -> dict[str, Any]:
    """Queue "Downloads or builds a missing image and creates the workspace as one operation"; no start."""
    template = templates.usable(caller, wanted["template"])
    image_requests.require_source(caller, template)
    _granted(template, wanted)
    ports.wanted(template.spec["ports"], wanted.get("ports", []))
    workspace_id = new_id("ws")
    taken = database.execute_sql(
        "SELECT 1 FROM workspaces WHERE owner_id = ?1 AND name = ?2 UNION ALL SELECT 1 FROM operations"
        " WHERE owner_id = ?1 AND kind = 'setup' AND status IN ('queued', 'running')"
        " AND json_extract(request_json, '$.workspace.name') = ?2",
        (caller.user_id, wanted["name"]),
    ).fetchone()
    if taken:
        raise names.taken("workspace", wanted["name"])
    quotas.require_room(caller.user_id)  # asked again when it is made; nothing is fetched in vain
    request = {
        "image_ref": template.image_ref,
        "template_id": template.id,
        "revision": template.revision,
        "workspace": wanted | {"template": template.id},
    }
    return operations.enqueue(caller, "setup", "workspace", workspace_id, request)


def _granted(template: Template, wanted: dict[str, Any]) -> tuple[Resources, dict[str, str]]:
    """Resources and variables within the template's rules; raises ValidationFailed."""
    spec = template.spec
    defaults = spec["defaults"]
    granted = resources.resolve(wanted.get("resources", {}), defaults, spec["limits"], spec["gpu"])
    pairs = defaults.get("env", []) + wanted.get("env", [])
    env = {pair["name"]: pair["value"] for pair in pairs}
    whole = template_variables.values_of(template) | env
    if len(whole) > ENV_COUNT_MAX:
        message = f"at most {ENV_COUNT_MAX} variables, the template's included"
        raise ValidationFailed(message, fields=[{"field": "env", "code": "too_many", "message": message}])
    if sum(len(name.encode()) + len(value.encode()) for name, value in whole.items()) > ENV_BYTES_MAX:
        message = f"at most {ENV_BYTES_MAX} bytes of variables, the template's included"
        raise ValidationFailed(message, fields=[{"field": "env", "code": "too_large", "message": message}])
    return granted, env


def _insert(
    caller: Caller,
    workspace_id: str,
    template: Template,
    wanted: dict[str, Any],
    granted: Resources,
    env: dict[str, str],
) -> Workspace:
    at = now()
    columns: dict[str, Any] = {
        "id": workspace_id, "owner_id": caller.user_id, "name": wanted["name"],
        "display_name": wanted.get("display_name", ""), "template_id": template.id,
        "template_revision": template.revision, "image_ref": template.image_ref, "status": "creating",
        "status_since": at, **granted._asdict(), "env_json": json.dumps(env),
        "restart_on_boot": int(wanted.get("restart_on_boot", False)), "created_at": at, "updated_at": at,
    }  # fmt: skip
    opened = ports.wanted(template.spec["ports"], wanted.get("ports", []))
    with names.taking("workspace", wanted["name"]):
        quotas.require_room(caller.user_id)
        database.execute_sql(
            f"INSERT INTO workspaces ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
            tuple(columns.values()),
        )
        ports.adopt(workspace_id, opened)
        audit.add(
            caller, "workspace.create", workspace_id, "begun", name=wanted["name"], template=template.id
        )
    return states.find(caller, workspace_id)


def _unmake(caller: Caller, workspace: Workspace) -> None:
    """After a create that failed: nothing stays, or a `failed` row while the engine cannot be asked."""
    try:
        containers.remove(caller, workspace)
    except SvcError:
        states.move(workspace, "failed", "engine_error")
        operations.wake()
    else:
        states.remove(workspace)


# --- changing -------------------------------------------------------------------------


def edit(caller: Caller, ref: str, patch: dict[str, Any]) -> dict[str, Any]:
    """Patch a workspace: the name at any time, all else "a stopped workspace only".

    "What `ws edit` changes never costs the user what they installed": the container
    stays, and its next start has the new values.
    """
    with names.taking("workspace", patch.get("name", "")):
        workspace = states.find(caller, ref)
        # A failed one that holds GPUs may run with what its row says now.
        stopped = workspace.status == "stopped" or (
            workspace.status == "failed" and not leases.of(workspace.id)
        )
        if set(patch) - {"name"} and not stopped:
            raise WorkspaceNotStopped(
                f"{workspace.name} is {workspace.status}; only a stopped workspace is edited",
                hint=f"svc ws stop {workspace.name}",
            )
        plain = ("name", "display_name", "restart_on_boot")
        columns: dict[str, Any] = {key: patch[key] for key in plain if key in patch}
        columns |= _start_columns(workspace, patch)
        if columns:
            states.set_columns(workspace, **columns, updated_at=now())
        audit.add(caller, "workspace.edit", workspace.id, "ok", keys=sorted(patch))
    return records.one(workspace.id)


def _start_columns(workspace: Workspace, patch: dict[str, Any]) -> dict[str, Any]:
    """The columns that a start is made from, where the patch changes any."""
    asked = {key: patch[key] for key in ("resources", "env") if key in patch}
    if not asked:
        return {}
    template = template_rows.at_revision(workspace.template_id, workspace.template_revision)
    before = {name: getattr(workspace, name) for name in Resources._fields}
    if before["cpu_limit"] is not None:
        before["cpu_limit"] /= resources.THOUSANDTHS
    wanted: dict[str, Any] = {"resources": before | asked.get("resources", {})}
    wanted["env"] = asked.get(
        "env", [{"name": name, "value": value} for name, value in workspace.env.items()]
    )
    granted, env = _granted(template, wanted)
    if "env" in asked:  # an edit says the whole list; a default that was taken out stays out
        env = {pair["name"]: pair["value"] for pair in asked["env"]}
    columns = granted._asdict() | {"env_json": json.dumps(env)}
    return {name: value for name, value in columns.items() if value != getattr(workspace, name)}


# --- running --------------------------------------------------------------------------


def start(caller: Caller, ref: str) -> dict[str, Any]:
    """Start a workspace; of a running one it succeeds. "Never pulls or builds an image".

    Raises ImageMissing, QuotaExceeded, GpuUnavailable, LimitsNotEnforceable,
    OperationInProgress and what the engine says.
    """
    before = states.find(caller, ref)
    with audit.audited(caller, "workspace.start", before.id):
        if before.status == "running" and containers.is_running(caller, before):
            return records.one(before.id)
        if before.status == "failed" and leases.of(before.id):
            before = transitions.confirm_stopped(caller, before)
        claimed, devices = transitions.claim(before)
        try:
            unmet = transitions.run(caller, claimed, devices)
        except SvcError as error:
            transitions.settle(caller, claimed, before, error)
            raise
        told = {"limits_missing_json": unmet, "health": gpu_health.OK if devices else gpu_health.UNKNOWN}
        if not states.move(claimed, "running", None, started_at=now(), exit_code=None, **told):
            transitions.give_up_unless_running(caller, claimed)
            states.set_columns(claimed, **told)
        operations.wake()  # the worker watches it from now on
        ports.restore(caller, claimed)
        launchers.autostart(caller, claimed)
    return records.one(before.id)


def stop(
    caller: Caller,
    ref: str,
    *,
    grace_s: int = STOP_GRACE_S,
    owner: str | None = None,
    reason: str = "",
    since: str = "",
) -> dict[str, Any]:
    """Stop a workspace, or an administrator's `owner`'s; of a stopped one it succeeds.

    `reason` is the worker's, who stops for another one than that somebody asked, and
    `since` says which run it means: a later one is left alone.
    """
    before = states.find(caller, ref, owner)
    if since and before.status_since != since:
        return records.one(before.id)
    reason = reason or ("user_requested" if before.owner_id == caller.user_id else "admin_stopped")
    with audit.audited(caller, "workspace.stop", before.id, owner=before.owner):
        if before.status == "stopped" and not containers.runs_unseen(caller, before):
            return records.one(before.id)
        claimed = states.claim(before, "stopping", reason)
        try:
            exit_code = containers.stop(caller, claimed, grace_s)
        except SvcError as error:
            containers.settle(caller, claimed, before, error)
            raise
        states.move(claimed, "stopped", reason, stopped_at=now(), exit_code=exit_code)
    return records.one(before.id)


def delete(caller: Caller, ref: str, *, owner: str | None = None) -> None:
    """Delete a stopped workspace, or an administrator's `owner`'s; a missing container is fine."""
    before = states.find(caller, ref, owner)
    if before.status == "running":
        raise WorkspaceNotStopped(
            f"{before.name} is running; stop it before deleting it", hint=f"svc ws stop {before.name}"
        )
    with audit.audited(caller, "workspace.delete", before.id, owner=before.owner, name=before.name):
        claimed = states.claim(before, "deleting")
        try:
            containers.remove(caller, claimed)
        except SvcError:
            states.move(claimed, "failed", "engine_error")
            operations.wake()
            raise
        states.remove(claimed)
