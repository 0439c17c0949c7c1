"""Workspaces: list, get, create, set up, edit, start, stop, delete.

"Owned by one user"; found by id or by name. What happens to the row and the
container is in transitions.py.
"""

from __future__ import annotations

import json
from typing import Any

from svc.actions import table
from svc.actions.commands import command
from svc.db.connect import database, write
from svc.db.held import numbers
from svc.domain import names, operations, versions
from svc.domain.accounts import users
from svc.domain.audit import audit
from svc.domain.images import images, mapping
from svc.domain.images import requests as image_requests
from svc.domain.licence import gate
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.quotas import quotas, resources
from svc.domain.quotas.resources import Resources
from svc.domain.templates import rows as template_rows
from svc.domain.templates import templates
from svc.domain.templates import variables as template_variables
from svc.domain.templates.rows import Template
from svc.domain.versions import Expected
from svc.domain.workspaces import (
    calls,
    containers,
    launchers,
    leases,
    ports,
    records,
    states,
    transitions,
    upgrade_plan,
)
from svc.domain.workspaces.states import Workspace
from svc.errors import SvcError, ValidationFailed, WorkspaceNotStopped, invalid_field
from svc.host.ids import new_id, now
from svc.limits import ENV_BYTES_MAX, STOP_GRACE_S
from svc_helper.wire.limits import ENV_COUNT_MAX


def page_of(caller: Caller, page: Page, owner: str | None = None, *, everyones: bool = False) -> str:
    """One page of the caller's workspaces, or for an administrator the `owner`'s or all, as JSON text."""
    if not everyones:
        return records.page_of(users.owner_id(caller, owner), page)
    users.require_for_others(caller)
    if owner is not None:
        raise invalid_field("owner", "excluded", "all=true lists those of every owner")
    return records.page_of(None, page)


def get(caller: Caller, ref: str, owner: str | None = None) -> dict[str, Any]:
    """One workspace's record; raises NotFound, identical for an unknown and another's."""
    return records.one(states.find(caller, ref, owner).id)


# --- creating -------------------------------------------------------------------------


def create(
    caller: Caller, request: dict[str, Any], workspace_id: str | None = None, revision: int | None = None
) -> dict[str, Any]:
    """Create a stopped workspace from an enabled template; nothing is pulled.

    With the image in the caller's store, also as a copy that its `run_as` needs, its container is
    created now, otherwise at the first start. A set-up, which may run twice, gives a
    `workspace_id`, of which an existing workspace is returned, and the template's `revision` at
    its request.
    Raises LicenseRequired, LicenseLimit, NameTaken, NotFound, TemplateDisabled, ValidationFailed.
    """
    caller = caller.patiently()
    workspace = states.of_id(workspace_id) if workspace_id else None
    if workspace and workspace.status != "creating":
        return records.one(workspace.id)
    if workspace is None:
        gate.require_valid(caller.user_id)
    template = templates.usable(caller, request["template"])
    if revision is not None:
        template = template_rows.at_revision(template.id, revision)
    columns = columns_of(template, request)
    # Before anything is written: an unavailable Podman leaves nothing behind.
    present = images.present(caller, template.image_ref)
    if present and mapping.needed_bytes(caller, template.image_ref, template.spec["run_as"]):
        present = False  # a copy may take hours, and `creating` has a deadline of minutes
    with numbers.holding() as work:
        if workspace is None:
            columns["work"] = work
            workspace = _insert(caller, workspace_id or new_id("ws"), template, request, columns)
        else:  # an earlier run of the set-up was interrupted
            workspace = _take_up(caller, workspace, work)
        transitions.create(caller, workspace, with_container=present)
    return records.one(workspace.id)


def _take_up(caller: Caller, workspace: Workspace, work: int) -> Workspace:
    """Go on with an interrupted create; raises OperationInProgress when the reconciler was first."""
    with write():
        taken = states.take(workspace, work, "creating")
        if taken is None:
            raise states.in_progress(workspace)
        audit.begin(caller, table.WORKSPACE_CREATE, workspace.id, work, name=workspace.name)
    return taken


