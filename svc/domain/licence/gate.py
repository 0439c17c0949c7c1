"""What a lapsed licence stops, and what a licence's limits stop: new workspaces and starts, nothing else.

Stopping, deleting, files, exports, backups and administration never come here (docs/licence.md). The
checks of limits run inside the caller's own write(), as those of quotas do.
"""

from __future__ import annotations

from typing import Any

from svc.db.connect import database
from svc.domain.licence import entitlement
from svc.domain.licence.documents import Licence
from svc.domain.licence.entitlement import Entitlement
from svc.errors import LicenseLimit, LicenseRequired

# The accounts that a licence counts: who could start something. Root has no workspaces.
COUNTED = "uid IS NOT NULL AND uid <> 0 AND NOT disabled AND provisioning = 'ready'"


def require_valid(user_id: int) -> None:
    """Raise LicenseRequired, or LicenseLimit for an account beyond the licence's number of users.

    Before a workspace is created or started. The oldest accounts are within the number.
    """
    found = entitlement.resolve()
    if not found.is_valid:
        raise LicenseRequired(
            f"{found.name} ended on {found.ends_at[:10]}: no workspace can be created or started until the"
            " administrator installs a licence"
        )
    limit = found.licence.users if found.licence else None
    if limit is None:
        return
    place = _count(f"SELECT count(*) FROM users WHERE {COUNTED} AND id <= ?", user_id)
    if place > limit:
        count = users()
        raise LicenseLimit(
            f"the licence is for {_number(limit, 'user')}, and there are {count}: yours is one of the newest"
            " accounts, which create and start nothing",
            details={"resource": "users", "limit": limit, "used": count, "requested": 1},
        )


def require_gpus(requested: int, *, ahead: bool = False) -> None:
    """Raise LicenseLimit when more GPUs are leased than the licence has.

    Called after the leases were taken; `ahead`: before.
    """
    licence = _licence(entitlement.resolve()) if requested else None
    if licence is None or licence.gpus is None:
        return
    count = gpus() + (requested if ahead else 0)
    if count > licence.gpus:
        raise LicenseLimit(
            f"the licence is for {_number(licence.gpus, 'GPU')} at once, and with this start"
            f" {count} would be in use",
            hint="svc ws capacity",
            details={
                "resource": "gpus", "limit": licence.gpus, "used": count - requested, "requested": requested,
            },
        )  # fmt: skip


def users() -> int:
    """The number of accounts that a licence counts."""
    return _count(f"SELECT count(*) FROM users WHERE {COUNTED}")


def gpus() -> int:
    """The number of GPUs that are leased."""
    return _count("SELECT count(DISTINCT gpu) FROM gpu_leases")


def _licence(found: Entitlement) -> Licence | None:
    return found.licence if found.is_valid else None


def _count(statement: str, *values: Any) -> int:
    return int(database.execute_sql(statement, values).fetchone()[0])


def _number(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count} {noun}s"
