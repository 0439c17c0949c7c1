"""A workspace's container, through its owner's agent: create, start, stop, remove, inspect.

Verbs are idempotent by container name. The status of the row is changed by the
callers (transitions.py) only; create() notes in it what container there is.
"""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any, NamedTuple

from svc.actions.commands import command
from svc.actions.table import BY_NAME, WORKSPACE_SETUP
from svc.domain import engine_hints, untrusted
from svc.domain.images import images, mapping
from svc.domain.images import records as image_records
from svc.domain.principal import Caller
from svc.domain.templates import revisions as template_revisions
from svc.domain.templates import rows as template_rows
from svc.domain.templates import variables as template_variables
from svc.domain.workspaces import missing_limits, states
from svc.domain.workspaces.reconcile_rules import Seen
from svc.domain.workspaces.states import Workspace
from svc.errors import EngineTimeout, EngineUnavailable, ImageMissing, NotFound

CONTAINER_ID = re.compile(r"[0-9a-f]{64}")


def copy_image(caller: Caller, workspace: Workspace) -> None:
    """Have the copy of its image made that `run_as` needs, if any: before a state that has a deadline.

    A missing image is left to create() and prepare(), which say the way out.
    """
    with contextlib.suppress(ImageMissing), engine_hints.completing(**names(caller, workspace)):
        mapping.ensure(caller, workspace.image_ref, workspace.template.spec["run_as"])


def create(caller: Caller, workspace: Workspace) -> None:
    """Create the container from the caller's own image, and note it in the row; never pulls.

    A stale one is removed first: it was never started, so nothing is installed in it. What an upgrade
    has prepared takes its place instead.
    Raises ImageMissing, and LimitsNotEnforceable where limits are required that this
    host cannot apply; then no container is left.
    """
    if workspace.stale and replace(caller, workspace):
        return
    digest = images.inspect(caller, workspace.image_ref)
    if digest is None:
        raise image_missing(caller, workspace)
    if workspace.stale:
        remove(caller, workspace)
    try:
        with engine_hints.completing(**names(caller, workspace)):
            mapping.ensure(caller, workspace.image_ref, workspace.template.spec["run_as"])
            created = caller.ask("ctr.create", _create_arguments(workspace))
    except ImageMissing:  # removed since it was inspected
        raise image_missing(caller, workspace) from None
    except (EngineTimeout, EngineUnavailable):  # it may exist, with values that an edit changes: stale
        states.set_columns(workspace, stale=1)
        raise
    unmet = missing_limits.of(created)
    if unmet and missing_limits.refused():
        remove(caller, workspace)
        raise missing_limits.refusal(workspace.name, unmet)
    states.set_columns(
        workspace,
        container_id=untrusted.get_text(created, "container_id", 64),
        image_digest=digest or None,
        limits_missing_json=json.dumps(unmet),
        stale=0,
    )


class Prepared(NamedTuple):
    """A container that is to replace a workspace's own."""

    container_id: str
    image_digest: str | None
    unmet: list[str]


def prepare(caller: Caller, workspace: Workspace) -> Prepared:
    """Create, beside its container, the one that this row describes; never pulls. Raises as create does."""
    digest = images.inspect(caller, workspace.image_ref)
    if digest is None:
        raise image_missing(caller, workspace)
    try:
        with engine_hints.completing(**names(caller, workspace)):
            mapping.ensure(caller, workspace.image_ref, workspace.template.spec["run_as"])
            created = caller.ask("ctr.prepare", _create_arguments(workspace))
    except ImageMissing:  # removed since it was inspected
        raise image_missing(caller, workspace) from None
    unmet = missing_limits.of(created)
    if unmet and missing_limits.refused():
        raise missing_limits.refusal(workspace.name, unmet)
    return Prepared(untrusted.get_text(created, "container_id", 64), digest or None, unmet)


def replace(caller: Caller, workspace: Workspace) -> bool:
    """Put the container that the row names in its place, if it was prepared; whether it is there now.

    Does nothing but that, so it may be repeated, and tried for every row that may have been interrupted.
    """
    if not CONTAINER_ID.fullmatch(workspace.container_id or ""):  # it is an agent's word
        return False
    reply = caller.ask("ctr.replace", {"id": workspace.id, "container_id": workspace.container_id})
    if not untrusted.get_flag(reply, "replaced"):
        return False
    states.set_columns(workspace, stale=0)
    return True


