"""`svc admin set-password`: replace a service password."""

from __future__ import annotations

from svc.admin.command import active_account, open_as_owner, settings_of, wrap_db_errors
from svc.cli import output
from svc.cli.arguments import Argument, Arguments, Command

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from svc.domain.accounts.users import Account

ACTION = "admin.set_password"
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
    from svc.admin.actor import note
    from svc.db.connect import write
    from svc.db.secret import read_secret
    from svc.domain import configuration
    from svc.domain.accounts import keys, passwords, users

    settings = settings_of(args)
    open_as_owner(settings)
    configuration.configure(settings, read_secret(settings.secret_file))
    user = active_account(args.name)
    password = read_checked(user)
    hashed = passwords.hash_password(password, keys.secret())
    with write():
        ended = users.set_password(user, hashed, len(password))
        note(ACTION, user.name, "ok", ended=ended._asdict())
    what = " and ".join([plural(ended.sessions, "session"), plural(ended.tokens, "token")])
    print(f"the service password of {user.name} is set" + (f"; {what} ended" if any(ended) else ""))
    if user.provisioning != users.READY:
        output.note(f"the account is incomplete; to complete it: sudo svc admin create-user {user.name}")
    elif user.disabled:
        body = "'{\"disabled\": false}'"
        output.note(
            f"the account is disabled; to enable it: sudo svc api PATCH /api/users/{user.name} --body {body}"
        )
    return 0


def read_checked(user: Account) -> str:
    """Read and check the new password; a refused one is recorded in the audit too."""
    from svc.admin.actor import note
    from svc.admin.password_input import read_password
    from svc.domain.accounts import passwords
    from svc.errors import SvcError

    outcome = "aborted"
    try:
        password = passwords.check(
            read_password(user.name),
            user=user.name,
            display_name=user.display_name,
            superuser=bool(user.superuser),
        )
        outcome = ""
        return password
    except SvcError as error:
        outcome = error.code
        raise
    finally:
        if outcome:
            note(ACTION, user.name, outcome)


def plural(number: int, noun: str) -> str:
    """`1 token`, `2 tokens`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


COMMANDS = (
    Command("set-password", set_password, Argument("NAME", "the account"), examples=EXAMPLES, json=False),
)
