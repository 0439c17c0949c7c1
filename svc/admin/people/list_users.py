"""`svc admin list-users`: every account, its state, and its missing steps."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from svc.admin.command import for_database, settings_of, wrap_db_errors
from svc.admin.database import as_owner
from svc.admin.findings import Host, read_enrolled
from svc.admin.people import provisioning_status
from svc.commandline import output
from svc.commandline.arguments import Argument, Arguments, Command
from svc.domain.accounts import users
from svc.host.owner import Owner

COLUMNS = (
    ("NAME", "name", output.plain),
    ("UID", "uid", output.plain),
    ("SUPERUSER", "superuser", output.plain),
    ("STATUS", "status", output.plain),
    ("PASSWORD", "password", output.plain),
    ("PERSON", "display_name", output.plain),
)
REMAINDER = (("note", "note"), ("left", "left_to_do"), ("next", "next_command"))
EXAMPLES = """\
sudo svc admin list-users
sudo svc admin list-users --json"""


@wrap_db_errors
def list_users(args: Arguments) -> int:
    """List all users with the superuser flag and the state of their account.

    PROVISIONING_INCOMPLETE and PROVISIONING_CLEANUP_REQUIRED come with the missing
    steps and the command that takes them. The password is set, none, closed (too
    short for a superuser) or locked (100 wrong ones in a row); a new password
    opens the login. A name with a colon belongs to a retired account, whose Linux
    account is gone: its records are kept, nobody can log in to it.

    Columns: name, uid, superuser, status, password, person; in a pipe also
    note, missing steps, next command.
    """
    settings = settings_of(args)
    host = Host(settings, "", Owner(0, 0), knows_enrolled=settings.is_valid("SVC_STATE_DIR"))
    host.enrolled = list(read_enrolled(settings.state_dir)) if host.knows_enrolled else []
    records = as_owner(settings, lambda: [provisioning_status.record(user, host) for user in users.every()])
    if args.json:
        output.items_json(records)
    elif args.quiet or output.on_terminal():
        output.listing(args, COLUMNS, shortened(records), f"No accounts: {for_database('migrate', settings)}")
        if not args.quiet:
            explain(records)
    else:
        more = [(label.upper(), key, output.plain) for label, key in REMAINDER]
        output.table([*COLUMNS, *more], records, "")
    return 0


def shortened(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records with display names cut to fit the terminal, so that no state is cut."""
    room = output.terminal_columns(sys.stdout)
    for heading, key, show in COLUMNS[:-1]:
        room -= max(map(len, (heading, *(show(record[key], True) for record in records)))) + len(output.GAP)
    return [record | {"display_name": cut(record["display_name"], max(room, 4))} for record in records]


def cut(text: str, most: int) -> str:
    """The text, shortened with an ellipsis when it is too long."""
    return text if len(text) <= most else text[: most - 1] + "…"


def explain(records: Iterable[dict[str, Any]]) -> None:
    """Print the missing steps of each incomplete account, and the command that takes them."""
    for record in records:
        if not record["next_command"]:
            continue
        print(f"\n{output.visible(record['name'])}: {record['status']}")
        for label, key in REMAINDER:
            if record[key]:
                print(f"  {label + ':':<6}{output.visible(output.plain(record[key], True))}")


COMMANDS = (
    Command(
        "list-users",
        list_users,
        Argument("--json", "print the records as JSON", kind="flag"),
        examples=EXAMPLES,
        json=False,
    ),
)
