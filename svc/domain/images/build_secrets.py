"""Secrets of builds: handed to the owner's agent before the build is queued, forgotten after its end.

The values pass through the process of the request and are kept by the agent alone. The database
has only which builds have some: a row comes before them and goes after them, so that whatever was
interrupted, the worker finds what is left.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from svc.db.connect import database, write
from svc.db.ids import after, now
from svc.domain.principal import Caller

BuildSecrets = Mapping[str, bytes]  # by id
ORPHAN_S = 120  # after this time a build that is not queued will not be

_ENDED = """SELECT s.operation_id, s.owner_id
    FROM build_secrets s LEFT JOIN operations o ON o.id = s.operation_id
    WHERE o.status NOT IN ('queued', 'running') OR (o.id IS NULL AND s.created_at < ?)"""


class Left(NamedTuple):
    """A build that has ended, and whose secrets are not yet forgotten."""

    operation_id: str
    owner_id: int


def keep(caller: Caller, operation_id: str, secrets: BuildSecrets) -> None:
    """Have the caller's agent keep the secrets of a build that is about to be queued."""
    with write():
        database.execute_sql(
            "INSERT INTO build_secrets (operation_id, owner_id, created_at) VALUES (?, ?, ?)",
            (operation_id, caller.user_id, now()),
        )
    _send(caller, operation_id, secrets)


def arguments(operation_id: str, request: Mapping[str, Any]) -> dict[str, Any] | None:
    """What image.build is told of them; None for a build without."""
    ids = request.get("secrets")
    return {"operation": operation_id, "ids": ids} if ids else None


def ended() -> list[Left]:
    """The builds whose secrets are to be forgotten."""
    return [Left(*row) for row in database.execute_sql(_ENDED, (after(now(), -ORPHAN_S),)).fetchall()]


def forget(caller: Caller, operation_id: str) -> None:
    """Have the owner's agent remove them, and note that; raises what the agent does."""
    _send(caller, operation_id, {})
    with write():
        database.execute_sql("DELETE FROM build_secrets WHERE operation_id = ?", (operation_id,))


def _send(caller: Caller, operation_id: str, secrets: BuildSecrets) -> None:
    sizes = [{"id": name, "size": len(value)} for name, value in secrets.items()]
    with open(os.memfd_create("svc-secrets", os.MFD_CLOEXEC), "w+b") as file:
        file.writelines(secrets.values())
        file.flush()
        caller.ask("image.secrets", {"operation": operation_id, "sizes": sizes}, input_fd=file.fileno())
