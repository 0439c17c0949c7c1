"""Secrets of builds: passed to the owner's agent before the build is queued, removed after its end.

The values pass through the process of the request, and only the agent keeps them. The database
has only which builds have secrets. A row is inserted before the agent gets them and deleted after it
has removed them, so that the worker finds what is left after any interruption.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from svc.db.connect import database, write
from svc.domain.principal import Caller
from svc.host.ids import after, now

BuildSecrets = Mapping[str, bytes]  # by id
ORPHAN_S = 120  # a build that is not queued by then never will be

_ENDED = """SELECT s.operation_id, s.owner_id
    FROM build_secrets s LEFT JOIN operations o ON o.id = s.operation_id
    WHERE o.status NOT IN ('queued', 'running') OR (o.id IS NULL AND s.created_at < ?)"""


class Left(NamedTuple):
    """A build that has ended and whose secrets are not removed yet."""

    id: str  # of its operation
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
    """The argument of image.build about the secrets; None for a build without any."""
    ids = request.get("secrets")
    return {"operation": operation_id, "ids": ids} if ids else None


def ended() -> list[Left]:
    """The builds whose secrets must be removed."""
    return [Left(*row) for row in database.execute_sql(_ENDED, (after(now(), -ORPHAN_S),)).fetchall()]


def forget(caller: Caller, operation_id: str) -> None:
    """Have the owner's agent remove the secrets, then delete the row; raises the agent's error."""
    _send(caller, operation_id, {})
    with write():
        database.execute_sql("DELETE FROM build_secrets WHERE operation_id = ?", (operation_id,))


def _send(caller: Caller, operation_id: str, secrets: BuildSecrets) -> None:
    sizes = [{"id": name, "size": len(value)} for name, value in secrets.items()]
    with open(os.memfd_create("svc-secrets", os.MFD_CLOEXEC), "w+b") as file:
        file.writelines(secrets.values())
        file.flush()
        caller.ask("image.secrets", {"operation": operation_id, "sizes": sizes}, input_fd=file.fileno())
