"""`svc admin revoke-tokens`: revoke every token of an account."""

from __future__ import annotations

from svc.actions.table import ADMIN_REVOKE_TOKENS
from svc.admin.actor import note
from svc.admin.command import settings_of, wrap_db_errors
from svc.admin.database import as_owner
from svc.commandline import output
from svc.commandline.arguments import Argument, Arguments, Command
from svc.db.connect import write
from svc.domain.accounts import tokens, users

EXAMPLES = "sudo svc admin revoke-tokens demo"


@wrap_db_errors
def revoke_tokens(args: Arguments) -> int:
    """Revoke all API tokens of a user.

    They are refused from now on; the password and open sessions are unchanged.
    A new password (`svc admin set-password`) revokes tokens too.
    """

    def revoke() -> int:
        with write():
            user = users.get(args.name)
            number = tokens.revoke_all(user.id)
            note(ADMIN_REVOKE_TOKENS, user.name, "ok", revoked=number)
        return number

    number = int(as_owner(settings_of(args), revoke))
    print(
        f"{output.plural(number, 'token')} of {args.name} revoked" if number else f"{args.name} has no tokens"
    )
    return 0


COMMANDS = (
    Command("revoke-tokens", revoke_tokens, Argument("NAME", "the account"), examples=EXAMPLES, json=False),
)
