"""What a row of the audit is about: the thing's name of then, and whose it is.

Both go into the row's detail, so that the chain covers them: ids say nothing once the thing is
renamed or deleted. A row about a thing of somebody else's is also found by its owner
(`audit_concerns`): "administrators stop and delete", and the owner sees who did it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from svc.actions import table
from svc.db.connect import database

NAME, OWNER = "target_name", "target_owner"  # keys of a row's detail

# Name of the target, id and name of its owner: by the action, or by its noun.
_OF_WORKSPACE = (
    "SELECT w.name, u.id, u.name FROM workspaces w JOIN users u ON u.id = w.owner_id WHERE w.id = ?"
)
_OF_TEMPLATE = (
    "SELECT t.name, u.id, u.name FROM templates t LEFT JOIN users u ON u.id = t.owner_id WHERE t.id = ?"
)
_OF_OPERATION = (
    "SELECT o.kind, u.id, u.name FROM operations o JOIN users u ON u.id = o.owner_id WHERE o.id = ?"
)
_OF_ACCOUNT = "SELECT '', id, name FROM users WHERE name = ?"
_QUERIES = {
    "workspace": _OF_WORKSPACE,
    "terminal": _OF_WORKSPACE,
    "template": _OF_TEMPLATE,
    "image": _OF_TEMPLATE,
    "operation": _OF_OPERATION,
    "user": _OF_ACCOUNT,
    table.ADMIN_CREATE_USER: _OF_ACCOUNT,
    table.ADMIN_EDIT_USER: _OF_ACCOUNT,
    table.ADMIN_SET_PASSWORD: _OF_ACCOUNT,
    table.ADMIN_REVOKE_TOKENS: _OF_ACCOUNT,
    table.ADMIN_DELETE_USER: _OF_ACCOUNT,
    table.ADMIN_TEMPLATE_IMPORT: _OF_TEMPLATE,
}
# A stranger who guesses an id learns nothing by it, and its owner is not told: nobody floods another's list.
_UNTOLD = "not_found"


class Subject(NamedTuple):
    """The name of a target, '' where it has none besides the target itself, and whose it is."""

    name: str = ""
    owner_id: int | None = None
    owner: str = ""


def find(action: str, target: str) -> Subject:
    """What is known about a target now."""
    query = _QUERIES.get(action) or _QUERIES.get(action.partition(".")[0])
    row = database.execute_sql(query, (target,)).fetchone() if query and target else None
    return Subject(*row) if row else Subject()


def detail_of(subject: Subject, user_id: int | None, detail: Mapping[str, Any]) -> dict[str, Any]:
    """The detail with the name of the subject, and its owner's where another user acts."""
    more = {NAME: subject.name} if subject.name else {}
    if subject.owner_id is not None and subject.owner_id != user_id:
        more[OWNER] = subject.owner
    return {**detail, **more}


def note(audit_id: int, subject: Subject, user_id: int | None, outcome: str) -> None:
    """Let the owner find a row of somebody else's, inside the transaction that adds it."""
    if subject.owner_id is not None and subject.owner_id != user_id and outcome != _UNTOLD:
        database.execute_sql(
            "INSERT INTO audit_concerns (audit_id, owner_id) VALUES (?, ?)", (audit_id, subject.owner_id)
        )
