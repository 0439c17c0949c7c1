"""What every command of `svc admin` begins with: settings, rights, errors of the database."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from shlex import join
from typing import Any

from svc.cli.env import warn
from svc.commandline import output
from svc.commandline.arguments import Arguments, path
from svc.db import location
from svc.errors import DatabaseRefused
from svc.host.owner import owner_of
from svc.settings import Settings
from svc_helper.wire.quick_json import dumps


def named_file(text: str) -> str:
    """The path of a file, where a standard stream would not do: others lie beside it, or it must last."""
    if path(text) == "-":
        raise ValueError("- is no file; name one")
    return text


FOR_HELPER = (
    "SVC_DB",
    "SVC_STATE_DIR",
    "SVC_SOCKET",
    "SVC_FILE_ROOTS",
    "SVC_STORE_DIR",
)  # for a helper of a command's own


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
            hint = for_database("doctor", Settings(flags={"SVC_DB": args.db}))
            raise DatabaseRefused(f"the database failed: {error}", hint=hint) from None

    return run


def settings_of(args: Arguments, needs: Iterable[str] = ("SVC_DB",), *, silent: bool = False) -> Settings:
    """The settings in force for this command; warns of what is wrong in others than it needs.

    Raises SettingInvalid for what it needs, before anything is changed.
    """
    settings = Settings(flags={"SVC_DB": args.db})
    if not silent:
        settings.require(needs)
        warn(settings.faults(), settings.unknown())
    return settings


def require_owner(database: str) -> None:
    """Raise DatabaseRefused unless the caller is root or the database's owner."""
    try:
        owner = owner_of(database)
    except DatabaseRefused as error:  # the directory is not even searchable
        if os.geteuid() == 0:
            raise
        raise DatabaseRefused(error.message, hint=sudo_command()) from None
    if os.geteuid() not in (0, owner.uid):
        raise DatabaseRefused(f"{database} belongs to {owner.name}", hint=sudo_command())


def sudo_command(*more: str) -> str:
    """The present command line with sudo before it and `more` after it, for a hint.

    sudo passes no SVC_DB of the shell on, so that the line names that database.
    """
    settings, typed = Settings(), ["svc", *sys.argv[1:]]
    end = typed.index("--") if "--" in typed else len(typed)
    is_of_shell = settings.resolved["SVC_DB"].source == "environment" and "--db" not in typed
    if is_of_shell and typed[1:2] == ["admin"] and (database := location.named_database(settings)):
        more = (*more, "--db", database)
    typed[end:end] = more
    return "sudo " + join(typed)


def for_database(command: str, settings: Settings) -> str:
    """A command of `svc admin` for a hint, with the --db of this one: no other database is meant."""
    return location.for_database(command, settings)


def exit_on_signals() -> None:
    """Let SIGTERM and SIGHUP end the command in order, so that its draft goes too; not under nohup."""

    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, end)


def print_json(record: dict[str, Any]) -> None:
    """Print a record as the API does."""
    output.raw(dumps(record).encode() + b"\n")
