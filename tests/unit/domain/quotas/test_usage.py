"""What a user has and uses, against the policy."""

from __future__ import annotations

from unit.serving import make_workspace

from svc.db.connect import database
from svc.domain.principal import Caller
from svc.domain.quotas import policies as quota_policies
from svc.domain.quotas import quotas, usage
from svc.host.ids import now

NOTHING = {"workspaces": 0, "running": 0, "gpus": 0, "cpu": 0.0, "memory_bytes": 0, "image_bytes": 0}


def test_nothing_yet(ada: Caller) -> None:
    assert usage.me(ada) == NOTHING | {"quota": quotas.record(quotas.of(ada.user_id))}


def test_what_runs_and_what_the_images_take(ada: Caller, bob: Caller, template: str) -> None:
    make_workspace(
        ada.user_id, template, "one", status="running", cpu_limit=1500, memory_bytes=7, gpu_count=1
    )
    make_workspace(ada.user_id, template, "off", cpu_limit=1500, memory_bytes=7)
    for owner, ref, status, size in (
        (ada, "a/b:1", "ready", 1000), (ada, "a/b:2", "ready", None), (ada, "a/b:3", "missing", 400),
        (bob, "a/b:1", "ready", 1000), (ada, "a/b:4", "ready", 30),
    ):  # fmt: skip
        database.execute_sql(
            "INSERT INTO images (owner_id, image_ref, status, size_bytes, updated_at) VALUES (?, ?, ?, ?, ?)",
            (owner.user_id, ref, status, size, now()),
        )
    amounts = usage.amounts(ada.user_id, quotas.of(ada.user_id))
    assert amounts == {
        "workspaces": 2, "running": 1, "gpus": 1, "cpu": 1.5, "memory_bytes": 7, "image_bytes": 1030,
    }  # fmt: skip


def test_what_is_left(ada: Caller, boss: Caller) -> None:
    quota_policies.put(boss, "default", {"max_cpu": 2.5, "max_running": 2, "max_gpus": 1})
    used = NOTHING | {"cpu": 1.0, "running": 3}
    assert usage.remaining(quotas.of(ada.user_id), used) == {
        "workspaces": None, "running": 0, "gpus": 1, "cpu": 1.5, "memory_bytes": None, "image_bytes": None,
    }  # fmt: skip
