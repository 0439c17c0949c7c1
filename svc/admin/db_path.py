"""`svc admin db-path`: the path of the database; opens nothing."""

from __future__ import annotations

from svc.admin.command import settings_of, wrap_db_errors
from svc.commandline.arguments import Arguments, Command
from svc.db.location import database_path

EXAMPLES = """\
svc admin db-path
svc admin db-path --db /srv/svc/svc.db"""


@wrap_db_errors
def db_path(args: Arguments) -> int:
    """Print the path of the database that would be used.

    First match wins: --db after the subcommand, SVC_DB in the environment,
    SVC_DB in /etc/svc/svc.env, svc.db in the current directory. Opens nothing.
    """
    print(database_path(settings_of(args)))
    return 0


COMMANDS = (Command("db-path", db_path, examples=EXAMPLES, json=False),)
