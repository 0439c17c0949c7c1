"""`svc admin revoke-tokens`: end every token of an account, whoever has copies of them."""

from __future__ import annotations

from svc.admin.command import open_as_owner, settings_of, wrap_db_errors
from svc.cli.arguments import Argument, Arguments, Command

ACTION = "admin.revoke_tokens"
EXAMPLES = "sudo svc admin revoke-tokens demo"


@wrap_db_errors
def revoke_tokens(args: Arguments) -> int:
    """Revoke all API tokens of a user.

    They end at once; the password and open sessions stay as they are. A new
    password (`svc admin set-password`) revokes them too.
    """
    from svc.admin.actor import note
    from svc.admin.set_password import counted
    from svc.db.connect import write
    from svc.domain.accounts import tokens, users

    open_as_owner(settings_of(args))
    with write():
        user = users.get(args.name)
        number = tokens.revoke_all(user.id)
        note(ACTION, user.name, "ok", revoked=number)
    print(f"{counted(number, 'token')} of {user.name} revoked" if number else f"{user.name} has no tokens")
    return 0


COMMAND = Command(
    "revoke-tokens", revoke_tokens, Argument("NAME", "the account"), examples=EXAMPLES, json=False
)
