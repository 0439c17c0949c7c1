"""Workspaces as records: JSON made by SQLite itself, so that a list is one SELECT.

"Cost per request flat": no model, no loop and no serialiser between the rows
and the reply.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from svc.db.connect import database
from svc.domain import configuration, image_users, pages
from svc.domain.images.records import STATUS as IMAGE_STATUS
from svc.domain.images.records import USES
from svc.domain.pages import Page
from svc.domain.templates.rows import SPEC
from svc.domain.workspaces.port_kinds import connect_sql, url_sql
from svc.errors import NotFound

PAGES_KEPT = 4  # by one thread, up to tens of kilobytes each

# What the owner may do in each state; workspaces.py and transitions.py enforce it.
ALLOWED_ACTIONS = {
    "creating": ["rename"],
    "stopped": ["start", "edit", "upgrade", "rename", "logs", "delete"],
    "starting": ["rename", "logs"],
    "running": ["stop", "restart", "exec", "rename", "logs", "delete"],
    "stopping": ["rename", "logs"],
    "deleting": ["rename"],
    "failed": ["start", "stop", "edit", "upgrade", "rename", "logs", "delete"],
}
_ACTIONS = " ".join(
    f"WHEN '{status}' THEN json('{json.dumps(actions, separators=(',', ':'))}')"
    for status, actions in ALLOWED_ACTIONS.items()
)
_WORK = '{"root":"work","path":"/work","read_only":false}'
# Documents of earlier releases have no mounts: the work root alone, as in those with none.
_MOUNTS = f"""json('[{_WORK}' || coalesce((SELECT ',' || group_concat(m.value)
        FROM json_each({SPEC}, '$.mounts') m WHERE m.type = 'object'), '') || ']')"""
# In the document's order, which is the order of starting.
_LAUNCHERS = f"""(SELECT json_group_array(json_object('name', json_extract(n.value, '$.name'),
        'title', json_extract(n.value, '$.title'), 'port', json_extract(n.value, '$.port'),
        'autostart', json(iif(json_extract(n.value, '$.autostart'), 'true', 'false')),
        'url', (SELECT {url_sql("p")} FROM ports p WHERE p.workspace_id = w.id
            AND p.name = json_extract(n.value, '$.port'))))
        FROM json_each({SPEC}, '$.launchers') n WHERE n.type = 'object')"""
_WARNINGS = image_users.warnings_sql(
    run_as=f"json_extract({SPEC}, '$.run_as')",
    template="w.template_id",
    owner="w.owner_id",
    is_own="t.owner_id = w.owner_id",
    workspace="w.name",
)
# The store has an image of its reference that its container was not made from: an upgrade takes it.
_NEWER_IMAGE = "i.status = 'ready' AND instr(w.image_ref, '@') = 0 AND NOT " + USES
# Fields that are a column of the same name, kept as they are requested: their SQL in the record.
PLAIN_FIELDS = {
    "display_name": "w.display_name",
    "network": "w.network",
    "restart_on_boot": "json(iif(w.restart_on_boot, 'true', 'false'))",
    "delete_when_stopped": "json(iif(w.delete_when_stopped, 'true', 'false'))",
}
_PLAIN = ", ".join(f"'{name}', {sql}" for name, sql in PLAIN_FIELDS.items())
_RECORD = f"""json_object(
    'id', w.id, 'name', w.name, 'owner', u.name, {_PLAIN},
    'template', json_object('id', w.template_id, 'name', t.name, 'revision', w.template_revision,
        'newer_revision', iif(t.revision > w.template_revision, t.revision, NULL)),
    'image', json_object('ref', w.image_ref, 'digest', w.image_digest),
    'image_status', {IMAGE_STATUS}, 'newer_image', json(iif({_NEWER_IMAGE}, 'true', 'false')),
    'status', w.status, 'status_reason', w.status_reason, 'status_since', w.status_since,
    'health', w.health, 'last_error', json({pages.stored("w.last_error_json")}),
    'operation', (SELECT json_object('id', p.id, 'kind', p.kind, 'status', p.status, 'phase', p.phase,
        'progress', json({pages.stored("p.progress_json", "'{}'")})) FROM operations p
        WHERE p.owner_id = w.owner_id AND p.subject_type = 'workspace' AND p.subject_id = w.id
        AND p.status IN ('queued', 'running') LIMIT 1),
    'allowed_actions', CASE w.status {_ACTIONS} END,
    'resources', json_object('cpu_limit', w.cpu_limit / 1000.0, 'memory_bytes', w.memory_bytes,
        'shm_bytes', w.shm_bytes, 'pids_limit', w.pids_limit,
        'gpu_count', w.gpu_count, 'gpu_mode', w.gpu_mode),
    'gpus', (SELECT json_group_array(json_object('uuid', l.gpu, 'mode', l.mode)) FROM gpu_leases l
        WHERE l.workspace_id = w.id),
    'command', json({pages.stored("w.command_json")}),
    'limits_missing', json({pages.stored("w.limits_missing_json", "'[]'")}),
    'warnings', json({_WARNINGS}), 'mounts', {_MOUNTS},
    'env', CASE w.env_json WHEN '{{}}' THEN json('[]') ELSE json((SELECT json_group_array(
        json_object('name', e.key, 'value', e.value))
        FROM json_each({pages.stored("w.env_json", "'{}'")}) e)) END,
    'launchers', {_LAUNCHERS},
    'ports', (SELECT json_group_array(json_object('name', p.name, 'container_port', p.container_port,
        'host_port', p.host_port, 'access', p.access, 'kind', p.kind, 'user', p.user,
        'url', {url_sql("p")}, 'connect', {connect_sql("p")},
        'ssh', 'ssh -N -L ' || p.host_port || ':127.0.0.1:' || p.host_port || ' ' || u.name || '@SSH_HOST'))
        FROM ports p WHERE p.workspace_id = w.id),
    'idle', json_object('since', w.idle_since, 'keep_until', w.keep_until,
        'action', coalesce(json_extract({SPEC}, '$.idle.action'), 'none'),
        'after_minutes', json_extract({SPEC}, '$.idle.after_minutes')),
    'exit_code', w.exit_code,
    'created_at', w.created_at, 'updated_at', w.updated_at,
    'started_at', w.started_at, 'stopped_at', w.stopped_at)"""
_FROM = """
    FROM workspaces w JOIN users u ON u.id = w.owner_id LEFT JOIN templates t ON t.id = w.template_id
    LEFT JOIN template_revisions r ON r.template_id = w.template_id AND r.revision = w.template_revision
    LEFT JOIN images i ON i.owner_id = w.owner_id AND i.image_ref = w.image_ref"""
_ONE = f"SELECT {_RECORD} {_FROM} WHERE w.id = ?"
_SORT = {"name": "w.name", "created_at": "w.created_at", "updated_at": "w.updated_at", "status": "w.status"}


def one(workspace_id: str) -> dict[str, Any]:
    """The record of a workspace, whoever owns it; raises NotFound once it is deleted."""
    row = database.execute_sql(_with_host(_ONE), (workspace_id,)).fetchone()
    if row is None:
        raise NotFound(f"no workspace {workspace_id}", hint="svc ws list")
    record: dict[str, Any] = json.loads(row[0])
    return record


def _with_host(sql: str) -> str:
    """The statement with this host's name, which is a setting of the administrator's."""
    return sql.replace("SSH_HOST", configuration.current.ssh_host.replace("'", "''"))


def page_of(owner_id: int | None, page: Page) -> str:
    """One page of an owner's workspaces, or of all (None): the whole reply, as JSON text."""
    found, values = pages.matching(page, ("w.name", "w.display_name", "w.id"))
    status, statuses = pages.with_status(page, "w.status")
    order = pages.order_by(page, _SORT, "created_at", "w.id")
    whose = "?1 IS NULL" if owner_id is None else "w.owner_id = ?1"
    where = f"{whose} AND {found} AND {status}"
    parameters = (owner_id, *values, *statuses)
    key = (where, order, *parameters, page.limit, page.offset)
    return _kept(key, lambda: _page_text(page, where, order, parameters))


