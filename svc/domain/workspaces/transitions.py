"""The transitions of a workspace: create, start, stop, delete, and what the reconciler changes.

Each one claims the row by compare-and-set (svc.domain.workspaces.states), acts
through the owner's agent, and resolves by success or by failure; a failure exit
stands below its transition. Meanwhile it holds a number (svc.db.held): a row whose
number nobody holds is resolved by the reconciler. Its caller is a patient one: a call
that is refused a place among the user's calls would undo what has begun.

After a lost reply no call is repeated: the container is inspected, and the row gets
the result. What cannot be inspected is left to the worker's reconciler.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any

from svc.actions.table import WORKSPACE_CREATE, WORKSPACE_RECONCILE
from svc.db import reserve
from svc.db.connect import write
from svc.db.held import numbers
from svc.domain import engine_hints, operations
from svc.domain.audit import audit
from svc.domain.audit.subjects import Subject
from svc.domain.gpus import health as gpu_health
from svc.domain.licence import gate
from svc.domain.principal import Caller
from svc.domain.quotas import quotas
from svc.domain.workspaces import containers, ends, leases, missing_limits, states
from svc.domain.workspaces.ends import Ended
from svc.domain.workspaces.reconcile_rules import (
    MISSING,
    RESTART,
    RESTORED,
    Row,
    Seen,
    Verdict,
    end_reason,
    needs_stop,
)
from svc.domain.workspaces.states import Workspace
from svc.errors import (
    AccountDisabled,
    EngineFailed,
    EngineTimeout,
    EngineUnavailable,
    GpuUnavailable,
    ImageMissing,
    LimitsNotEnforceable,
    SvcError,
)
from svc.host.ids import now
from svc.limits import CALL_STOP_S, STOP_GRACE_S

RECONCILE_STOP_S = 120  # no client waits, and a start that Podman has not finished may delay the stop

ERROR_MAX = 300  # characters of the message that a row keeps

# Errors after which nothing runs that did not run before: the row gets its former status back.
UNTOUCHED = (ImageMissing, GpuUnavailable, AccountDisabled, LimitsNotEnforceable)


# --- confirmed stopped ------------------------------------------------------------------


def confirm_stopped(
    caller: Caller, claimed: Workspace, grace_s: int = 0, timeout_s: float | None = None
) -> int | None:
    """Stop the container; returns its exit code. Only this confirms that none runs or is about to.

    An inspection does not: a start whose agent died may be under way in Podman, which
    reports the container as not running until it does, and which stops it only after
    that. Raises what the agent raises; then the container may run, and its leases stay.
    """
    return containers.stop(caller, claimed, grace_s, timeout_s or CALL_STOP_S - STOP_GRACE_S + grace_s)


def _resolve_stopped(claimed: Workspace, status: str, reason: str | None, **columns: Any) -> bool:
    """Write a status in which no container runs, and end the leases; False when the row has changed."""
    with write():
        written = states.move(claimed, status, reason, **columns)
        if written:
            leases.release(claimed.id)
    return written


# --- create: (claimed by its INSERT) creating -> stopped | (gone) | failed ----------------


def create(caller: Caller, claimed: Workspace, *, with_container: bool) -> None:
    """Create the container, or leave that to the first start. The caller holds the row's number.

    After a failure nothing stays, or a `failed` row while the container cannot be removed.
    """
    with reserve.entitled():  # what has begun ends, and is recorded
        _create(caller, claimed, with_container=with_container)


def _create(caller: Caller, claimed: Workspace, *, with_container: bool) -> None:
    try:
        if with_container:
            containers.create(caller, claimed)
    except SvcError as error:
        with contextlib.suppress(SvcError):
            _remove(caller, claimed)
        subject = Subject(claimed.name, claimed.owner_id, claimed.owner)  # its row is gone
        audit.end(caller, WORKSPACE_CREATE, claimed.id, error.code, claimed.work, subject)
        raise
    with write():
        states.move(claimed, "stopped")
        audit.end(caller, WORKSPACE_CREATE, claimed.id, "ok", claimed.work)


# --- start: stopped | failed | running (but ended) -> starting -> running -----------------


def start(caller: Caller, before: Workspace) -> Workspace | None:
    """Start a workspace with its GPUs; returns the claimed row, None when its command has ended with 0.

    Raises LicenseRequired, LicenseLimit, OperationInProgress, QuotaExceeded, GpuUnavailable,
    LimitsNotEnforceable, ImageMissing, ExitedAtOnce and what the engine raises. A failed start
    keeps no lease, unless the container could not be inspected.
    """
    gate.require_valid(before.owner_id)  # whoever starts it: its owner, or the worker after a reboot
    if before.status == "failed" and leases.of(before.id):  # it may run, on the GPUs that it holds
        stop(caller, before, before.status_reason)
        before = states.find(caller, before.id)
    if not before.container_id or before.stale:
        containers.copy_image(caller, before)
    with numbers.holding() as work:
        claimed, devices = claim_start(before, work)
        with reserve.entitled():
            runs = _start(caller, claimed, before, devices)
    operations.wake()  # the worker watches it from now on
    return claimed if runs else None


def _start(caller: Caller, claimed: Workspace, before: Workspace, devices: list[str]) -> bool:
    """Act on a claimed start, and write what became of it; False when its command has ended with 0."""
    try:
        if not claimed.container_id or claimed.stale:
            containers.create(caller, claimed)
        elif before.status_reason == RESTORED:  # the snapshot may be from the middle of an upgrade
            containers.replace(caller, claimed)
        untrusted = containers.start(caller, claimed, devices)
        unmet = missing_limits.of(untrusted)
        if (ended := ends.of_start(untrusted)) is not None:
            return _resolve_ended(caller, claimed, ended, unmet)
        refusal = _refusal(claimed, devices, unmet, untrusted)
        if refusal:
            _stop_again(caller, claimed)
            raise refusal
    except SvcError as error:
        _resolve_failed_start(caller, claimed, before, error)
        _note_error(claimed, error)
        raise
    facts = {
        "last_error_json": None,
        "limits_missing_json": json.dumps(unmet),
        "health": gpu_health.OK if devices else gpu_health.UNKNOWN,
    }
    if not states.move(claimed, "running", None, started_at=now(), exit_code=None, **facts):
        _require_running(caller, claimed)
        states.set_columns(claimed, **facts)
    return True


def _note_error(claimed: Workspace, error: SvcError) -> None:
    """Note in the row why a start has failed, for lists; one that changed nothing tells its caller only.

    Administrators see the row too: nothing that a program has printed goes into it.
    """
    if not isinstance(error, UNTOUCHED):
        noted = {"code": error.code, "message": error.message[:ERROR_MAX], "at": now()}
        with contextlib.suppress(SvcError):
            states.set_columns(claimed, last_error_json=json.dumps(noted))


def _resolve_ended(caller: Caller, claimed: Workspace, ended: Ended, unmet: list[str]) -> bool:
    """Write that the command has ended already: False for a batch job that is done, else raises."""
    _stop_again(caller, claimed)
    seen = Seen(running=False, exit_code=ended.exit_code, oom_killed=ended.oom_killed)
    columns = {"started_at": now(), "stopped_at": now(), "exit_code": ended.exit_code}
    columns |= {"limits_missing_json": json.dumps(unmet), "last_error_json": None}
    _resolve_stopped(claimed, "stopped", end_reason(seen, rebooted=False), **columns)
    if error := ends.error_of(claimed, ended, caller.name):
        raise error
    return False


def claim_start(before: Workspace, work: int) -> tuple[Workspace, list[str]]:
    """Make the row `starting` and lease its GPUs, in one transaction; returns it and their CDI names.

    Raises OperationInProgress, QuotaExceeded, GpuUnavailable, LicenseLimit; then nothing has changed.
    """
    offer = leases.offer() if before.gpu_count else None  # asks the driver, so before the write lock
    with write():
        claimed = states.claim(before, work, "starting")
        if claimed.gpu_count and offer is None:  # an edit came between
            raise states.in_progress(claimed)
        quotas.require_start(claimed.claim)
        taken = leases.take(claimed, offer) if offer else []
        gate.require_gpus(len(taken))
    return claimed, [offer.cdi.names[gpu] for gpu in taken] if offer else []


def _refusal(
    claimed: Workspace, devices: list[str], unmet: list[str], untrusted: dict[str, Any]
) -> SvcError | None:
    """Why a container that has started must not run: limits or GPUs that it did not get."""
    if unmet and missing_limits.refused():
        return missing_limits.refusal(claimed.name, unmet)
    absent = untrusted.get("devices_missing", [] if not devices else None)
    if not isinstance(absent, list):
        raise EngineFailed("the engine's reply does not list the devices that the container did not get")
    absent = [device for device in devices if device in absent]
    if not absent:
        return None
    return GpuUnavailable(
        f"the container of {claimed.name} did not get {', '.join(absent)}",
        hint="sudo svc admin doctor",
        details={"requested": claimed.gpu_count, "free": 0, "holders": [], "missing": absent},
    )


def _stop_again(caller: Caller, claimed: Workspace) -> None:
    """Stop what has started and has ended or must not run; no failure of this is one of UNTOUCHED."""
    try:
        confirm_stopped(caller, claimed)
    except UNTOUCHED as error:
        raise EngineFailed(f"{claimed.name} could not be stopped again: {error.message}") from error


def _resolve_failed_start(caller: Caller, claimed: Workspace, before: Workspace, error: SvcError) -> None:
    """Failure exit of a start: by what is seen now, or `failed` with its leases when nothing can be seen.

    A start that was resolved by another process is left alone: what runs now may be a later one.
    """
    operations.wake()
    if not states.is_unchanged(claimed):
        return
    if isinstance(error, UNTOUCHED):
        if before.status == "running":  # its container had ended, or no start would have begun
            _resolve_stopped(claimed, "stopped", "container_exited")
        else:
            _resolve_stopped(claimed, before.status, before.status_reason)
        return
    reason = "start_timeout" if isinstance(error, EngineTimeout) else "engine_error"
    try:
        running = containers.is_running(caller, claimed)
        if not running and leases.of(claimed.id):
            confirm_stopped(caller, claimed)
    except SvcError:
        states.move(claimed, "failed", reason, started_at=now())  # what may run began now
        return
    if running:
        states.move(claimed, "running", reason, started_at=now())
        error.message += f"; {claimed.name} runs"  # of the start itself no more is known
    else:
        # Where only the reply was lost, the engine refused nothing: the state itself is sound.
        _resolve_stopped(claimed, "stopped" if isinstance(error, EngineUnavailable) else "failed", reason)


def _require_running(caller: Caller, claimed: Workspace) -> None:
    """After a start that another process has resolved: stop it, unless it was found running.

    Its share of the quota and its leases ended with that. Raises OperationInProgress.
    """
    present = states.of_id(claimed.id)
    if present is not None and present.status == "running":
        return
    if present is not None and present.status in states.STEADY:
        stop(caller, present, present.status_reason)
    elif claimed.gpu_count:  # in another transition, for which these GPUs are not leased
        confirm_stopped(caller, claimed)
    raise states.in_progress(claimed)


# --- stop: running | failed | stopped (but running) -> stopping -> stopped ----------------


def stop(caller: Caller, before: Workspace, reason: str | None, grace_s: int = 0) -> None:
    """Stop a workspace; raises OperationInProgress and what the engine raises."""
    with numbers.holding() as work:
        claimed = states.claim(before, work, "stopping", reason)
        exit_code = _stop(caller, claimed, before, grace_s)
        _resolve_stopped(claimed, "stopped", reason, stopped_at=now(), exit_code=exit_code)


def _stop(caller: Caller, claimed: Workspace, before: Workspace, grace_s: int) -> int | None:
    """Carry out a claimed stop; returns the container's exit code. After a failure the row has its status."""
    try:
        return confirm_stopped(caller, claimed, grace_s)
    except SvcError as error:
        if claimed.owner_id == caller.user_id:  # a hint is for who owns the store
            engine_hints.complete(error, user=caller.name)
        _resolve_failed_stop(caller, claimed, before, error)
        raise