def set_up(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    """Queue "Downloads or builds a missing image and creates the workspace as one operation"; no start."""
    gate.require_valid(caller.user_id)
    template = templates.usable(caller, request["template"])
    image_requests.require_source(caller, template)
    columns_of(template, request)
    ports.combine(template.spec["ports"], request.get("ports", []))
    workspace_id = new_id("ws")
    setup = {
        "image_ref": template.image_ref,
        "template_id": template.id,
        "revision": template.revision,
        "workspace": request | {"template": template.id},
    }
    _require_free_name(caller, request["name"], setup)
    quotas.require_room(caller.user_id)  # also checked at the create, but after the download
    return operations.enqueue(caller, "setup", "workspace", workspace_id, setup)


def _require_free_name(caller: Caller, name: str, setup: dict[str, Any]) -> None:
    """Raise NameTaken, or OperationInProgress when the same set-up is already in progress."""
    under_way = database.execute_sql(
        "SELECT o.subject_id, o.request_json FROM operations o"
        " WHERE o.owner_id = ? AND o.kind = 'setup' AND o.status IN ('queued', 'running')"
        f" AND json_extract({operations.REQUEST}, '$.workspace.name') = ?",
        (caller.user_id, name),
    ).fetchone()
    if under_way and json.loads(under_way[1]) == setup:
        operations.require_none(caller, "workspace", under_way[0])
    taken = "SELECT 1 FROM workspaces WHERE owner_id = ? AND name = ?"
    if under_way or database.execute_sql(taken, (caller.user_id, name)).fetchone():
        raise names.taken("workspace", name)


def columns_of(template: Template, request: dict[str, Any]) -> dict[str, Any]:
    """The columns of resources and variables, within the template's rules; raises ValidationFailed."""
    spec = template.spec
    defaults = spec["defaults"]
    granted = resources.resolve(request.get("resources", {}), defaults, spec["limits"], spec["gpu"])
    pairs = defaults.get("env", []) + request.get("env", [])
    env = {pair["name"]: pair["value"] for pair in pairs}
    require_room_for(template_variables.values_of(template) | env)
    return granted._asdict() | {"env_json": json.dumps(env)}


def require_room_for(merged: dict[str, str]) -> None:
    """Raise ValidationFailed for more variables than a workspace may have, the template's included."""
    size = sum(len(text.encode()) for pair in merged.items() for text in pair)
    for code, amount, most, unit in (
        ("too_many", len(merged), ENV_COUNT_MAX, "variables"),
        ("too_large", size, ENV_BYTES_MAX, "bytes of variables"),
    ):
        if amount > most:
            message = f"at most {most} {unit}, the template's included"
            raise ValidationFailed(message, fields=[{"field": "env", "code": code, "message": message}])


def _insert(
    caller: Caller,
    workspace_id: str,
    template: Template,
    request: dict[str, Any],
    columns: dict[str, Any],
) -> Workspace:
    at = now()
    columns |= {
        "id": workspace_id, "owner_id": caller.user_id, "name": request["name"],
        "template_id": template.id,
        "template_revision": template.revision, "image_ref": template.image_ref, "status": "creating",
        "command_json": upgrade_plan.command_column(request.get("command")),
        "status_since": at, "created_at": at, "updated_at": at, "network": template.spec["network"],
        **{name: request[name] for name in records.PLAIN_FIELDS if name in request},
    }  # fmt: skip
    opened = ports.combine(template.spec["ports"], request.get("ports", []))
    with names.taking("workspace", request["name"]):
        templates.usable(caller, template.id)  # still: the agent's answers took their time
        template_rows.at_revision(template.id, template.revision)
        quotas.require_room(caller.user_id)
        database.execute_sql(
            f"INSERT INTO workspaces ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
            tuple(columns.values()),
        )
        ports.adopt(workspace_id, opened)
        detail = {"name": request["name"], "template": template.id}
        audit.begin(caller, table.WORKSPACE_CREATE, workspace_id, columns["work"], **detail)
    return states.find(caller, workspace_id)


# --- changing -------------------------------------------------------------------------


def edit(caller: Caller, ref: str, patch: dict[str, Any], *, expected: Expected = None) -> dict[str, Any]:
    """Change a workspace: "Patches a stopped workspace only"; of a failed one nothing runs either.

    "What `ws edit` changes never costs the user what they installed": the container
    stays, and its next start has the new values. Raises WorkspaceNotStopped,
    ValidationFailed for a patch without a key, and PreconditionFailed.
    """
    with names.taking("workspace", patch.get("name", "")):
        workspace = states.find(caller, ref)
        require_version(workspace, expected)
        # A failed one that holds GPUs may be running, with the present values.
        stopped = workspace.status == "stopped" or (
            workspace.status == "failed" and not leases.of(workspace.id)
        )
        if not stopped:
            raise _not_stopped(workspace, patch)
        if not patch.keys() - {"replace_container"} or (
            patch.get("resources") == {} and not patch.keys() - {"replace_container", "resources"}
        ):
            raise ValidationFailed("the patch names no key to change", hint="svc ws edit --help")
        columns: dict[str, Any] = {
            name: patch[name] for name in ("name", *records.PLAIN_FIELDS) if name in patch
        }
        columns |= _start_columns(workspace, patch) | upgrade_plan.container_columns(workspace, patch)
        if columns:
            states.set_columns(workspace, **columns, updated_at=now())
        audit.add(caller, table.WORKSPACE_EDIT, workspace.id, "ok", keys=sorted(patch))
    return records.one(workspace.id)


def _not_stopped(workspace: Workspace, patch: dict[str, Any]) -> WorkspaceNotStopped:
    """The refusal of an edit, with the command that does it all the same."""
    hint = command(table.WORKSPACE_STOP, ref=workspace.name)
    if set(patch) == {"name"}:
        hint = command(table.WORKSPACE_RENAME, ref=workspace.name, name=patch["name"])
    return WorkspaceNotStopped(
        f"{workspace.name} is {workspace.status}; only a stopped workspace is edited", hint=hint
    )


def require_version(workspace: Workspace, expected: Expected) -> None:
    """Raise PreconditionFailed for a workspace that was changed since the caller read it."""
    if expected is not None:
        hint = f"svc ws get {workspace.name}"
        versions.require(expected, records.one(workspace.id), versions.WORKSPACE, workspace.name, hint)


def rename(caller: Caller, ref: str, name: str, *, expected: Expected = None) -> dict[str, Any]:
    """Give a workspace another name, in every state; raises NameTaken, PreconditionFailed."""
    with names.taking("workspace", name):
        workspace = states.find(caller, ref)
        require_version(workspace, expected)
        if name == workspace.name:
            with audit.changing_nothing(caller, table.WORKSPACE_RENAME, workspace.id):
                return records.one(workspace.id)
        states.set_columns(workspace, name=name, updated_at=now())
        audit.add(caller, table.WORKSPACE_RENAME, workspace.id, "ok", before=workspace.name, name=name)
    return records.one(workspace.id)


def _start_columns(workspace: Workspace, patch: dict[str, Any]) -> dict[str, Any]:
    """The changed columns among those that a start uses: resources and variables."""
    if not {"resources", "env"} & set(patch):
        return {}
    before = resources.request_of(Resources(*(getattr(workspace, name) for name in Resources._fields)))
    present = [{"name": name, "value": value} for name, value in workspace.env.items()]
    request = {"resources": before | patch.get("resources", {}), "env": patch.get("env", present)}
    columns = columns_of(workspace.template, request)
    if "env" in patch:  # an edit gives the whole list: a template's default that is missing stays out
        columns["env_json"] = json.dumps({pair["name"]: pair["value"] for pair in patch["env"]})
    return {name: value for name, value in columns.items() if value != getattr(workspace, name)}


# --- running --------------------------------------------------------------------------


def start(caller: Caller, ref: str) -> dict[str, Any]:
    """Start a workspace; of a running one it succeeds. "Never pulls or builds an image".

    The record is that of a stopped one when its command has ended with 0 by then. Raises
    ImageMissing, QuotaExceeded, GpuUnavailable, LimitsNotEnforceable, OperationInProgress,
    ExitedAtOnce and what the engine raises. It has besides what launchers.autostart() returns.
    """
    caller = caller.patiently()
    workspace = states.find(caller, ref)
    begun = launchers.NONE_BEGUN
    with audit.audited(caller, table.WORKSPACE_START, workspace.id):
        present, runs = _inspect(caller, workspace)
        if not runs:
            begun = _serve(caller, transitions.start(caller, present))
    return records.one(workspace.id) | begun


def _inspect(caller: Caller, workspace: Workspace) -> tuple[Workspace, bool]:
    """The workspace and whether it runs; looks again when the worker has seen its end meanwhile."""
    while workspace.status == "running":
        if containers.is_running(caller, workspace):
            return workspace, True
        before, workspace = workspace, states.find(caller, workspace.id)
        if workspace.status_since == before.status_since:
            break
    return workspace, False


def _serve(caller: Caller, running: Workspace | None) -> dict[str, Any]:
    """After a start: open the ports and start the launchers of what runs; returns how these have begun."""
    if running is None:
        return launchers.NONE_BEGUN
    ports.restore(caller, running)
    return launchers.autostart(caller, running)


def restart(caller: Caller, ref: str, grace_s: int = STOP_GRACE_S) -> dict[str, Any]:
    """Stop a workspace and start it again, with the GPUs that it holds; one that does not run is started.

    Raises as stop and start do.
    """
    caller = caller.patiently()
    workspace = states.find(caller, ref)
    with audit.audited(caller, table.WORKSPACE_RESTART, workspace.id):
        if workspace.status == "running" or calls.runs_unseen(caller, workspace):
            begun = _serve(caller, transitions.restart(caller, workspace, grace_s))
        else:
            begun = _serve(caller, transitions.start(caller, workspace))
    return records.one(workspace.id) | begun


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

    The worker gives a `reason` of its own, and `since`: the start of the run that it
    means, so that a later run is left alone.
    """
    caller = caller.patiently()
    workspace = states.find(caller, ref, owner)
    if since and workspace.status_since != since:
        return records.one(workspace.id)
    reason = reason or _stop_reason(caller, workspace)
    if workspace.status == "stopped" and not calls.runs_unseen(caller, workspace):
        with audit.changing_nothing(caller, table.WORKSPACE_STOP, workspace.id, owner=workspace.owner):
            return records.one(workspace.id)
    with audit.audited(caller, table.WORKSPACE_STOP, workspace.id, owner=workspace.owner):
        transitions.stop(caller, workspace, reason, grace_s)
    return records.one(workspace.id)


def delete(
    caller: Caller, ref: str, *, owner: str | None = None, expected: Expected = None, since: str = ""
) -> None:
    """Delete a workspace, or an administrator's `owner`'s; one that runs is stopped first.

    A missing container is fine. The worker gives `since`, as in stop(). Raises OperationInProgress
    while it starts or stops, PreconditionFailed.
    """
    caller = caller.patiently()
    workspace = states.find(caller, ref, owner)
    if since and workspace.status_since != since:
        return
    require_version(workspace, expected)
    runs = workspace.status == "running" or _runs_unseen(caller, workspace)
    detail = {"owner": workspace.owner, "name": workspace.name, "running": runs}
    with audit.audited(caller, table.WORKSPACE_DELETE, workspace.id, **detail):
        if runs:
            transitions.stop_and_delete(caller, workspace, _stop_reason(caller, workspace), STOP_GRACE_S)
        else:
            transitions.delete(caller, workspace)


def _runs_unseen(caller: Caller, workspace: Workspace) -> bool:
    """Whether it was started by hand; False where Podman does not say: a removal ends it too."""
    try:
        return calls.runs_unseen(caller, workspace)
    except SvcError:
        return False


def _stop_reason(caller: Caller, workspace: Workspace) -> str:
    return "user_requested" if workspace.owner_id == caller.user_id else "admin_stopped"
