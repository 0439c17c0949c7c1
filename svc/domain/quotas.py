"""Quotas: "a named policy with a default", of what a user may have; null is unlimited."""

from __future__ import annotations

from typing import NamedTuple

from svc.db.connect import database
from svc.domain import sizes
from svc.errors import QuotaExceeded

DEFAULT = "default"  # of whoever was given none


class Quota(NamedTuple):
    """One policy; every number may be None."""

    name: str
    max_workspaces: int | None
    max_running: int | None
    max_gpus: int | None
    max_cpu: int | None  # thousandths of a core
    max_memory_bytes: int | None
    max_image_bytes: int | None


def of(user_id: int) -> Quota:
    """The policy that is in force for a user."""
    row = database.execute_sql(
        f"SELECT q.{', q.'.join(Quota._fields)} FROM quotas q"
        " WHERE q.name = coalesce((SELECT quota FROM users WHERE id = ?), ?)",
        (user_id, DEFAULT),
    ).fetchone()
    return Quota(*row) if row else Quota(DEFAULT, *[None] * (len(Quota._fields) - 1))


def demand_image_bytes(limit: int | None, used: int, requested: int) -> None:
    """Raise QuotaExceeded, with the numbers, where a user's images would take more than the policy has."""
    if limit is None or used + requested <= limit:
        return
    raise QuotaExceeded(
        f"your images may take {sizes.shown(limit)}; they take {sizes.shown(used)},"
        f" and this needs {sizes.shown(requested)} more",
        hint="svc image prune",
        details={"resource": "image_bytes", "limit": limit, "used": used, "requested": requested},
    )
