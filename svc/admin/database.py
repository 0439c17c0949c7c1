"""The database of a command of `svc admin`, opened as its owner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from svc.admin.actor import OPERATOR
from svc.admin.backup.snapshots import restore_hint
from svc.admin.command import require_owner
from svc.db import acting
from svc.db.connect import close_database, open_database
from svc.db.location import database_path, lost_database
from svc.db.reserve import entitled
from svc.domain.accounts import users
from svc.domain.accounts.users import Account
from svc.errors import Conflict, DatabaseRefused, SettingInvalid
from svc.host.owner import RUN_S, owner_of, run_as
from svc.host.restoring import require_none
from svc.settings import Settings


def as_owner(settings: Settings, work: Callable[[], Any], within_s: float = 0) -> Any:
    """The result of `work` (JSON values) on the opened database, by a process of its owner.

    That process has no terminal: ask for what must be typed before. The result is untrusted.
    The administrator's commands may use the reserve of a full disk.
    """
    database = database_path(settings)
    require_owner(database)
    _require_no_restore(settings, database)
    require_not_lost(settings, database)

    def opened() -> Any:
        acting.by_default("admin", OPERATOR)
        open_database(database)
        try:
            with entitled():
                return work()
        finally:
            close_database()

    return run_as(owner_of(database), opened, within_s or RUN_S)


def _require_no_restore(settings: Settings, database: str) -> None:
    try:
        state_dir = settings.state_dir
    except SettingInvalid:
        return  # a command that needs the setting refuses it; the others do not know where the note would be
    require_none(state_dir, database)


def require_not_lost(settings: Settings, database: str) -> None:
    """Raise DatabaseRefused for a missing or empty file that was a database by root's records."""
    if lost := lost_database(settings, database):
        raise DatabaseRefused(lost, hint=restore_hint(settings, database))


def active_account(name: str) -> Account:
    """The account of this name; raises NotFound, or Conflict for a retired one."""
    user = users.get(name)
    if users.is_retired(user):
        raise Conflict(
            f"the account {user.name} is retired: nobody can log in to it", hint="sudo svc admin list-users"
        )
    return user
