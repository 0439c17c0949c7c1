"""What ended long ago is forgotten: finished operations with their logs, ended tokens, events.

The audit keeps all of its rows (audit/archive.py): what was done stays known.
"""

from __future__ import annotations

from svc.db.connect import database, let_others_write, write
from svc.domain import events
from svc.host.ids import after, now
from svc.limits import ENDED_DAYS_KEPT

DAY_S = 24 * 3600
STEP = 200  # rows that one transaction removes
OLD_OPERATIONS = """
DELETE FROM operations WHERE id IN (SELECT o.id FROM operations o WHERE o.finished_at < ?
    AND (o.status <> 'succeeded' OR EXISTS (SELECT 1 FROM operations n WHERE n.owner_id = o.owner_id
        AND (n.subject_type, n.subject_id, n.kind) = (o.subject_type, o.subject_id, o.kind)
        AND n.status = 'succeeded' AND n.finished_at > o.finished_at))
    LIMIT ?)"""  # the last success stays: it tells that an image was built
OLD_TOKENS = "DELETE FROM tokens WHERE id IN (SELECT id FROM tokens WHERE ended_at < ? LIMIT ?)"
FORGOTTEN = {"operations": OLD_OPERATIONS, "tokens": OLD_TOKENS}


def forget_ended() -> dict[str, int]:
    """Remove what ended more than ENDED_DAYS_KEPT ago, and events of more than EVENT_DAYS_KEPT.

    Returns how much of what kind, without zeros.
    """
    before, counts = after(now(), -ENDED_DAYS_KEPT * DAY_S), dict.fromkeys(FORGOTTEN, 0)
    for kind, statement in FORGOTTEN.items():
        removed = STEP
        while removed == STEP:
            with write():
                removed = database.execute_sql(statement, (before, STEP)).rowcount
            counts[kind] += removed
            let_others_write()
    counts["events"] = events.forget_old()
    return {kind: count for kind, count in counts.items() if count}