def image_missing(caller: Caller, workspace: Workspace) -> ImageMissing:
    """The refusal with its way out: "Starting a workspace never pulls or builds an image"."""
    template_id = workspace.template_id
    template = template_rows.reference(caller.user_id, template_id)
    verb = image_records.verb(workspace.image_ref)
    hint = command(BY_NAME[f"image.{verb}"], ref=template)
    if template_revisions.image_of(template_id) != workspace.image_ref:  # it would bring another image
        hint = command(WORKSPACE_SETUP, template=template, name=f"{workspace.name}-2")
    return ImageMissing(
        f"the image {workspace.image_ref} is not in your store; a start never {verb}s it",
        hint=hint,
        details={"image_ref": workspace.image_ref, "template": template_id},
    )


def _create_arguments(workspace: Workspace) -> dict[str, Any]:
    """The arguments of ctr.create."""
    spec = workspace.template.spec
    return {
        **_start_arguments(workspace),
        "image": workspace.image_ref,
        "name": workspace.name,
        "command": workspace.command,
        "run_as": spec["run_as"],
        "mounts": spec["mounts"],
    }


def _start_arguments(workspace: Workspace) -> dict[str, Any]:
    """The arguments that an edit may change: of ctr.create, and of ctr.start each time."""
    return {
        "id": workspace.id,
        "env": template_variables.values_of(workspace.template) | workspace.env,
        "resources": {
            "cpu_limit": workspace.cpu_limit,
            "memory_bytes": workspace.memory_bytes,
            "shm_bytes": workspace.shm_bytes,
            "pids_limit": workspace.pids_limit,
        },
        "network": {"name": workspace.network, "alias": workspace.name} if workspace.network else None,
    }


def start(caller: Caller, workspace: Workspace, devices: list[str]) -> dict[str, Any]:
    """Start the container with the row's values and these CDI devices; the agent's untrusted reply.

    A container that was removed by hand is created again. Raises OperationInProgress
    without a call once the claimed row has changed.
    """
    arguments = _start_arguments(workspace) | {"devices": devices}
    try:
        return _ask_start(caller, workspace, arguments)
    except NotFound:
        create(caller, workspace)
        return _ask_start(caller, workspace, arguments)


def _ask_start(caller: Caller, workspace: Workspace, arguments: dict[str, Any]) -> dict[str, Any]:
    if not states.is_unchanged(workspace):  # creating it took too long: its GPUs may be another's by now
        raise states.in_progress(workspace)
    with engine_hints.completing(**names(caller, workspace)):
        return caller.ask("ctr.start", arguments)


def names(caller: Caller, workspace: Workspace) -> dict[str, str]:
    """What the hint of a failed create or start may name."""
    return {
        "workspace": workspace.name,
        "workspace_id": workspace.id,
        "template": template_rows.reference(caller.user_id, workspace.template_id),
        "user": caller.name,
    }


def remove(caller: Caller, workspace: Workspace) -> None:
    """Remove the container; a missing one is no error."""
    with contextlib.suppress(NotFound):
        caller.ask("ctr.remove", {"id": workspace.id}, owner=workspace.owner)


def stop(caller: Caller, workspace: Workspace, grace_s: int, timeout_s: float) -> int | None:
    """Stop the container; returns its exit code, None without one. A missing one is no error."""
    arguments = {"id": workspace.id, "grace_s": grace_s}
    try:
        stopped = caller.ask("ctr.stop", arguments, owner=workspace.owner, timeout_s=timeout_s)
    except NotFound:
        return None
    return untrusted.find_number(stopped, "exit_code")


def inspect(caller: Caller, workspace: Workspace) -> Seen | None:
    """The container as Podman reports it; None when it is missing."""
    seen = caller.ask("ctr.inspect", {"id": workspace.id})
    if not untrusted.get_flag(seen, "exists"):
        return None
    return Seen(
        running=untrusted.get_text(seen, "status", 64) == "running",
        exit_code=untrusted.find_number(seen, "exit_code"),
        oom_killed=seen.get("oom_killed") is True,
    )


def is_running(caller: Caller, workspace: Workspace) -> bool:
    """Whether Podman reports the container as running; a missing one does not run."""
    seen = inspect(caller, workspace)
    return seen is not None and seen.running
