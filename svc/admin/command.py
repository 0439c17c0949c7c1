"""What every command of `svc admin` begins with: its settings, and the database opened as its owner."""

from __future__ import annotations

import os
import sys
from functools import wraps

from svc.cli.arguments import Argument
from svc.settings import Settings

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable

    from svc.cli.arguments import Arguments
    from svc.domain.accounts.users import Account


def path(text: str) -> str:
    """A path that is not empty, since an empty one would silently select the default."""
    if not text:
        raise ValueError("the path is empty")
    return text


DB = Argument("--db", "database path (default: SVC_DB, else svc.db)", metavar="PATH", type=path)


def wrap_db_errors(handler: Callable[[Arguments], int]) -> Callable[[Arguments], int]:
    """The handler, with errors of peewee and sqlite3 raised as DatabaseRefused.

    Their text may come from the database itself (a trigger's message); as an
    SvcError it is printed with control characters escaped.
    """

    @wraps(handler)
    def run(args: Arguments) -> int:
        try:
            return handler(args)
        except Exception as error:  # at the edge of the command; errors of other modules are raised again
            if not type(error).__module__.startswith(("peewee", "sqlite3")):
                raise
            from svc.errors import DatabaseRefused

            raise DatabaseRefused(f"the database failed: {error}", hint="sudo svc admin doctor") from None

    return run


def settings_of(args: Arguments) -> Settings:
    """The settings in force for this command."""
    settings = Settings(flags={"SVC_DB": args.db})
    settings.warn_unknown()
    return settings


def require_owner(database: str) -> None:
    """Raise DatabaseRefused unless the caller is root or the database's owner."""
    from svc.db.owner import owner_of
    from svc.errors import DatabaseRefused

    try:
        owner = owner_of(database)
    except DatabaseRefused as error:  # the directory is not even searchable
        raise DatabaseRefused(error.message, hint=sudo_command()) from None
    if os.geteuid() not in (0, owner.uid):
        raise DatabaseRefused(f"{database} belongs to {owner.name}", hint=sudo_command())


def sudo_command() -> str:
    """The present command line with sudo before it, for a hint."""
    from shlex import join

    return "sudo " + join(["svc", *sys.argv[1:]])


def open_as_owner(settings: Settings) -> str:
    """Become the database's owner irrevocably and open the database; returns its path."""
    from svc.db.connect import open_database
    from svc.db.location import database_path
    from svc.db.owner import become, owner_of

    database = database_path(settings)
    require_owner(database)
    become(owner_of(database))
    open_database(database)
    return database


def active_account(name: str) -> Account:
    """The account of this name; raises NotFound, or Conflict for a retired one."""
    from svc.domain.accounts import retirement, users
    from svc.errors import Conflict

    user = users.get(name)
    if retirement.is_retired(user.name):
        raise Conflict(
            f"the account {user.name} is retired: nobody can log in to it", hint="sudo svc admin list-users"
        )
    return user
