"""A user's usage in the API's units: cores, bytes, numbers."""

from __future__ import annotations

from typing import Any

from svc.db.connect import database
from svc.domain.principal import Caller
from svc.domain.quotas import quotas
from svc.domain.quotas.quotas import Quota

# Of the user u: before the first look the sum of all images, in which a shared layer counts for each.
IMAGE_BYTES = """coalesce(u.image_bytes,
    (SELECT coalesce(sum(size_bytes), 0) FROM images WHERE owner_id = u.id AND status = 'ready'))"""


def me(caller: Caller) -> dict[str, Any]:
    """The caller's own usage and policy.

    {workspaces, running, gpus, cpu, memory_bytes, image_bytes, quota{name, max_*}}
    """
    quota = quotas.of(caller.user_id)
    return amounts(caller.user_id, quota) | {"quota": quotas.record(quota)}


def amounts(user_id: int, quota: Quota) -> dict[str, Any]:
    """{workspaces, running, gpus, cpu, memory_bytes, image_bytes} of a user, as the policy counts them.

    The bytes of images are those of the last look at the store, as after each pull, build and removal.
    """
    used = quotas.used(user_id, quota)
    images = database.execute_sql(f"SELECT {IMAGE_BYTES} FROM users u WHERE u.id = ?", (user_id,)).fetchone()[
        0
    ]
    return used._asdict() | {"cpu": quotas.cores(used.cpu), "image_bytes": images}


def remaining(quota: Quota, used: dict[str, Any]) -> dict[str, Any]:
    """What the policy leaves of each resource, at least 0; None is unlimited."""
    limits = quotas.record(quota)
    return {
        key: None if (limit := limits[f"max_{key}"]) is None else max(0, limit - amount)
        for key, amount in used.items()
    }
