"""One page of a list: the request's parameters and their SQL.

Every list has the shape ``{items, total, limit, offset, next_offset}``. Sort keys map
to constant SQL; text of the caller is only passed as a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from svc.db.connect import database
from svc.errors import invalid_field
from svc.limits import LIST_LIMIT_DEFAULT


class Page(NamedTuple):
    """The parameters of a list request; `sort` with a leading "-" is descending."""

    limit: int = LIST_LIMIT_DEFAULT
    offset: int = 0
    q: str = ""
    sort: str = ""
    status: tuple[str, ...] = ()


def order_by(page: Page, columns: Mapping[str, str], default: str, last: str) -> str:
    """The ORDER BY list for a page; `columns` maps sort keys to SQL, `last` breaks ties.

    Raises ValidationFailed with the valid keys.
    """
    sort = page.sort or default
    key = sort.removeprefix("-")
    if key not in columns:
        message = f"{key} is not one of {', '.join(sorted(columns))}"
        raise invalid_field("sort", "unknown_choice", message)
    direction = "DESC" if sort.startswith("-") else "ASC"
    return f"{columns[key]} {direction}, {last} {direction}"


def matching(page: Page, columns: tuple[str, ...]) -> tuple[str, list[str]]:
    """The condition that one of the columns contains `q`, and its parameters."""
    if not page.q:
        return "1", []
    pattern = "%" + page.q.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    return "(" + " OR ".join(f"{name} LIKE ? ESCAPE '\\'" for name in columns) + ")", [pattern] * len(columns)


def stored(column: str, otherwise: str = "NULL") -> str:
    """SQL for a column's JSON text; `otherwise` for text that is none, after a change by hand.

    json() and its like would fail for one such row, and with it the whole list.
    """
    return f"iif(json_valid({column}), {column}, {otherwise})"


def with_status(page: Page, column: str) -> tuple[str, list[str]]:
    """The condition for the requested statuses (all when none is requested), and its parameters."""
    if not page.status:
        return "1", []
    return f"{column} IN ({', '.join('?' * len(page.status))})", list(page.status)


def envelope(page: Page, items: list[Any], total: int) -> dict[str, Any]:
    """The reply for the items of one page."""
    after = page.offset + page.limit
    return {
        "items": items, "total": total, "limit": page.limit, "offset": page.offset,
        "next_offset": after if after < total else None,
    }  # fmt: skip


def whole(items: list[Any], **more: Any) -> dict[str, Any]:
    """The reply for a list that always comes in one piece, with the keys of a page."""
    number = len(items)
    return {"items": items, "total": number, "limit": number, "offset": 0, "next_offset": None, **more}


def select(
    page: Page,
    columns: str,
    source: str,
    values: Sequence[Any],
    order: str,
    record: Callable[[tuple[Any, ...]], Any],
) -> dict[str, Any]:
    """The page of a query: `source` is its FROM clause with conditions, `record` makes an item of a row."""
    total = database.execute_sql(f"SELECT count(*) {source}", values).fetchone()[0]
    rows = database.execute_sql(
        f"SELECT {columns} {source} ORDER BY {order} LIMIT ? OFFSET ?", (*values, page.limit, page.offset)
    )
    return envelope(page, [record(row) for row in rows.fetchall()], total)


def cut(page: Page, items: list[Any]) -> dict[str, Any]:
    """The reply with the requested page of all items, for lists that are built in Python."""
    return envelope(page, items[page.offset : page.offset + page.limit], len(items))
