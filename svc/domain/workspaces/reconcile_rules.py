"""What a look at Podman says about a workspace's row: "Podman is the truth for running and stopped".

Pure rules and one compare-and-set; the worker brings what it saw. No state is
without an exit: every transitional one ends by what is seen, by a server that
restarted under it (orphan), or by its deadline.
"""

from __future__ import annotations

from typing import NamedTuple

from svc.db.connect import database, write
from svc.db.ids import now
from svc.domain import audit
from svc.domain.workspaces import leases
from svc.limits import TRANSITION_DEADLINE_S

SETTLE_S = 3.0  # a younger transition is the listener's own business


class Row(NamedTuple):
    """What the rules need of a workspace's row; `age_s` is how long it has its status."""

    id: str
    owner_id: int
    owner: str
    status: str
    status_reason: str | None
    status_since: str
    started_at: str | None
    age_s: float
    leased: int = 0  # whether it holds GPUs


class Seen(NamedTuple):
    """A container as Podman shows it."""

    running: bool
    exit_code: int | None
    oom_killed: bool


class Verdict(NamedTuple):
    """What the row should say: a status (`gone` for a row to be removed), its reason and the exit code."""

    status: str
    reason: str | None
    exit_code: int | None = None


def judge(row: Row, seen: Seen | None, *, orphan: bool, rebooted: bool) -> Verdict | None:
    """The row's right status, or None when it is right already or not yet to be judged.

    `seen` is None without a container. `orphan`: the server that began the
    transition is gone. `rebooted`: the host started after the workspace did.
    A failed one that holds GPUs and does not run gives them up. What began in the
    future did so before the clock was set back, and is as old as it says the other way.
    """
    running = seen is not None and seen.running
    if row.status == "running":
        return None if running else _ended(seen, rebooted)
    if row.status in ("stopped", "failed"):
        if running:
            return Verdict("running", None)
        gives_up = row.status == "failed" and row.leased and abs(row.age_s) >= SETTLE_S
        return Verdict("failed", row.status_reason, seen.exit_code if seen else None) if gives_up else None
    overdue = orphan or abs(row.age_s) > TRANSITION_DEADLINE_S
    if not overdue and abs(row.age_s) < SETTLE_S:
        return None
    return _transition(row, seen, running, overdue, orphan)


def _ended(seen: Seen | None, rebooted: bool) -> Verdict:
    if seen is not None and seen.oom_killed:
        return Verdict("stopped", "oom_killed", seen.exit_code)
    if rebooted:
        return Verdict("stopped", "host_reboot", seen.exit_code if seen else None)
    return Verdict("stopped", "container_exited", seen.exit_code if seen else None)


def _transition(row: Row, seen: Seen | None, running: bool, overdue: bool, orphan: bool) -> Verdict | None:
    exit_code = seen.exit_code if seen else None
    late = "engine_error" if orphan else "start_timeout"
    if row.status == "creating":
        if seen is not None:
            return Verdict("running" if running else "stopped", None)
        return Verdict("stopped", "engine_error") if overdue else None
    if row.status == "starting":
        if running:
            return Verdict("running", None)
        return Verdict("stopped", late, exit_code) if overdue else None
    if row.status == "stopping":
        if not running:
            return Verdict("stopped", row.status_reason or "user_requested", exit_code)
        return Verdict("running", None) if overdue else None
    # deleting: with the container gone or the deadline over, the row goes too
    return Verdict("gone", None) if seen is None or overdue else None


_SELECT = (
    "SELECT w.id, w.owner_id, u.name, w.status, w.status_reason, w.status_since, w.started_at,"
    " (julianday('now') - julianday(w.status_since)) * 86400.0,"
    " EXISTS (SELECT 1 FROM gpu_leases l WHERE l.workspace_id = w.id)"
    " FROM workspaces w JOIN users u ON u.id = w.owner_id"
)


