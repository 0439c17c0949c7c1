"""What each user's disks hold, for administrators: figures of the users' own agents, with their age.

Root walks no user's folders, and no request does: an administrator asks for a measurement, the
worker has the agents measure, a few at a time (svc.worker.disk), and the table keeps the figures.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from svc.actions.table import DISK_MEASURE
from svc.db.connect import database, write
from svc.domain import operations, pages, untrusted
from svc.domain.accounts import users
from svc.domain.audit import audit
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.errors import SvcError, invalid_field
from svc.host.ids import now

AMOUNTS = (
    "images_bytes", "mapped_bytes", "cache_bytes", "containers_bytes", "volumes_bytes", "files_bytes",
)  # fmt: skip
ERROR_MAX = 300
AMOUNT_MAX = 2**50  # an agent's figure is its user's word: the sums over all users must fit a column

# Active accounts with a Linux user: the others have no agent.
_MEASURED = "u.uid > 0 AND u.disabled = 0 AND u.provisioning = 'ready'"
_FROM = """FROM users u LEFT JOIN disk_usage d ON d.user_id = u.id
    LEFT JOIN quotas q ON q.name = coalesce(u.quota, 'default') WHERE u.uid > 0"""
_FIGURES = {key: f"coalesce(json_extract(d.figures_json, '$.{key}'), 0)" for key in AMOUNTS}
_TOTAL = " + ".join(_FIGURES.values())
_SORT = {"name": "u.name", "measured_at": "d.measured_at", "total_bytes": f"({_TOTAL})"} | _FIGURES


class Waiting(NamedTuple):
    """A user whose measurement was asked for."""

    user_id: int
    name: str


_WAITING = "SELECT u.id, u.name FROM disk_usage d JOIN users u ON u.id = d.user_id"


def page_of(page: Page) -> dict[str, Any]:
    """One page of all users with their figures, and the sums of all; the route checks who may read them."""
    found, values = pages.matching(page, ("u.name",))
    order = pages.order_by(page, _SORT, "-total_bytes", "u.id")
    source = f"{_FROM} AND {found}"
    columns = "u.name, q.max_image_bytes, d.figures_json, d.measured_at, d.requested_at, d.error"
    reply = pages.select(page, columns, source, values, order, _record)
    sums = ", ".join(f"sum({column})" for column in _FIGURES.values())
    row = database.execute_sql(
        f"SELECT {sums}, count(d.requested_at), min(d.measured_at) {source}", values
    ).fetchone()
    amounts = dict(zip(AMOUNTS, (amount or 0 for amount in row), strict=False))
    return reply | {
        "sums": amounts | {"total_bytes": sum(amounts.values())},
        "waiting": row[-2],
        "oldest_measured_at": row[-1],
    }


def _record(row: tuple[Any, ...]) -> dict[str, Any]:
    name, quota, figures, measured_at, requested_at, error = row
    found = json.loads(figures) if figures else {}
    amounts = {key: found.get(key) for key in AMOUNTS}
    total = sum(found[key] for key in AMOUNTS) if figures else None
    return {
        "name": name, **amounts, "total_bytes": total, "files": found.get("files"),
        "complete": found.get("complete"), "quota_image_bytes": quota, "measured_at": measured_at,
        "waiting": requested_at is not None, "error": error,
    }  # fmt: skip


def request(caller: Caller, names: Iterable[str]) -> int:
    """Have these users measured, all active ones without a name; returns how many are waited for."""
    names = list(names)
    with write():
        count = request_all(names)
        audit.add(caller, DISK_MEASURE, ", ".join(names)[:200], "begun", users=count)
    operations.wake()
    return count


def request_all(names: list[str]) -> int:
    """Note the request in the caller's transaction; raises for a name that cannot be measured."""
    rows = database.execute_sql(f"SELECT u.id, u.name FROM users u WHERE {_MEASURED}").fetchall()
    ids = {name: user_id for user_id, name in rows}
    for name in names:
        if name not in ids:
            users.get(name)  # not_found for one that does not exist
            raise invalid_field("users", "not_active", f"the account {name} is not active")
    for name in names or ids:
        database.execute_sql(
            "INSERT INTO disk_usage (user_id, requested_at) VALUES (?, ?)"
            " ON CONFLICT (user_id) DO UPDATE"
            " SET requested_at = coalesce(requested_at, excluded.requested_at)",
            (ids[name], now()),
        )
    return len(names or ids)


def waiting() -> list[Waiting]:
    """Who is to be measured, the longest waiting first."""
    rows = database.execute_sql(
        f"{_WAITING} WHERE d.requested_at IS NOT NULL ORDER BY d.requested_at, u.name"
    )
    return [Waiting(*row) for row in rows.fetchall()]


def keep(user_id: int, reply: dict[str, Any]) -> None:
    """Keep an agent's figures; raises EngineFailed for implausible ones."""
    figures: dict[str, Any] = {
        key: min(untrusted.get_count(reply, key), AMOUNT_MAX) for key in (*AMOUNTS, "files")
    }
    figures["complete"] = untrusted.get_flag(reply, "complete")
    with write():
        database.execute_sql(
            "UPDATE disk_usage SET requested_at = NULL, measured_at = ?, figures_json = ?, error = NULL"
            " WHERE user_id = ?",
            (now(), json.dumps(figures), user_id),
        )


def fail(user_id: int, error: SvcError) -> None:
    """Note that a measurement failed; the former figures stay."""
    with write():
        database.execute_sql(
            "UPDATE disk_usage SET requested_at = NULL, error = ? WHERE user_id = ?",
            (error.message[:ERROR_MAX], user_id),
        )