def _resolve_failed_stop(caller: Caller, claimed: Workspace, before: Workspace, error: SvcError) -> None:
    """Failure exit of a stop: by what is seen now, or `failed` when nothing can be seen.

    Another user's workspace is left to the reconciler, which may inspect everybody's.
    """
    operations.wake()
    if isinstance(error, UNTOUCHED):
        states.move(claimed, before.status, before.status_reason)
        return
    if claimed.owner_id != caller.user_id:
        return
    try:
        running = containers.is_running(caller, claimed)
    except SvcError:
        states.move(claimed, "failed", "engine_error")
        return
    # As after a start; but behind a failed one a start may be under way, so that its leases stay.
    sound = isinstance(error, EngineUnavailable) and before.status != "failed"
    if sound and not running:
        error.message += f"; {claimed.name} is stopped"
    states.move(claimed, "running" if running else "stopped" if sound else "failed", "engine_error")


# --- restart: running -> stopping -> starting -> running ----------------------------------


def restart(caller: Caller, before: Workspace, grace_s: int) -> Workspace | None:
    """Stop a workspace that runs and start it again; returns as start() does.

    One claim from the stop to the end, and its leases are kept: nobody else gets its GPUs between. What
    would refuse the start is asked before the stop, so that a refused restart changes nothing. Interrupted,
    or after a start that failed, it is stopped. Raises as stop() and start() do.
    """
    gate.require_valid(before.owner_id)
    with numbers.holding() as work:
        with write():
            stopping = states.claim(before, work, "stopping", RESTART)
            quotas.require_start(stopping.claim)
        exit_code = _stop(caller, stopping, before, grace_s)
        with reserve.entitled():
            claimed, devices = _claim_again(stopping, work, exit_code)
            ended = stopping._replace(status="stopped", status_reason=RESTART)
            runs = _start(caller, claimed, ended, devices)
    operations.wake()
    return claimed if runs else None


