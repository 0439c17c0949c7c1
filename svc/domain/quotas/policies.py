"""The named quota policies: administrators list, set and remove them.

The policy of a user is a column of the account (svc.domain.accounts.user_edits). A
change applies from the next start on; running workspaces are not stopped.
"""

from __future__ import annotations

import re
from typing import Any

from svc.actions.table import QUOTA_DELETE, QUOTA_SET
from svc.db.connect import database, write
from svc.domain import pages
from svc.domain.audit import audit
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.quotas import quotas
from svc.domain.quotas.quotas import DEFAULT, Quota
from svc.domain.quotas.resources import THOUSANDTHS
from svc.errors import AdminOnly, Conflict, NotFound, invalid_field
from svc_helper.wire.limits import SLUG

NAMES_MAX = 50  # user names in one error
LIST = "sudo svc admin quota list"

_SORT = {"name": "q.name"}
_ROW = f"q.{', q.'.join(Quota._fields)}"
_USERS = f"(SELECT count(*) FROM users u WHERE coalesce(u.quota, '{DEFAULT}') = q.name)"


def page_of(page: Page) -> dict[str, Any]:
    """One page of the policies, each with its number of accounts; the route checks who may read them."""
    found, values = pages.matching(page, ("q.name",))
    order = pages.order_by(page, _SORT, "name", "q.name")
    return pages.select(page, f"{_ROW}, {_USERS}", f"FROM quotas q WHERE {found}", values, order, _record)


def get(name: str) -> dict[str, Any]:
    """One policy with its number of accounts; raises NotFound."""
    row = database.execute_sql(f"SELECT {_ROW}, {_USERS} FROM quotas q WHERE q.name = ?", (name,)).fetchone()
    if row is None:
        raise _missing(name)
    return _record(row)


def _record(row: tuple[Any, ...]) -> dict[str, Any]:
    return quotas.record(Quota(*row[:-1])) | {"users": row[-1]}


def put(caller: Caller, name: str, limits: dict[str, Any]) -> dict[str, Any]:
    """Create or replace a policy: missing limits are unlimited; administrators only.

    `limits` has the API's units, `max_cpu` in cores. Raises ValidationFailed for a
    name that is not a slug.
    """
    _require_administrator(caller)
    with write():
        audit.add(caller, QUOTA_SET, name, "ok", **store(name, limits))
    return get(name)


def store(name: str, limits: dict[str, Any]) -> dict[str, Any]:
    """Write a policy as put() does, in the caller's transaction; returns it in the API's units."""
    if not re.fullmatch(SLUG, name):
        raise invalid_field("name", "invalid", "must have only a-z, 0-9 and - (inside), at most 63")
    cpu = limits.get("max_cpu")
    columns = {key: limits.get(key) for key in Quota._fields[1:]}
    columns["max_cpu"] = None if cpu is None else round(cpu * THOUSANDTHS)
    setters = ", ".join(f"{key} = excluded.{key}" for key in columns)
    with write():
        database.execute_sql(
            f"INSERT INTO quotas (name, {', '.join(columns)}) VALUES (?{', ?' * len(columns)})"
            f" ON CONFLICT (name) DO UPDATE SET {setters}",
            (name, *columns.values()),
        )
    return quotas.record(Quota(name, **columns))


def delete(caller: Caller, name: str) -> None:
    """Remove a policy that no account uses; administrators only. Raises NotFound, Conflict."""
    _require_administrator(caller)
    with write():
        remove(name)
        audit.add(caller, QUOTA_DELETE, name, "ok")


def remove(name: str) -> None:
    """Remove a policy as delete() does, in the caller's transaction."""
    if name == DEFAULT:
        raise Conflict(
            "the default policy cannot be deleted: it applies to all accounts without a policy",
            hint="sudo svc admin quota set --help",
        )
    with write():
        holders = database.execute_sql(
            "SELECT name FROM users WHERE quota = ? ORDER BY name", (name,)
        ).fetchall()
        if holders:
            names = [row[0] for row in holders]
            first = ", ".join(names[:5]) + (" and others" if len(names) > 5 else "")
            raise Conflict(
                f"the quota {name} is in use by {first}",
                hint=f"sudo svc admin edit-user {names[0]} --quota {DEFAULT}",
                details={"users": names[:NAMES_MAX]},
            )
        if not database.execute_sql("DELETE FROM quotas WHERE name = ?", (name,)).rowcount:
            raise _missing(name)


def exists(name: str) -> bool:
    """Whether there is a policy of this name."""
    return database.execute_sql("SELECT 1 FROM quotas WHERE name = ?", (name,)).fetchone() is not None


def every() -> list[dict[str, Any]]:
    """All policies by name, each with its number of accounts."""
    return [_record(row) for row in database.execute_sql(f"SELECT {_ROW}, {_USERS} FROM quotas q ORDER BY 1")]


def require(name: str) -> None:
    """Raise ValidationFailed when the policy does not exist, inside the write() that assigns it."""
    if not exists(name):
        raise invalid_field("quota", "unknown", f"there is no policy {name}", hint=LIST)


def _require_administrator(caller: Caller) -> None:
    if not caller.administers:
        raise AdminOnly("only an administrator can set quota policies")


def _missing(name: str) -> NotFound:
    return NotFound(f"there is no quota {name}", hint=LIST)
