"""The start of a workspace: its claim with quota and GPUs, the container's own start, its end when it fails.

Check and lease are one transaction: what does not fit leaves the row as it was.
A start that failed leaves no lease behind, unless nobody could be asked whether
its container runs; then the worker's reconciler gives it up once it has seen.
"""

from __future__ import annotations

import json

from svc.db.connect import write
from svc.domain import operations
from svc.domain.principal import Caller
from svc.domain.quotas import quotas
from svc.domain.workspaces import containers, leases, missing_limits, states
from svc.domain.workspaces.states import Workspace
from svc.errors import EngineFailed, EngineTimeout, EngineUnavailable, GpuUnavailable, SvcError


def claim(before: Workspace) -> tuple[Workspace, list[str]]:
    """Make the row `starting` and lease its GPUs; returns it and the CDI names of those.

    Raises OperationInProgress, QuotaExceeded, GpuUnavailable; then nothing has changed.
    """
    offer = leases.look() if before.gpu_count else None  # a driver may take its time: before the lock
    with write():
        claimed = states.claim(before, "starting")
        if claimed.gpu_count and offer is None:  # an edit came between
            raise states.in_progress(claimed)
        quotas.require_start(claimed.claim)
        taken = leases.take(claimed, offer) if offer else []
    return claimed, [offer.cdi.names[gpu] for gpu in taken] if offer else []


def run(caller: Caller, claimed: Workspace, devices: list[str]) -> str:
    """Start the container with its GPUs; returns the limits that this host does not apply, as JSON text.

    Raises GpuUnavailable for a container that did not get its devices, and
    LimitsNotEnforceable where those limits are demanded; it is stopped again first.
    """
    if not claimed.container_id or claimed.stale:
        containers.make(caller, claimed)
    untrusted = containers.start(caller, claimed, devices)
    unmet = missing_limits.of(untrusted)
    if unmet and missing_limits.refused():
        _end(caller, claimed)
        raise missing_limits.refusal(claimed, unmet)
    absent = untrusted.get("devices_missing", [] if not devices else None)
    if not isinstance(absent, list):
        raise EngineFailed("the engine's answer does not say which devices the container got")
    absent = [device for device in devices if device in absent]
    if absent:
        _end(caller, claimed)
        raise GpuUnavailable(
            f"the container of {claimed.name} did not get {', '.join(absent)}",
            hint="sudo svc admin doctor",
            details={"requested": claimed.gpu_count, "free": 0, "holders": [], "missing": absent},
        )
    return json.dumps(unmet)


def _end(caller: Caller, claimed: Workspace) -> None:
    """Stop what has started and must not run; when that fails the error says that it may still run."""
    try:
        containers.stop(caller, claimed, 0)
    except containers.UNTOUCHED as error:
        raise EngineFailed(f"{claimed.name} could not be stopped again: {error.message}") from error


def settle(caller: Caller, claimed: Workspace, before: Workspace, error: SvcError) -> None:
    """Leave a start that failed: by what is seen now, or as failed when nothing can be seen.

    One that somebody else has settled meanwhile is theirs: what runs now may be a later start's.
    """
    operations.wake()
    if not states.is_still(claimed):
        return
    if isinstance(error, containers.UNTOUCHED):
        with write():
            if before.status == "running":  # it was not, or there would have been nothing to begin
                left = states.move(claimed, "stopped", "container_exited")
            else:
                left = states.move(claimed, before.status, before.status_reason)
            if left:  # unless the reconciler was quicker
                leases.release(claimed.id)
        return
    reason = "start_timeout" if isinstance(error, EngineTimeout) else "engine_error"
    try:
        running = containers.is_running(caller, claimed)
        if not running and leases.of(claimed.id):
            # Podman may still be at it, for an agent that died: it stops only after it has started.
            containers.stop(caller, claimed, 0)
    except SvcError:
        states.move(claimed, "failed", reason)
        return
    if running:
        states.move(claimed, "running", reason)
        return
    lost = isinstance(error, EngineUnavailable)  # nobody refused: the state itself is sound
    with write():
        if states.move(claimed, "stopped" if lost else "failed", reason):
            leases.release(claimed.id)


def confirm_stopped(caller: Caller, before: Workspace) -> Workspace:
    """One that may run although its row does not say so, stopped; returns it as it is then.

    Raises OperationInProgress, and what the engine says.
    """
    claimed = states.claim(before, "stopping", before.status_reason)
    try:
        containers.stop(caller, claimed, 0)
    except SvcError as error:
        containers.settle(caller, claimed, before, error)
        raise
    states.move(claimed, "stopped", before.status_reason)
    return states.find(caller, before.id)


def give_up_unless_running(caller: Caller, claimed: Workspace) -> None:
    """After a start that somebody else has settled meanwhile: end one whose share was given up with it.

    Raises OperationInProgress, unless it was only said to be running before its asker could say so.
    """
    present = states.of_id(claimed.id)
    if present is not None and present.status == "running":
        return
    if present is not None and present.status in states.STEADY:
        confirm_stopped(caller, present)
    elif claimed.gpu_count:  # somebody else's transition, for which these are not leased
        containers.stop(caller, claimed, 0)
    raise states.in_progress(claimed)
