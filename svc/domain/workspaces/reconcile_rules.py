"""What Podman's containers mean for a workspace's row: "Podman is the truth for running and stopped".

Rules and queries only: the worker lists the containers, judge() gives the
verdict, transitions.reconcile() carries it out. No state is without an exit: a
transition ends by what is seen, by the end of the process that carries it out
(orphan), or by its deadline.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from svc.db.connect import database
from svc.db.held import numbers
from svc.host.ids import after
from svc.limits import TRANSITION_DEADLINE_S

STEADY = ("stopped", "running", "failed")
RESTORED = "restored"  # the reason of a restored row until its container has been looked for
MISSING = "container_missing"
REBOOT = "host_reboot"  # the reason of a row that a reboot stopped: the worker may start it again
UPGRADE = "upgrade"  # the reason of a row while its new container is prepared
RESTART = "restart"  # the reason of a row while it stops to be started again, and when that was interrupted
MIN_AGE_S = 3.0  # a younger transition is left to the request that began it


class Row(NamedTuple):
    """The columns of a workspace's row that the rules need; `age_s` is the age of its status."""

    id: str
    owner_id: int
    owner: str
    status: str
    status_reason: str | None
    status_since: str
    started_at: str | None
    age_s: float
    leased: int = 0  # 1 if it holds GPUs
    orphan: bool = False  # in a transition that nobody carries out any more


class Seen(NamedTuple):
    """A container as Podman lists it."""

    running: bool
    exit_code: int | None
    oom_killed: bool


class Verdict(NamedTuple):
    """The row's right status (`gone` for a row to be removed), its reason and the exit code."""

    status: str
    reason: str | None
    exit_code: int | None = None


def judge(row: Row, seen: Seen | None, *, rebooted: bool) -> Verdict | None:
    """The verdict on a row; None when it is right, or too young to be judged.

    `seen` is None without a container. `rebooted`: is_before_boot(). A failed
    workspace that holds GPUs and does not run gives them up. A status from the future
    was written before the clock was set back; its age counts as positive.
    """
    running = seen is not None and seen.running
    exit_code = seen.exit_code if seen else None
    if row.status == "running":
        return None if running else Verdict("stopped", end_reason(seen, rebooted=rebooted), exit_code)
    if row.status in ("stopped", "failed"):
        if running:
            return Verdict("running", None)
        if row.status_reason == RESTORED:
            return Verdict("stopped", None if seen else MISSING, exit_code)
        gives_up = row.status == "failed" and row.leased and abs(row.age_s) >= MIN_AGE_S
        return Verdict("failed", row.status_reason, exit_code) if gives_up else None
    overdue = row.orphan or abs(row.age_s) > TRANSITION_DEADLINE_S
    if not overdue and abs(row.age_s) < MIN_AGE_S:
        return None
    verdict = _transition(row, seen, running, overdue)
    was_to_run = row.status == "starting" or (row.status, row.status_reason) == ("stopping", RESTART)
    if verdict is not None and verdict.status == "stopped" and rebooted and row.orphan and was_to_run:
        return verdict._replace(reason=REBOOT)
    return verdict


def is_before_boot(row: Row, booted_at: str) -> bool:
    """Whether the host started after the workspace did, or after the transition began that its row is in."""
    began = row.started_at if row.status == "running" else row.status_since
    return bool(began and began < booted_at)


def end_reason(seen: Seen | None, *, rebooted: bool) -> str:
    """Why the container of a running workspace has ended."""
    if seen is not None and seen.oom_killed:
        return "oom_killed"
    return REBOOT if rebooted else "container_exited"


def booted_at() -> str:
    """When this host, or this system container, started its first process; in the form that rows have."""
    with open("/proc/stat", encoding="ascii") as file:
        kernel = next(int(line.split()[1]) for line in file if line.startswith("btime "))
    with open("/proc/1/stat", encoding="ascii", errors="replace") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])  # starttime, proc(5)
    return after(datetime.fromtimestamp(kernel, UTC).isoformat(), ticks / os.sysconf("SC_CLK_TCK"))


