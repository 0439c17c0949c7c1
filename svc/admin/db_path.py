"""`svc admin db-path`: which database would be used; opens nothing."""

from __future__ import annotations

from svc.admin.command import add_word, settings_of

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    import argparse

    from svc.cli.parser import Words

EXAMPLES = """\
svc admin db-path
svc admin db-path --db /srv/svc/svc.db"""


def add_parser(words: Words) -> None:
    """Add the word `db-path`."""
    add_word(words, "db-path", db_path, EXAMPLES)


def db_path(args: argparse.Namespace) -> int:
    """Print the path of the database that would be used.

    First match wins: --db after the subcommand, SVC_DB in the environment,
    SVC_DB in /etc/svc/svc.env, svc.db in the current directory. Opens nothing.
    """
    from svc.db.location import database_path

    print(database_path(settings_of(args)))
    return 0
