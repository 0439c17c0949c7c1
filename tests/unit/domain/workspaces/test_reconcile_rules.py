"""Each state x each thing to be seen: what the row becomes ("Podman is the truth for running ...")."""

from __future__ import annotations

import pytest

from svc.domain.workspaces.reconcile_rules import Row, Seen, Verdict, judge, needs_stop

RUNNING = Seen(running=True, exit_code=None, oom_killed=False)
ENDED = Seen(running=False, exit_code=3, oom_killed=False)
OOM = Seen(running=False, exit_code=137, oom_killed=True)
YOUNG, OLD, OVERDUE = 1.0, 10.0, 500.0


def row(status: str, age_s: float = OLD, reason: str | None = None) -> Row:
    return Row("ws-00000lab", 1, "ada", status, reason, "2026-01-01T00:00:00.000Z", None, age_s)


@pytest.mark.parametrize(
    ("status", "seen", "expected"),
    [
        ("running", RUNNING, None),
        ("running", ENDED, Verdict("stopped", "container_exited", 3)),
        ("running", OOM, Verdict("stopped", "oom_killed", 137)),
        ("running", None, Verdict("stopped", "container_exited", None)),
        ("stopped", RUNNING, Verdict("running", None)),
        ("stopped", ENDED, None),
        ("stopped", None, None),
        ("failed", RUNNING, Verdict("running", None)),
        ("failed", None, None),
        ("creating", ENDED, Verdict("stopped", None)),
        ("creating", None, None),
        ("starting", RUNNING, Verdict("running", None)),
        ("starting", ENDED, None),
        ("stopping", ENDED, Verdict("stopped", "user_requested", 3)),
        ("stopping", RUNNING, None),
        ("deleting", None, Verdict("gone", None)),
        ("deleting", ENDED, None),
    ],
)
def test_what_is_seen_decides(status: str, seen: Seen | None, expected: Verdict | None) -> None:
    assert judge(row(status), seen, rebooted=False) == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (RUNNING, Verdict("running", None)),
        (ENDED, Verdict("stopped", None, 3)),
        (None, Verdict("stopped", "container_missing")),
    ],
)
def test_a_restored_row_is_known_again(seen: Seen | None, expected: Verdict) -> None:
    assert judge(row("stopped", reason="restored"), seen, rebooted=False) == expected
    held = row("failed", reason="restored")._replace(leased=1)  # it had GPUs when it was replaced
    assert judge(held, seen, rebooted=False) == expected
    assert needs_stop(held, expected) is (expected.status == "stopped")


@pytest.mark.parametrize("status", ["creating", "starting", "stopping", "deleting"])
def test_a_young_transition_is_the_listeners_own_business(status: str) -> None:
    for seen in (None, ENDED, RUNNING):
        assert judge(row(status, YOUNG), seen, rebooted=False) is None


@pytest.mark.parametrize("orphan", [True, False])
@pytest.mark.parametrize("status", ["creating", "starting", "stopping", "deleting"])
@pytest.mark.parametrize("seen", [None, ENDED, RUNNING])
def test_no_state_is_without_an_exit(status: str, seen: Seen | None, orphan: bool) -> None:
    """A transition that nobody carries out any more, or whose deadline is over, always ends."""
    age_s = YOUNG if orphan else OVERDUE
    verdict = judge(row(status, age_s)._replace(orphan=orphan), seen, rebooted=False)
    assert verdict is not None
    assert verdict.status in ("running", "stopped", "gone")


def test_a_start_that_never_came_says_why() -> None:
    assert judge(row("starting", OVERDUE), ENDED, rebooted=False) == Verdict("stopped", "start_timeout", 3)
    assert judge(row("starting", YOUNG)._replace(orphan=True), None, rebooted=False) == Verdict(
        "stopped", "engine_error"
    )


def test_a_reboot_is_named_and_an_oom_kill_still_is_one() -> None:
    assert judge(row("running"), ENDED, rebooted=True) == Verdict("stopped", "host_reboot", 3)
    assert judge(row("running"), OOM, rebooted=True) == Verdict("stopped", "oom_killed", 137)


def test_a_stop_keeps_the_reason_that_it_was_given() -> None:
    verdict = judge(row("stopping", reason="admin_stopped"), ENDED, rebooted=False)
    assert verdict == Verdict("stopped", "admin_stopped", 3)


def test_a_failed_one_gives_its_gpus_up_when_it_is_seen_not_to_run() -> None:
    failed = row("failed", reason="start_timeout")._replace(leased=1)
    for seen in (ENDED, None):
        verdict = judge(failed, seen, rebooted=False)
        assert verdict is not None and verdict[:2] == ("failed", "start_timeout")
    assert judge(failed, RUNNING, rebooted=False) == Verdict("running", None)
    assert judge(failed._replace(age_s=YOUNG), ENDED, rebooted=False) is None
    assert judge(failed._replace(leased=0), ENDED, rebooted=False) is None


def test_gpus_of_what_may_be_starting_unseen_are_freed_by_a_stop() -> None:
    stopped = Verdict("stopped", "engine_error")
    for status in ("starting", "stopping", "failed"):
        assert needs_stop(row(status)._replace(leased=1), stopped)
        assert not needs_stop(row(status), stopped)
        assert not needs_stop(row(status)._replace(leased=1), Verdict("running", None))
    assert not needs_stop(row("running")._replace(leased=1), stopped), "its start was seen to be over"


def test_what_an_orphan_may_have_begun_is_stopped() -> None:
    """Its start may be under way in Podman, which does not say so."""
    for status in ("starting", "stopping"):
        assert needs_stop(row(status)._replace(orphan=True), Verdict("stopped", "engine_error"))
        assert not needs_stop(row(status)._replace(orphan=True), Verdict("running", None))
    assert not needs_stop(row("creating")._replace(orphan=True), Verdict("stopped", None))
    assert not needs_stop(row("deleting")._replace(orphan=True), Verdict("gone", None))


def test_an_orphaned_stop_is_finished() -> None:
    orphan = row("stopping", YOUNG, "idle_policy")._replace(orphan=True)
    assert judge(orphan, RUNNING, rebooted=False) == Verdict("stopped", "idle_policy", None)