def _transition(row: Row, seen: Seen | None, running: bool, overdue: bool) -> Verdict | None:
    exit_code = seen.exit_code if seen else None
    if row.status == "creating" and row.status_reason == UPGRADE and not overdue:
        return None  # it has its container all the while
    if row.status == "creating":
        if seen is not None:
            return Verdict("running" if running else "stopped", None)
        return Verdict("stopped", "engine_error") if overdue else None
    if row.status == "starting":
        if running:
            return Verdict("running", None)
        reason = "engine_error" if row.orphan else "start_timeout"
        return Verdict("stopped", reason, exit_code) if overdue else None
    if row.status == "stopping" and row.status_reason == RESTART and not overdue:
        return None  # its call starts it again
    if row.status == "stopping":
        if not running or row.orphan:  # an orphan is stopped again, see needs_stop
            return Verdict("stopped", row.status_reason or "user_requested", exit_code)
        return Verdict("running", None) if overdue else None
    # deleting: the row goes with the container, or at the deadline
    return Verdict("gone", None) if seen is None or overdue else None


_SELECT = (
    "SELECT w.id, w.owner_id, u.name, w.status, w.status_reason, w.status_since, w.started_at,"
    " (julianday('now') - julianday(w.status_since)) * 86400.0,"
    " EXISTS (SELECT 1 FROM gpu_leases l WHERE l.workspace_id = w.id), w.work"
    " FROM workspaces w JOIN users u ON u.id = w.owner_id"
)


def rows(owner_id: int | None = None) -> list[Row]:
    """All rows, or one owner's; those of owners without a Linux account are left out."""
    chosen, values = ("w.owner_id = ?", (owner_id,)) if owner_id is not None else ("1", ())
    found = database.execute_sql(f"{_SELECT} WHERE u.uid IS NOT NULL AND {chosen}", values)
    return [_row(row) for row in found]


def owners() -> list[tuple[int, str]]:
    """Everybody with a workspace and a Linux account: (id, name)."""
    return database.execute_sql(
        "SELECT u.id, u.name FROM users u WHERE u.uid IS NOT NULL"
        " AND EXISTS (SELECT 1 FROM workspaces w WHERE w.owner_id = u.id) ORDER BY u.id"
    ).fetchall()


def _row(columns: Sequence[Any]) -> Row:
    """A row; whether it is an orphan is asked now, so before its container is looked at."""
    row = Row(*columns[:-1])
    return row._replace(orphan=row.status not in STEADY and not numbers.is_held(columns[-1]))


def running() -> list[Row]:
    """The running workspaces, each of which the worker watches."""
    return [row for row in active() if row.status == "running"]


def unresolved(min_age_s: float = MIN_AGE_S) -> list[Row]:
    """The rows to be inspected: in a transition, or failed lately or with GPUs; orphans of any age."""
    return [row for row in active() if _is_unresolved(row) and (row.orphan or abs(row.age_s) >= min_age_s)]


def _is_unresolved(row: Row) -> bool:
    """A failed one may run, if it could not be inspected; without GPUs that is tried until the deadline."""
    if row.status == "failed":
        return bool(row.leased) or abs(row.age_s) <= TRANSITION_DEADLINE_S
    return row.status != "running"


def active() -> list[Row]:
    """The rows of all workspaces that are not stopped."""
    return [_row(row) for row in database.execute_sql(f"{_SELECT} WHERE w.status <> 'stopped'")]


def needs_stop(row: Row, verdict: Verdict) -> bool:
    """Whether the container may be starting unseen, so that it is stopped before the verdict is written.

    A start whose caller or agent died may be under way in Podman, which reports the container as not
    running until it does. A late stop of what nobody works on ends it too; without GPUs others are
    left to the next inspection.
    """
    if verdict.status == "running":
        return False
    if row.status in ("starting", "stopping"):
        return bool(row.leased) or row.orphan
    return row.status == "failed" and bool(row.leased)
