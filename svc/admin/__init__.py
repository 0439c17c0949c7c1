"""`svc admin`: one file per word; opens the database itself, needs no running server.

Building the parsers imports the standard library and the parsers' own module
alone, as `svc.__main__` asks; a handler imports what it works with.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from svc.cli.parser import Words

DESCRIPTION = """\
Set up, check and mend the service, as root on its host. These commands open the
database themselves and need no running server."""

WORDS = (
    "svc.admin.migrate",
    "svc.admin.create_user",
    "svc.admin.set_password",
    "svc.admin.revoke_tokens",
    "svc.admin.list_users",
    "svc.admin.template_import",
    "svc.admin.db_path",
    "svc.admin.doctor",
    "svc.admin.tls_fingerprint",
)


def add_parser(words: Words) -> None:
    """Add the word `admin` and its commands; `--db` may stand before or after the command."""
    parser = words.add_parser(
        "admin", help="set up, check and mend the service (as root)", description=DESCRIPTION
    )
    parser.add_argument(
        "--db", metavar="PATH", default=None, help="database path (default: SVC_DB, else svc.db)"
    )
    commands = parser.add_subparsers(dest="command", metavar="<command>", prog="svc admin", required=True)
    for word in WORDS:
        import_module(word).add_parser(commands)