def rows(owner_id: int | None = None) -> list[Row]:
    """Every workspace's row for the rules, or one owner's; none whose owner has no Linux account any more."""
    found = database.execute_sql(
        f"{_SELECT} WHERE u.uid IS NOT NULL AND coalesce(?, w.owner_id) = w.owner_id", (owner_id,)
    )
    return [Row(*row) for row in found]


def running() -> list[Row]:
    """The rows that say running, each of which wants a watch."""
    return [row for row in _active() if row.status == "running"]


def unsettled() -> list[Row]:
    """The rows in a transition, or failed with GPUs or lately, that are old enough to be looked at."""
    return [row for row in _active() if _is_unsettled(row) and abs(row.age_s) >= SETTLE_S]


def unsettled_soon() -> bool:
    """Whether there is any such row, however young."""
    return any(map(_is_unsettled, _active()))


def _is_unsettled(row: Row) -> bool:
    """One that has failed may run all the same: nobody could ask. It is looked for as long as for any."""
    if row.status == "failed":
        return bool(row.leased) or abs(row.age_s) <= TRANSITION_DEADLINE_S
    return row.status != "running"


def _active() -> list[Row]:
    return [Row(*row) for row in database.execute_sql(f"{_SELECT} WHERE w.status <> 'stopped'")]


def frees_gpus(row: Row, verdict: Verdict) -> bool:
    """Whether a verdict gives up GPUs of a container that may be starting just now, unseen.

    A start whose asker is gone may still be under way in Podman, which says that
    nothing runs until it does. It has to be stopped first, after claim_end().
    """
    return (
        bool(row.leased) and row.status in ("starting", "stopping", "failed") and verdict.status != "running"
    )


def claim_end(row: Row) -> Row | None:
    """Make the row `stopping`, so that nobody starts it meanwhile; None when it has moved on."""
    at = now()
    with write():
        changed = _set_status(row, "stopping", row.status_reason, at)
    return row._replace(status="stopping", status_since=at) if changed else None


def put_back(claimed: Row, reason: str) -> None:
    """After a claim_end() whose container could not be stopped: failed, GPUs and all, until the next look."""
    with write():
        _set_status(claimed, "failed", reason, now())


def _set_status(row: Row, status: str, reason: str | None, at: str) -> int:
    return database.execute_sql(
        "UPDATE workspaces SET status = ?, status_reason = ?, status_since = ?, updated_at = ?"
        " WHERE id = ? AND status = ? AND status_since = ?",
        (status, reason, at, at, row.id, row.status, row.status_since),
    ).rowcount


def apply(row: Row, verdict: Verdict) -> bool:
    """Write a verdict unless the row has moved on meanwhile; returns whether it was written."""
    at = now()
    with write():
        if verdict.status == "gone":
            changed = database.execute_sql(
                "DELETE FROM workspaces WHERE id = ? AND status = ? AND status_since = ?",
                (row.id, row.status, row.status_since),
            ).rowcount
        else:
            changed = database.execute_sql(
                "UPDATE workspaces SET status = ?, status_reason = ?, exit_code = ?,"
                " status_since = ?, updated_at = ?,"
                " started_at = CASE ?1 WHEN 'running' THEN coalesce(started_at, ?4) ELSE started_at END,"
                " stopped_at = CASE ?1 WHEN 'stopped' THEN ?4 ELSE stopped_at END"
                " WHERE id = ? AND status = ? AND status_since = ?",
                (*verdict, at, at, row.id, row.status, row.status_since),
            ).rowcount
        if changed:
            if verdict.status == "failed":
                leases.release(row.id)
            _record(row, verdict)
    return bool(changed)


def _record(row: Row, verdict: Verdict) -> None:
    """The audit row of a change that nobody asked for."""
    detail = {"from": row.status, "reason": verdict.reason, "exit_code": verdict.exit_code}
    rid = f"reconcile-{row.id}"
    audit.append_by_worker(
        row.owner_id, row.owner, "workspace.reconcile", row.id, verdict.status, rid, **detail
    )
