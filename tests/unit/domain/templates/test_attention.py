"""The counts for badges: one's own, and for administrators what awaits them."""

from __future__ import annotations

from unit.serving import make_template, make_workspace

from svc.db.connect import database
from svc.domain.accounts import tokens
from svc.domain.principal import Caller
from svc.domain.templates import attention
from svc.host.ids import after, now

NONE = {"tokens_expiring": 0, "reviews_waiting": 0, "gpus_lost": 0, "operations_failed": 0}


def operation(owner: int, number: int, status: str, at: str) -> None:
    database.execute_sql(
        "INSERT INTO operations (id, owner_id, kind, subject_type,"
        " subject_id, status, created_at, updated_at)"
        " VALUES (?, ?, 'pull', 'template', 'tpl-1', ?, ?, ?)",
        (f"op-{number}", owner, status, at, at),
    )


def test_nothing(ada: Caller, boss: Caller) -> None:
    assert attention.counts(ada) == attention.counts(boss) == NONE


def test_ones_own(ada: Caller, bob: Caller) -> None:
    for days in (1, 6, 90):
        tokens.create(ada, f"t{days}", days)
    tokens.revoke(ada, "t6")
    for number, (status, age_s) in enumerate((("failed", 60), ("failed", 2 * 86400), ("succeeded", 60))):
        operation(ada.user_id, number, status, after(now(), -age_s))
    lost = make_workspace(ada.user_id, make_template(ada.user_id), status="running")
    database.execute_sql("UPDATE workspaces SET health = 'gpu_lost' WHERE id = ?", (lost,))
    assert attention.counts(ada) == NONE | {"tokens_expiring": 1, "gpus_lost": 1, "operations_failed": 1}
    assert attention.counts(bob) == NONE


def test_what_awaits_administrators(ada: Caller, boss: Caller) -> None:
    waiting = make_template(None, "new")
    database.execute_sql(
        "UPDATE templates SET status = 'disabled', reviewed_revision = NULL WHERE id = ?", (waiting,)
    )
    make_template(None, "old")
    lost = make_workspace(ada.user_id, make_template(ada.user_id), status="running")
    database.execute_sql("UPDATE workspaces SET health = 'gpu_lost' WHERE id = ?", (lost,))
    assert attention.counts(boss) == NONE | {"reviews_waiting": 1, "gpus_lost": 1}
    assert attention.counts(ada) == NONE | {"gpus_lost": 1}


def test_each_count_follows_an_index(ada: Caller) -> None:
    plan = database.execute_sql(f"EXPLAIN QUERY PLAN {attention._COUNTS}", (1, 1, "", "", "")).fetchall()
    assert not [
        line
        for *_, line in plan
        if line.startswith("SCAN") and "INDEX" not in line and "CONSTANT" not in line
    ]