def _claim_again(stopping: Workspace, work: int, exit_code: int | None) -> tuple[Workspace, list[str]]:
    """Make the row of a stopped container `starting`, with the GPUs that it holds; as claim_start()."""
    offer = leases.offer() if stopping.gpu_count else None
    columns = {"stopped_at": now(), "exit_code": exit_code}
    try:
        with write():
            claimed = states.take(stopping, work, "starting", RESTART, **columns)
            if claimed is None:  # resolved by the reconciler, past the deadline
                raise states.in_progress(stopping)
            held = leases.keep(claimed, offer) if offer else []
    except GpuUnavailable as error:  # lost from the host since its start
        _resolve_stopped(stopping, "stopped", error.code, **columns)
        raise
    return claimed, [offer.cdi.names[gpu] for gpu in held] if offer else []


# --- delete: stopped | failed -> deleting -> (gone); running -> stopping -> deleting -> (gone) ---


def delete(caller: Caller, before: Workspace) -> None:
    """Delete a workspace; a missing container is fine. Raises OperationInProgress and engine errors."""
    with numbers.holding() as work:
        _remove(caller, states.claim(before, work, "deleting"))


def stop_and_delete(caller: Caller, before: Workspace, reason: str, grace_s: int) -> None:
    """Delete a workspace that runs. Raises OperationInProgress and engine errors.

    One claim from the stop to the end, so that no start comes between. While it stops, it is
    `stopping`: what it uses counts for its owner's quota, and after a failed or interrupted stop it
    is what a stop leaves, deleted by nobody. Its leases end with the confirmed stop.
    """
    with numbers.holding() as work:
        stopping = states.claim(before, work, "stopping", reason)
        exit_code = _stop(caller, stopping, before, grace_s)
        with write():
            claimed = states.take(stopping, work, "deleting", stopped_at=now(), exit_code=exit_code)
            if claimed is None:  # resolved by the reconciler, past the deadline
                raise states.in_progress(stopping)
            leases.release(claimed.id)
        _remove(caller, claimed)


