"""What every word of `svc admin` begins with: its settings, and the database opened as its owner."""

from __future__ import annotations

import argparse
import os
import sys
from functools import wraps

from svc.cli.parser import add_command
from svc.settings import Settings

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable

    from svc.cli.parser import Parser, Words


def add_word(words: Words, name: str, handler: Callable[[argparse.Namespace], int], examples: str) -> Parser:
    """One admin command; its own `--db` leaves the one before the command alone when it is not given."""
    parser = add_command(words, name, told(handler), examples)
    parser.add_argument(
        "--db",
        metavar="PATH",
        type=path,
        default=argparse.SUPPRESS,
        help="database path (default: SVC_DB, else svc.db)",
    )
    return parser


def told(handler: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """The handler, with what the database itself refuses told as every error is, escaped.

    The words may be the database's own (a trigger's), and root's terminal obeys more than letters.
    """

    @wraps(handler)
    def run(args: argparse.Namespace) -> int:
        try:
            return handler(args)
        except Exception as error:  # the edge of the command; what is not the database's goes on as it was
            if not type(error).__module__.startswith(("peewee", "sqlite3")):
                raise
            from svc.errors import DatabaseRefused

            raise DatabaseRefused(f"the database refused: {error}", hint="sudo svc admin doctor") from None

    return run


def path(text: str) -> str:
    """A path given on the command line: not empty, which would silently be the default."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty")
    return text


def settings_of(args: argparse.Namespace) -> Settings:
    """The settings in force for this command."""
    settings = Settings(flags={"SVC_DB": args.db})
    settings.warn_unknown()
    return settings


def require_owner(database: str) -> None:
    """Let root and the database's owner through; anyone else is told the same command with sudo."""
    from svc.db.owner import owner_of
    from svc.errors import DatabaseRefused

    try:
        owner = owner_of(database)
    except DatabaseRefused as error:  # not even the directory may be looked into
        raise DatabaseRefused(error.message, hint=again_with_sudo()) from None
    if os.geteuid() not in (0, owner.uid):
        raise DatabaseRefused(f"{database} belongs to {owner.name}", hint=again_with_sudo())


def again_with_sudo() -> str:
    """The command line that was typed, with sudo before it."""
    from shlex import join

    return "sudo " + join(["svc", *sys.argv[1:]])


def open_as_owner(settings: Settings) -> str:
    """Become the database's owner for good and open it; returns its path."""
    from svc.db.connect import open_database
    from svc.db.location import database_path
    from svc.db.owner import become, owner_of

    database = database_path(settings)
    require_owner(database)
    become(owner_of(database))
    open_database(database)
    return database
