"""`svc admin revoke-tokens`: revoke every token of an account."""

from __future__ import annotations

from svc.admin.command import open_as_owner, settings_of, wrap_db_errors
from svc.cli.arguments import Argument, Arguments, Command

ACTION = "admin.revoke_tokens"
EXAMPLES = "sudo svc admin revoke-tokens demo"


@wrap_db_errors
def revoke_tokens(args: Arguments) -> int:
    """Revoke all API tokens of a user.

    They are refused from now on; the password and open sessions are unchanged.
    A new password (`svc admin set-password`) revokes tokens too.
    """
    from svc.admin.actor import note
    from svc.admin.set_password import plural
    from svc.db.connect import write
    from svc.domain.accounts import tokens, users

    open_as_owner(settings_of(args))
    with write():
        user = users.get(args.name)
        number = tokens.revoke_all(user.id)
        note(ACTION, user.name, "ok", revoked=number)
    print(f"{plural(number, 'token')} of {user.name} revoked" if number else f"{user.name} has no tokens")
    return 0


COMMANDS = (
    Command("revoke-tokens", revoke_tokens, Argument("NAME", "the account"), examples=EXAMPLES, json=False),
)
