"""Events: what has changed, in the order of the commits, for screens and scripts that wait for changes.

The database's triggers write them, in the transaction of the change that they report; EVENT_DAYS_KEPT
later they are forgotten. "Own events only (administrators: metadata of all)": everyone has the events
of their own things and those that concern all, such as capacity.changed; administrators may ask
for all, without the data of others. Records:

    {id, ts, type, owner, actor: {user, via}, subject: {type, id, name}, reason, data}
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from svc.db import facts
from svc.db.connect import database, let_others_write, write
from svc.domain import pages
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.errors import AdminOnly, invalid_field
from svc.host.ids import after, now
from svc.limits import EVENT_DAYS_KEPT, TOKEN_EXPIRES_SOON_DAYS

TYPES = (
    "workspace.created", "workspace.updated", "workspace.status_changed", "workspace.deleted",
    "operation.progress", "operation.finished", "image.status_changed", "launcher.status_changed",
    "template.created", "template.imported", "template.updated", "template.enabled", "template.disabled",
    "template.deleted", "token.created", "token.revoked", "token.expiring", "gpu.lost", "gpu.restored",
    "capacity.changed", "registries.changed",
)  # fmt: skip
READ_S = (
    5  # a page asks for its session and for what it shows at once: one answer may be newer than the other
)
FORGOTTEN = "events_forgotten"  # the fact: the newest id that was removed for its age
STEP = 500  # rows that one transaction removes
DAY_S = 24 * 3600

_COLUMNS = (
    "e.id, e.at, e.type, e.owner_id, coalesce(u.name, ''), e.audience, e.actor, e.via,"
    " e.subject_type, e.subject_id, e.subject_name, e.reason, e.data_json"
)
_SOURCE = "FROM events e LEFT JOIN users u ON u.id = e.owner_id WHERE "


class Event(NamedTuple):
    """One row, with the name of its owner."""

    id: int
    at: str
    type: str
    owner_id: int | None
    owner: str
    audience: str
    actor: str
    via: str
    subject_type: str
    subject_id: str
    subject_name: str
    reason: str | None
    data_json: str

    def record(self, *, whole: bool) -> dict[str, Any]:
        """The event; unless `whole`, without what only its owner may read."""
        name = self.subject_name if whole or self.subject_type != "token" else ""
        return {
            "id": self.id, "ts": self.at, "type": self.type, "owner": self.owner or None,
            "actor": {"user": self.actor or None, "via": self.via or None},
            "subject": {"type": self.subject_type, "id": self.subject_id, "name": name},
            "reason": self.reason, "data": _data(self.data_json) if whole else None,
        }  # fmt: skip


class View(NamedTuple):
    """Which events a reader gets: their own and everyone's, an administrator's also, or all."""

    user_id: int
    administers: bool
    everything: bool
    types: frozenset[str]  # empty: of all types

    def includes(self, event: Event) -> bool:
        """Whether the reader gets the event."""
        if self.types and event.type not in self.types:
            return False
        return self.everything or self.is_own(event)

    def is_own(self, event: Event) -> bool:
        """Whether the event is the reader's own, or concerns the reader: then its data does too."""
        if event.owner_id == self.user_id or event.audience == "everyone":
            return True
        return self.administers and event.audience == "administrators"


def view_of(caller: Caller, *, everything: bool = False, types: str = "") -> View:
    """The caller's view; raises AdminOnly for all events, ValidationFailed for an unknown type."""
    if everything:
        _require_administrator(caller)
    asked = frozenset(filter(None, types.split(",")))
    for name in sorted(asked):
        if name not in TYPES:
            raise invalid_field("type", "unknown_choice", f"{name} is not one of {', '.join(TYPES)}")
    return View(caller.user_id, caller.administers, everything, asked)


def narrowed(view: View, caller: Caller) -> View:
    """The view of a reader who may be no administrator any more; raises AdminOnly for all events."""
    if view.everything:
        _require_administrator(caller)
    return view._replace(administers=view.administers and caller.administers)


def _require_administrator(caller: Caller) -> None:
    if not caller.administers:
        raise AdminOnly("only an administrator can read the events of all users", hint="svc events")


