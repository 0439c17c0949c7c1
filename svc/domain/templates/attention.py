"""Counts for badges: what a user should look at, in one reading of the database.

Each count follows an index, so that a page may ask for all of them with every session.
"""

from __future__ import annotations

from svc.db.connect import database
from svc.domain.gpus.health import GPU_LOST
from svc.domain.principal import Caller
from svc.domain.templates.records import AWAITING
from svc.host.ids import after, now
from svc.limits import TOKEN_EXPIRES_SOON_DAYS

DAY_S = 24 * 3600
FAILED_S = DAY_S  # operations that failed since then

_COUNTS = f"""SELECT
    (SELECT count(*) FROM tokens WHERE user_id = ?1 AND ended_at IS NULL
        AND expires_at > ?3 AND expires_at <= ?4),
    (SELECT count(*) FROM templates t WHERE ?2 AND coalesce(t.owner_id, 0) = 0 AND {AWAITING}),
    (SELECT count(*) FROM workspaces WHERE status <> 'stopped' AND health = '{GPU_LOST}'
        AND (?2 OR owner_id = ?1)),
    (SELECT count(*) FROM operations WHERE owner_id = ?1 AND status = 'failed' AND created_at > ?5)"""
_KEYS = ("tokens_expiring", "reviews_waiting", "gpus_lost", "operations_failed")


def counts(caller: Caller) -> dict[str, int]:
    """{tokens_expiring, reviews_waiting, gpus_lost, operations_failed}."""
    at = now()
    soon, since = after(at, TOKEN_EXPIRES_SOON_DAYS * DAY_S), after(at, -FAILED_S)
    row = database.execute_sql(_COUNTS, (caller.user_id, int(caller.administers), at, soon, since)).fetchone()
    return dict(zip(_KEYS, row, strict=True))