def _remove(caller: Caller, claimed: Workspace) -> None:
    """Remove the container, then the row; while the container cannot be removed the row is `failed`."""
    try:
        containers.remove(caller, claimed)
    except SvcError:
        states.move(claimed, "failed", "engine_error")
        operations.wake()
        raise
    states.remove(claimed)


# --- reconcile: the worker's verdict on a row ----------------------------------------------


def reconcile(caller: Caller, row: Row, verdict: Verdict, *, has_container: bool = False) -> bool:
    """Bring a row to a verdict of reconcile_rules.judge(); False when it has changed since it was judged.

    A row says `stopped` of a container that may be starting unseen, and its leases end, only behind
    a confirmed stop. Raises what the engine raises; the next inspection tries again.
    """
    caller = caller.patiently()
    workspace = states.find_unchanged(row.id, row.status, row.status_since)
    if workspace is None:
        return False
    with reserve.entitled():
        if needs_stop(row, verdict):
            return _stop_unseen(caller, workspace, row, verdict)
        restored = row.status_reason == RESTORED and verdict.status == "stopped"  # one that runs is in use
        if restored and containers.replace(caller, workspace):
            verdict = verdict._replace(reason=None)
        if verdict.status == "gone" and has_container:
            containers.remove(caller, workspace)
        return _write_verdict(caller, workspace, row.status, verdict)


def _stop_unseen(caller: Caller, workspace: Workspace, row: Row, verdict: Verdict) -> bool:
    """Stop a container that may be starting unseen, then write the verdict."""
    with numbers.holding() as work:
        claimed = states.take(workspace, work, "stopping", row.status_reason)  # keeps others from starting it
        if claimed is None:
            return False
        try:
            exit_code = confirm_stopped(caller, claimed, timeout_s=RECONCILE_STOP_S)
        except SvcError:
            states.move(claimed, "failed", verdict.reason or "engine_error")
            raise
        if exit_code is not None:
            verdict = verdict._replace(exit_code=exit_code)
        return _write_verdict(caller, claimed, row.status, verdict)


def _write_verdict(caller: Caller, workspace: Workspace, former_status: str, verdict: Verdict) -> bool:
    """Write a verdict and its audit row in one transaction."""
    status, reason, exit_code = verdict
    columns: dict[str, Any]
    with write():
        if status == "gone":
            written = states.remove(workspace)
        elif status == "running":
            columns = {"exit_code": exit_code, "started_at": workspace.began_at(former_status)}
            written = states.move(workspace, status, reason, **columns)
        else:
            columns = {"stopped_at": now()} if status == "stopped" else {}
            if reason == MISSING:  # the next start creates one
                columns["container_id"] = None
            written = _resolve_stopped(workspace, status, reason, exit_code=exit_code, **columns)
        if written:
            detail = {"from": former_status, "reason": reason, "exit_code": exit_code}
            audit.add(caller, WORKSPACE_RECONCILE, workspace.id, status, **detail)
    return written