def newest() -> int:
    """The id of the newest event ever, also of one that is no longer kept."""
    row = database.execute_sql("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
    return int(row[0]) if row else 0


def newest_before() -> int:
    """The newest id READ_S ago: whoever begins to read now, and follows the events after it, misses none."""
    row = database.execute_sql(
        "SELECT id FROM events WHERE at <= ? ORDER BY id DESC LIMIT 1", (after(now(), -READ_S),)
    ).fetchone()
    return max(int(row[0]) if row else 0, forgotten())


def forgotten() -> int:
    """The newest id that was removed for its age; events superseded by newer ones do not count."""
    return int(facts.find(FORGOTTEN).get(FORGOTTEN, "0"))


def following(event_id: int, limit: int) -> list[Event]:
    """The events of everybody after this one, the oldest first."""
    rows = database.execute_sql(
        f"SELECT {_COLUMNS} {_SOURCE} e.id > ? ORDER BY e.id LIMIT ?", (event_id, limit)
    )
    return [Event(*row) for row in rows.fetchall()]


def following_in(view: View, event_id: int, limit: int) -> list[Event]:
    """The events of a view after this one, the oldest first."""
    rows = database.execute_sql(*_merged(_sources(view, ["e.id > ?"], [event_id]), "ASC", limit))
    return [Event(*row) for row in rows.fetchall()]


def page_of(view: View, page: Page, event_id: int = 0, subject: str = "") -> dict[str, Any]:
    """One page of the events of a view, the newest first: those after `event_id`, of one subject."""
    found, parameters = pages.matching(page, ("e.subject_name", "e.subject_id"))
    conditions, values = [found], list[Any](parameters)
    if event_id:  # without it all are counted by an index
        conditions.append("e.id > ?")
        values.append(event_id)
    if subject:
        conditions.append("? IN (e.subject_id, e.subject_name)")
        values.append(subject)
    sources = _sources(view, conditions, values)
    order = pages.order_by(page, {"id": "e.id"}, "-id", "e.id")
    counted = " + ".join(f"(SELECT count(*) FROM events e WHERE {source})" for source, _ in sources)
    total = database.execute_sql(
        f"SELECT {counted}", [value for _, values in sources for value in values]
    ).fetchone()[0]
    direction = order.rpartition(" ")[2]
    rows = database.execute_sql(*_merged(sources, direction, page.limit, page.offset)).fetchall()
    events = [Event(*row) for row in rows]
    return pages.envelope(page, [event.record(whole=view.is_own(event)) for event in events], total)


_Source = tuple[str, list[Any]]


def _sources(view: View, conditions: list[str], values: list[Any]) -> list[_Source]:
    """The SQL of View.includes, with further conditions: one walk along an index for each kind of event."""
    types = f"e.type IN ({', '.join('?' * len(view.types))})" if view.types else "1"
    rest, parameters = " AND ".join([*conditions, types]), [*values, *sorted(view.types)]
    if view.everything:
        return [(rest, parameters)]
    audiences = "'everyone', 'administrators'" if view.administers else "'everyone'"
    shared = f"e.audience <> 'owner' AND e.audience IN ({audiences}) AND e.owner_id IS NOT ?"
    return [(f"e.owner_id = ? AND {rest}", [view.user_id, *parameters]),
            (f"{shared} AND {rest}", [view.user_id, *parameters])]  # fmt: skip


def _merged(sources: list[_Source], direction: str, limit: int, offset: int = 0) -> tuple[str, list[Any]]:
    """The statement for a part of these events, and its parameters: SQLite merges the walks by their ids."""
    walks = " UNION ALL ".join(f"SELECT {_COLUMNS} {_SOURCE} {source}" for source, _ in sources)
    values = [value for _, more in sources for value in more]
    return f"{walks} ORDER BY 1 {direction} LIMIT ? OFFSET ?", [*values, limit, offset]


def _data(document: str) -> dict[str, Any]:
    """The data; text that is no JSON object, after a change by hand, is left out."""
    try:
        data = json.loads(document)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


# --- events that no row of another table tells of ----------------------------------------------


def add(
    event_type: str,
    owner_id: int,
    subject: tuple[str, str, str],
    data: dict[str, Any],
    reason: str | None = None,
) -> None:
    """Write one event; `subject` is its type, id and name."""
    with write():
        database.execute_sql(
            "INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, reason, data_json)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (event_type, owner_id, *subject, reason, json.dumps(data)),
        )


def note_expiring() -> int:
    """Write token.expiring for each token that expires soon, once; returns their number."""
    at = now()
    with write():
        return database.execute_sql(
            "INSERT INTO events (type, owner_id, subject_type, subject_id, subject_name, data_json)"
            " SELECT 'token.expiring', t.user_id, 'token', t.id, t.name,"
            " '{\"expires_at\":\"' || t.expires_at || '\"}' FROM tokens t WHERE t.ended_at IS NULL"
            " AND t.expires_at > ? AND t.expires_at <= ? AND NOT EXISTS (SELECT 1 FROM events e"
            " WHERE e.subject_id = t.id AND e.type = 'token.expiring')",
            (at, after(at, TOKEN_EXPIRES_SOON_DAYS * DAY_S)),
        ).rowcount


def forget_old() -> int:
    """Remove the events of more than EVENT_DAYS_KEPT ago; returns their number."""
    before, count, removed = after(now(), -EVENT_DAYS_KEPT * DAY_S), 0, STEP
    while removed == STEP:
        with write():
            old = database.execute_sql(
                "SELECT id FROM (SELECT id, at FROM events ORDER BY id LIMIT ?) WHERE at < ?", (STEP, before)
            ).fetchall()
            removed = len(old)
            if old:
                last = max(row[0] for row in old)
                database.execute_sql("DELETE FROM events WHERE id <= ? AND at < ?", (last, before))
                facts.put({FORGOTTEN: str(max(last, forgotten()))})
        count += removed
        let_others_write()
    return count
