"""A workspace's container, through its owner's agent: made, looked at, settled.

Verbs are idempotent by container name and none is repeated blindly: after a
lost answer the container is looked at, and the row says what was seen.
"""

from __future__ import annotations

import json
from typing import Any

from svc.db.ids import now
from svc.domain import operations, untrusted
from svc.domain.images import images
from svc.domain.images import records as image_records
from svc.domain.principal import Caller
from svc.domain.templates import (
    revisions as template_revisions,
)
from svc.domain.templates import (
    rows as template_rows,
)
from svc.domain.templates import (
    variables as template_variables,
)
from svc.domain.templates.rows import Template
from svc.domain.workspaces import missing_limits, states
from svc.domain.workspaces.states import Workspace
from svc.errors import (
    AccountDisabled,
    EngineTimeout,
    EngineUnavailable,
    GpuUnavailable,
    ImageMissing,
    LimitsNotEnforceable,
    NotFound,
    SvcError,
)
from svc.limits import CALL_STOP_S, STOP_GRACE_S

# Refusals after which nothing runs that did not run before: the row goes back to where it was.
UNTOUCHED = (ImageMissing, GpuUnavailable, AccountDisabled, LimitsNotEnforceable)


def make(caller: Caller, workspace: Workspace) -> None:
    """Make the container from the caller's own image; raises ImageMissing, and never pulls.

    A stale one goes first: it was never started, so nobody installed anything in
    it. Raises LimitsNotEnforceable, and leaves none, where limits are demanded
    that this host does not apply.
    """
    digest = images.look(caller, workspace.image_ref)
    if digest is None:
        raise missing(workspace)
    if workspace.stale:
        remove(caller, workspace)
    try:
        made = caller.ask("ctr.create", _arguments(workspace))
    except ImageMissing:  # gone since the look
        raise missing(workspace) from None
    except (EngineTimeout, EngineUnavailable):  # it may be there: made anew, as the row will say then
        states.set_columns(workspace, stale=1)
        raise
    unmet = missing_limits.of(made)
    if unmet and missing_limits.refused():
        remove(caller, workspace)
        raise missing_limits.refusal(workspace, unmet)
    states.set_columns(
        workspace,
        container_id=untrusted.get_text(made, "container_id", 64),
        image_digest=digest or None,
        limits_missing_json=json.dumps(unmet),
        stale=0,
    )


def missing(workspace: Workspace) -> ImageMissing:
    """The refusal that names the way out: "Starting a workspace never pulls or builds an image"."""
    template_id = workspace.template_id
    newest = template_revisions.image_of(template_id)
    word = image_records.verb(workspace.image_ref)
    hint = f"svc image {word} {template_id} --wait"
    if newest != workspace.image_ref:  # what a pull or a build would bring is another one by now
        hint = f"svc ws setup --template {template_id} --name {workspace.name}-2"
    return ImageMissing(
        f"the image {workspace.image_ref} is not in your store; a start never {word}s it",
        hint=hint,
        details={"image_ref": workspace.image_ref, "template": template_id},
    )


def _arguments(workspace: Workspace) -> dict[str, Any]:
    """The arguments of ctr.create."""
    template = template_rows.at_revision(workspace.template_id, workspace.template_revision)
    spec = template.spec
    return {
        "id": workspace.id,
        "image": workspace.image_ref,
        "name": workspace.name,
        "command": spec["command"],
        "run_as": spec["run_as"],
        "mounts": spec["mounts"],
        **_changeable(workspace, template),
    }


def _changeable(workspace: Workspace, template: Template) -> dict[str, Any]:
    """What each start says anew; the template's own variables come under the workspace's."""
    return {
        "env": template_variables.values_of(template) | workspace.env,
        "resources": {
            "cpu_limit": workspace.cpu_limit,
            "memory_bytes": workspace.memory_bytes,
            "shm_bytes": workspace.shm_bytes,
            "pids_limit": workspace.pids_limit,
        },
    }


def start(caller: Caller, workspace: Workspace, devices: list[str]) -> dict[str, Any]:
    """Start the container with what the row says now and these CDI devices; the agent's untrusted answer.

    One that was removed behind our back is made anew, as at the first start. Raises
    OperationInProgress, and asks nothing, once somebody else has settled the start.
    """
    template = template_rows.at_revision(workspace.template_id, workspace.template_revision)
    arguments = {"id": workspace.id, **_changeable(workspace, template), "devices": devices}
    try:
        return _ask_start(caller, workspace, arguments)
    except NotFound:
        make(caller, workspace)
        return _ask_start(caller, workspace, arguments)


def _ask_start(caller: Caller, workspace: Workspace, arguments: dict[str, Any]) -> dict[str, Any]:
    if not states.is_still(workspace):  # to make it took too long: its GPUs may be another's by now
        raise states.in_progress(workspace)
    return caller.ask("ctr.start", arguments)


def remove(caller: Caller, workspace: Workspace) -> None:
    """Remove the container; a missing one is no error."""
    try:
        caller.ask("ctr.remove", {"id": workspace.id}, owner=workspace.owner)
    except NotFound:
        pass


def stop(caller: Caller, workspace: Workspace, grace_s: int) -> int | None:
    """Stop the container; returns its exit code, None without one. A missing one is no error."""
    try:
        stopped = caller.ask(
            "ctr.stop",
            {"id": workspace.id, "grace_s": grace_s},
            owner=workspace.owner,
            timeout_s=CALL_STOP_S - STOP_GRACE_S + grace_s,
        )
    except NotFound:
        return None
    return untrusted.find_number(stopped, "exit_code")


def is_running(caller: Caller, workspace: Workspace) -> bool:
    """Whether Podman says that the container runs; a missing one does not."""
    seen = caller.ask("ctr.inspect", {"id": workspace.id})
    return untrusted.get_flag(seen, "exists") and untrusted.get_text(seen, "status", 64) == "running"


def settle(caller: Caller, claimed: Workspace, before: Workspace, error: SvcError) -> None:
    """Leave a stop that failed: by what is seen now, or as failed when nothing can be seen.

    Another's workspace is left to the reconciler, which may look at everybody's.
    """
    operations.wake()
    if isinstance(error, UNTOUCHED):
        states.move(claimed, before.status, before.status_reason)
        return
    if claimed.owner_id != caller.user_id:
        return
    try:
        running = is_running(caller, claimed)
    except SvcError:
        states.move(claimed, "failed", "engine_error")
    else:
        # Nobody refused: the state itself is sound. But behind a failed one a start may be under way.
        sound = isinstance(error, EngineUnavailable) and before.status != "failed"
        states.move(claimed, "running" if running else "stopped" if sound else "failed", "engine_error")


def runs_unseen(caller: Caller, workspace: Workspace) -> bool:
    """Whether a workspace that the row calls stopped runs all the same, started by the user's own hand.

    "Podman is the truth for running and stopped", where it can be asked.
    """
    if not workspace.container_id or workspace.status not in ("stopped", "failed"):
        return False
    if workspace.owner_id != caller.user_id:
        return False
    try:
        return is_running(caller, workspace)
    except EngineUnavailable:
        return False


def note_end(caller: Caller, workspace: Workspace) -> None:
    """After a call that found a running workspace's container ended: say so in the row."""
    try:
        if not is_running(caller, workspace):
            states.move(workspace, "stopped", "container_exited", stopped_at=now())
    except SvcError:
        operations.wake()  # the reconciler will look