def _page_text(page: Page, where: str, order: str, parameters: tuple[Any, ...]) -> str:
    items = database.execute_sql(
        "SELECT coalesce(group_concat(record, ','), '') FROM"
        f" (SELECT {_with_host(_RECORD)} AS record {_FROM} WHERE {where} ORDER BY {order} LIMIT ? OFFSET ?)",
        (*parameters, page.limit, page.offset),
    ).fetchone()[0]
    total = database.execute_sql(*_counted(page, where, parameters)).fetchone()[0]
    after = page.offset + page.limit
    return (
        f'{{"items":[{items}],"total":{total},"limit":{page.limit},"offset":{page.offset},'
        f'"next_offset":{after if after < total else "null"}}}'
    )


def _counted(page: Page, where: str, parameters: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The question for the length of a list: the schema keeps that of all workspaces of an owner."""
    if page.q or page.status or parameters[0] is None:
        return f"SELECT count(*) FROM workspaces w WHERE {where}", parameters
    return "SELECT coalesce(max(total), 0) FROM workspace_totals WHERE owner_id = ?", parameters


class _Pages(threading.local):
    """Cache of this thread's last pages, valid for one connection and one state of the database."""

    def __init__(self) -> None:
        self.connection: Any = None
        self.state = (0, 0)
        self.texts: dict[Any, str] = {}


_pages = _Pages()


def _kept(key: tuple[Any, ...], make: Callable[[], str]) -> str:
    """The page of that key, made again only after a write to the database.

    Most list requests come from clients that poll. SQLite reports at no cost whether
    another connection (data_version) or this one (total_changes) has written.
    """
    connection = database.connection()
    state = (connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes)
    if (_pages.connection, _pages.state) != (connection, state) or len(_pages.texts) >= PAGES_KEPT:
        _pages.connection, _pages.state, _pages.texts = connection, state, {}
    if key not in _pages.texts:
        _pages.texts[key] = make()
    return _pages.texts[key]
