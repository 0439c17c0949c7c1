"""The named policies themselves: administrators list, set and remove them.

Who has which is a column of the account (svc.domain.accounts.user_edits). A change holds
from the next start on: nothing that runs is ended by it.
"""

from __future__ import annotations

import re
from typing import Any

from svc.db.connect import database, write
from svc.domain import audit, pages
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.quotas import quotas
from svc.domain.quotas.quotas import DEFAULT, Quota
from svc.domain.quotas.resources import THOUSANDTHS
from svc.errors import AdminOnly, Conflict, NotFound, ValidationFailed
from svc.limits import SLUG

NAMES_MAX = 50  # of users, in one refusal

_SORT = {"name": "q.name"}
_ROW = f"q.{', q.'.join(Quota._fields)}"
_USERS = f"(SELECT count(*) FROM users u WHERE coalesce(u.quota, '{DEFAULT}') = q.name)"


def page_of(page: Page) -> dict[str, Any]:
    """One page of the policies, each with how many accounts it holds for; the route says who sees them."""
    found, values = pages.matching(page, ("q.name",))
    order = pages.order_by(page, _SORT, "name", "q.name")
    total = database.execute_sql(f"SELECT count(*) FROM quotas q WHERE {found}", values).fetchone()[0]
    rows = database.execute_sql(
        f"SELECT {_ROW}, {_USERS} FROM quotas q WHERE {found} ORDER BY {order} LIMIT ? OFFSET ?",
        (*values, page.limit, page.offset),
    )
    return pages.envelope(page, [_record(row) for row in rows], total)


def get(name: str) -> dict[str, Any]:
    """One policy, with how many accounts it holds for; raises NotFound."""
    row = database.execute_sql(f"SELECT {_ROW}, {_USERS} FROM quotas q WHERE q.name = ?", (name,)).fetchone()
    if row is None:
        raise _missing(name)
    return _record(row)


def _record(row: tuple[Any, ...]) -> dict[str, Any]:
    return quotas.record(Quota(*row[:-1])) | {"users": row[-1]}


def put(caller: Caller, name: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """Make or replace a policy: what is left out is unlimited; administrators only.

    `wanted` is as the API has it, `max_cpu` in cores. Raises ValidationFailed for a
    name that is no slug.
    """
    _require_administrator(caller)
    if not re.fullmatch(SLUG, name):
        message = "a-z, 0-9 and - (inside), at most 63"
        raise ValidationFailed(
            "that is no name for a quota policy",
            fields=[{"field": "name", "code": "invalid", "message": message}],
        )
    cpu = wanted.get("max_cpu")
    columns = {key: wanted.get(key) for key in Quota._fields[1:]}
    columns["max_cpu"] = None if cpu is None else round(cpu * THOUSANDTHS)
    setters = ", ".join(f"{key} = excluded.{key}" for key in columns)
    with write():
        database.execute_sql(
            f"INSERT INTO quotas (name, {', '.join(columns)}) VALUES (?{', ?' * len(columns)})"
            f" ON CONFLICT (name) DO UPDATE SET {setters}",
            (name, *columns.values()),
        )
        audit.add(caller, "quota.set", name, "ok", **quotas.record(Quota(name, **columns)))
    return get(name)


def delete(caller: Caller, name: str) -> None:
    """Remove a policy that no account has; administrators only. Raises NotFound, Conflict."""
    _require_administrator(caller)
    if name == DEFAULT:
        raise Conflict(
            "the default policy stays: it is everybody's who was given none",
            hint=f"svc api PUT /api/admin/quotas/{DEFAULT} --body '{{}}'",
        )
    with write():
        holders = database.execute_sql(
            "SELECT name FROM users WHERE quota = ? ORDER BY name", (name,)
        ).fetchall()
        if holders:
            names = [row[0] for row in holders]
            shown = ", ".join(names[:5]) + (" and others" if len(names) > 5 else "")
            raise Conflict(
                f"the quota {name} is in force for {shown}",
                hint=f"svc api PATCH /api/users/{names[0]} --body '{{\"quota\": null}}'",
                details={"users": names[:NAMES_MAX]},
            )
        if not database.execute_sql("DELETE FROM quotas WHERE name = ?", (name,)).rowcount:
            raise _missing(name)
        audit.add(caller, "quota.delete", name, "ok")


def require(name: str) -> None:
    """Raise ValidationFailed for a policy that is not, inside the write() that gives it to somebody."""
    if database.execute_sql("SELECT 1 FROM quotas WHERE name = ?", (name,)).fetchone() is None:
        raise ValidationFailed(
            f"there is no quota {name}",
            hint="svc api GET /api/admin/quotas",
            fields=[{"field": "quota", "code": "unknown", "message": "no policy of this name"}],
        )


def _require_administrator(caller: Caller) -> None:
    if not caller.administers:
        raise AdminOnly("only an administrator sets quota policies")


def _missing(name: str) -> NotFound:
    return NotFound(f"there is no quota {name}", hint="svc api GET /api/admin/quotas")
