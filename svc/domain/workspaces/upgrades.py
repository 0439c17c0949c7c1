"""The move of a stopped workspace to its template's newest revision and the newest image of it.

Where the container can stay it does, with everything that is installed in it: then the row changes, and
the next start has the new values. Else a new container is prepared beside the present one, and one
transaction makes it the workspace's: killed before that, the workspace is the old one, killed after it
the new one, whose container its next start puts in place.

    stopped | failed -> creating (reason `upgrade`) -> stopped
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

from svc.actions.commands import command, upgrade_preview
from svc.actions.table import WORKSPACE_STOP, WORKSPACE_UPGRADE
from svc.db import reserve
from svc.db.connect import write
from svc.db.held import numbers
from svc.domain import operations
from svc.domain.audit import audit
from svc.domain.images import records as image_records
from svc.domain.principal import Caller
from svc.domain.templates import templates
from svc.domain.templates import variables as template_variables
from svc.domain.templates.rows import Template
from svc.domain.versions import Expected
from svc.domain.workspaces import calls, containers, leases, ports, records, states, upgrade_plan, workspaces
from svc.domain.workspaces.containers import Prepared
from svc.domain.workspaces.reconcile_rules import UPGRADE
from svc.domain.workspaces.states import Workspace
from svc.domain.workspaces.upgrade_plan import Plan
from svc.errors import Conflict, ReplacementRequired, SvcError, WorkspaceNotStopped


def preview(caller: Caller, ref: str) -> dict[str, Any]:
    """What an upgrade would change, in every state; {before, after, container, changes}.

    Raises NotFound, TemplateDisabled.
    """
    workspace = states.find(caller, ref)
    return _plan(workspace, templates.usable(caller, workspace.template_id)).record()


def upgrade(
    caller: Caller, ref: str, revision: int | None = None, *, replace: bool = False, expected: Expected = None
) -> dict[str, Any]:
    """Upgrade a stopped workspace; returns its record. At the newest revision, with its
    newest image, it succeeds.

    `revision` is the one that the caller has seen the plan of. `replace`: a new container may take the
    place of the present one. Raises NotFound, TemplateDisabled, WorkspaceNotStopped, OperationInProgress,
    Conflict for another newest revision, ReplacementRequired, ImageMissing, PreconditionFailed and what
    the engine raises; then nothing has changed.
    """
    caller = caller.patiently()
    workspace = states.find(caller, ref)
    new = templates.usable(caller, workspace.template_id)
    with audit.audited(caller, WORKSPACE_UPGRADE, workspace.id, before=workspace.template_revision) as detail:
        if revision is not None and revision != new.revision:
            raise Conflict(
                f"the newest revision of {new.name} is {new.revision}, not {revision}",
                hint=upgrade_preview(workspace.name),
            )
        if _plan(workspace, new).is_due:
            plan = _upgrade(caller, workspace, new, replace, expected)
            detail |= {"after": plan.after, "container": plan.container}
            detail["changes"] = sorted({change["part"] for change in plan.changes})
    return records.one(workspace.id)


def _plan(workspace: Workspace, new: Template) -> Plan:
    digest = image_records.digest_of(workspace.owner_id, new.image_ref)
    return upgrade_plan.make(workspace, ports.rows_of(workspace.id), new, digest)


def _upgrade(caller: Caller, before: Workspace, new: Template, replace: bool, expected: Expected) -> Plan:
    """Claim the row, act, and resolve the claim; a refusal gives the row its former status back."""
    if before.status in states.STEADY:
        _require_stopped(caller, before)
        plan = _plan(before, new)
        if plan.container == "replaced" and replace:
            containers.copy_image(caller, plan.row)
    with numbers.holding() as work:
        with write():
            workspaces.require_version(before, expected)
            claimed = states.claim(before, work, "creating", UPGRADE)
        with reserve.entitled():  # what has begun ends, and is recorded
            plan, prepared, written = _carry_out(caller, claimed, before, new, replace)
    if prepared is not None:
        with contextlib.suppress(SvcError):  # then the next start does it
            containers.replace(caller, written)
    return plan


def _carry_out(
    caller: Caller, claimed: Workspace, before: Workspace, new: Template, replace: bool
) -> tuple[Plan, Prepared | None, Workspace]:
    """The plan, what was prepared for it, and the row of a claimed upgrade; after a failure the old one."""
    try:
        plan = _plan(claimed, new)
        workspaces.require_room_for(template_variables.values_of(new) | plan.row.env)
        if plan.container == "replaced" and not replace:
            raise _replacement(plan)
        prepared = containers.prepare(caller, plan.row) if plan.container == "replaced" else None
        return plan, prepared, _commit(claimed, before, new, prepared)
    except SvcError:
        states.move(claimed, before.status, before.status_reason)
        operations.wake()
        raise


def _require_stopped(caller: Caller, workspace: Workspace) -> None:
    """Raise WorkspaceNotStopped for one that runs or may run, also by its user's own hand."""
    idle = workspace.status == "stopped" or (workspace.status == "failed" and not leases.of(workspace.id))
    if not idle or calls.runs_unseen(caller, workspace):
        raise WorkspaceNotStopped(
            f"{workspace.name} is {workspace.status if not idle else 'running'};"
            " only a stopped workspace is upgraded",
            hint=command(WORKSPACE_STOP, ref=workspace.name).then(f"svc ws upgrade {workspace.name}"),
        )


def _commit(claimed: Workspace, before: Workspace, new: Template, prepared: Prepared | None) -> Workspace:
    """Make the workspace the new one, in one transaction; returns its row. Raises OperationInProgress."""
    status: tuple[str, str | None] = (before.status, before.status_reason)
    with write():
        plan = _plan(claimed, new)  # its ports may have changed meanwhile
        row = plan.row
        columns: dict[str, Any] = {
            "template_revision": row.template_revision, "image_ref": row.image_ref, "env_json": row.env_json,
            "cpu_limit": row.cpu_limit, "memory_bytes": row.memory_bytes, "shm_bytes": row.shm_bytes,
            "pids_limit": row.pids_limit, "gpu_count": row.gpu_count, "gpu_mode": row.gpu_mode,
            "network": row.network,
        }  # fmt: skip
        if prepared is not None:
            status = ("stopped", None)
            columns |= {
                "container_id": prepared.container_id, "image_digest": prepared.image_digest,
                "limits_missing_json": json.dumps(prepared.unmet), "stale": 1,
            }  # fmt: skip
        if not states.move(claimed, *status, **columns):  # resolved by the reconciler, past the deadline
            raise states.in_progress(claimed)
        ports.change(claimed.id, *plan.ports)
    written = states.of_id(claimed.id)
    return written if written is not None else row


def _replacement(plan: Plan) -> ReplacementRequired:
    """The refusal of an upgrade that would cost what is installed in the container."""
    parts = [change["part"] for change in plan.changes if change["needs_container"]]
    name = plan.row.name
    why = f"revision {plan.after} has another {' and another '.join(parts)}"
    if plan.before == plan.after:
        why = "its image was built or pulled again"
    return ReplacementRequired(
        f"{why}: {name} needs a new container,"
        " and what was installed in the present one is lost; the files of /work stay",
        hint=f"svc ws upgrade {name}",
        details={"parts": parts},
    )
