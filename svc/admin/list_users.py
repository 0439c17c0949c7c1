"""`svc admin list-users`: every account and its state."""

from __future__ import annotations

from svc.admin.opening import add_word, open_as_owner, settings_of
from svc.cli import output

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    import argparse

    from svc.cli.parser import Words

COLUMNS = (
    ("NAME", "name", output.plain),
    ("UID", "uid", output.plain),
    ("SUPERUSER", "superuser", output.plain),
    ("STATUS", "status", output.plain),
    ("PASSWORD", "has_password", output.plain),
    ("DISPLAY NAME", "display_name", output.plain),
    ("NOTE", "note", output.plain),
)
EXAMPLES = """\
sudo svc admin list-users
sudo svc admin list-users --json"""


def add_parser(words: Words) -> None:
    """Add the word `list-users`."""
    parser = add_word(words, "list-users", list_users, EXAMPLES)
    parser.add_argument("--json", action="store_true", help="print the records as JSON")


def list_users(args: argparse.Namespace) -> int:
    """List all users with the superuser flag and the state of their account.

    PROVISIONING_INCOMPLETE and PROVISIONING_CLEANUP_REQUIRED are mended by
    running `svc admin create-user` again; the note says what is left.
    Columns: name, uid, superuser, status, password set, display name, note.
    """
    from json import dumps

    from svc.domain import users

    open_as_owner(settings_of(args))
    records = [users.record(user) for user in users.every()]
    if args.json:
        output.raw(dumps({"items": records, "total": len(records)}).encode() + b"\n")
    else:
        output.table(COLUMNS, records, "No accounts: svc admin create-user NAME")
    return 0
