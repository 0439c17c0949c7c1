"""`svc whoami`."""

from __future__ import annotations

from svc.cli.arguments import add_command
from svc.cli.client import ask, show_record
from svc.cli.output import plain

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    import argparse

    from svc.cli.arguments import Words

FIELDS = (
    ("NAME", "name", plain),
    ("DISPLAY NAME", "display_name", plain),
    ("USER ID", "uid", plain),
    ("SUPERUSER", "superuser", plain),
    ("LINUX ACCOUNT", "linux_account.name", plain),
    ("HOME", "linux_account.home", plain),
    ("FILE ROOTS", "roots", plain),
    ("VIA", "via", plain),
)


def add_parser(words: Words) -> None:
    """Add the word `whoami`."""
    add_command(words, "whoami", whoami, "svc whoami\nsvc whoami --json")


def whoami(args: argparse.Namespace) -> int:
    """Show the Linux account that the socket authenticated.

    The kernel tells the service who calls: there is no login, no password and
    no token. Exit code 3 says that this Linux account has no service account.
    """
    return show_record(args, ask(args, "GET", "/api/users/me"), FIELDS)
