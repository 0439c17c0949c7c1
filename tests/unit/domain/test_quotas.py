"""Quotas: a named policy with a default; null is unlimited."""

from __future__ import annotations

import pytest

from svc.db.connect import database
from svc.domain import quotas
from svc.domain.callers import Caller
from svc.errors import QuotaExceeded


def test_everybody_has_the_default_until_given_another(ada: Caller, bob: Caller) -> None:
    assert quotas.of(ada.user_id) == quotas.Quota("default", *[None] * 6)
    database.execute_sql("INSERT INTO quotas (name, max_gpus, max_image_bytes) VALUES ('small', 1, 1000)")
    database.execute_sql("UPDATE users SET quota = 'small' WHERE id = ?", (ada.user_id,))
    assert quotas.of(ada.user_id)._asdict() == {
        "name": "small", "max_workspaces": None, "max_running": None, "max_gpus": 1, "max_cpu": None,
        "max_memory_bytes": None, "max_image_bytes": 1000,
    }  # fmt: skip
    assert quotas.of(bob.user_id).max_image_bytes is None


def test_images_over_the_quota_are_refused_in_numbers() -> None:
    quotas.demand_image_bytes(None, 10**12, 10**12)
    quotas.demand_image_bytes(2**30, 2**29, 2**29)
    with pytest.raises(QuotaExceeded) as caught:
        quotas.demand_image_bytes(2**30, 2**29, 2**29 + 1)
    assert caught.value.details == {
        "resource": "image_bytes", "limit": 2**30, "used": 2**29, "requested": 2**29 + 1,
    }  # fmt: skip
    assert "1.0 GiB" in caught.value.message
    assert caught.value.hint == "svc image prune"
