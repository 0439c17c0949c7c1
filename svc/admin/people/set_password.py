"""`svc admin set-password`: replace a service password."""

from __future__ import annotations

from typing import Any

from svc.actions.table import ADMIN_SET_PASSWORD
from svc.admin.actor import note
from svc.admin.command import for_database, settings_of, wrap_db_errors
from svc.admin.database import active_account, as_owner
from svc.admin.people.password_input import read_password
from svc.commandline import output
from svc.commandline.arguments import Argument, Arguments, Command
from svc.db.connect import write
from svc.db.secret_check import read_own
from svc.domain import configuration
from svc.domain.accounts import keys, passwords, users
from svc.domain.accounts.users import Account
from svc.errors import SvcError

EXAMPLES = """\
sudo svc admin set-password root
sudo svc admin set-password demo < password.txt"""


@wrap_db_errors
def set_password(args: Arguments) -> int:
    """Set the service password of an account (not the Linux password).

    Asked for twice on a terminal, else read from standard input. 8 to 64
    characters, 12 to 64 for root and superusers; common passwords and those
    derived from the user's or the product's name are refused. All sessions and
    tokens of the account end, and a closed login is open again.
    """
    settings = settings_of(args, ("SVC_DB", "SVC_JWT_SECRET_FILE"))

    def inspect() -> dict[str, Any]:
        configuration.configure_only(secret=read_own(settings.secret_file))
        user = active_account(args.name)
        return {"is_ready": user.provisioning == users.READY, "is_disabled": bool(user.disabled)}

    def change() -> tuple[int, int]:
        configuration.configure_only(secret=read_own(settings.secret_file))
        user = active_account(args.name)
        normalised = checked(user, password)
        hashed = passwords.hash_password(normalised, keys.secret())
        with write():
            ended = users.set_password(user, hashed, len(normalised))
            note(ADMIN_SET_PASSWORD, user.name, "ok", ended=ended._asdict())
        return ended

    untrusted = as_owner(settings, inspect)
    try:
        password = read_password(args.name)
    except BaseException as error:  # an interrupt too is recorded; it is raised again
        outcome = error.code if isinstance(error, SvcError) else "aborted"
        as_owner(settings, lambda: note(ADMIN_SET_PASSWORD, args.name, outcome))
        raise
    sessions, tokens = map(int, as_owner(settings, change))
    what = " and ".join([output.plural(sessions, "session"), output.plural(tokens, "token")])
    print(f"the service password of {args.name} is set" + (f"; {what} ended" if sessions or tokens else ""))
    if not untrusted.get("is_ready"):
        complete = for_database(f"create-user {args.name}", settings)
        output.note(f"the account is incomplete; to complete it: {complete}")
    elif untrusted.get("is_disabled"):
        enable = for_database(f"edit-user {args.name} --enable", settings)
        output.note(f"the account is disabled; to enable it: {enable}")
    return 0


def checked(user: Account, password: str) -> str:
    """The normalised password; a refused one is recorded in the audit too."""
    try:
        return passwords.check(
            password, user=user.name, display_name=user.display_name, superuser=bool(user.superuser)
        )
    except SvcError as error:
        note(ADMIN_SET_PASSWORD, user.name, error.code)
        raise


COMMANDS = (
    Command("set-password", set_password, Argument("NAME", "the account"), examples=EXAMPLES, json=False),
)
