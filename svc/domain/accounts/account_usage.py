"""Accounts with their usage, for administrators: from the database alone, no user's Podman is asked."""

from __future__ import annotations

from typing import Any

from svc.db.connect import database
from svc.domain.accounts import users
from svc.domain.pages import Page
from svc.domain.quotas.usage import IMAGE_BYTES
from svc.host.ids import now

KEYS = (
    "workspaces", "running", "gpus", "image_bytes", "templates", "sessions", "tokens", "last_login_at",
    "last_action_at",
)  # fmt: skip

_USAGE = f"""SELECT u.name,
    (SELECT count(*) FROM workspaces WHERE owner_id = u.id),
    (SELECT count(*) FROM workspaces WHERE owner_id = u.id AND status IN ('starting', 'running', 'stopping')),
    (SELECT count(*) FROM gpu_leases l JOIN workspaces w ON w.id = l.workspace_id WHERE w.owner_id = u.id),
    {IMAGE_BYTES},
    (SELECT count(*) FROM templates WHERE coalesce(owner_id, 0) = +u.id AND u.id > 0),
    (SELECT count(*) FROM sessions WHERE user_id = u.id),
    (SELECT count(*) FROM tokens WHERE user_id = u.id AND ended_at IS NULL AND expires_at > ?),
    (SELECT max(at) FROM login_places WHERE user_id = u.id),
    (SELECT at FROM audit WHERE user_id = u.id ORDER BY id DESC LIMIT 1)
    FROM users u WHERE u.name IN """


def page_of(page: Page) -> dict[str, Any]:
    """One page of all accounts, each its record with KEYS; the route checks who may read them."""
    found = users.page_of(page)
    names = [record["name"] for record in found["items"]]
    rows = database.execute_sql(f"{_USAGE}({', '.join('?' * len(names))})", (now(), *names)).fetchall()
    usage = {name: dict(zip(KEYS, values, strict=True)) for name, *values in rows}
    return found | {"items": [record | usage[record["name"]] for record in found["items"]]}
