"""`svc admin edit-user`: role, quota and display name of an account, and whether it may be used.

The role is stored twice: in the account's row, which the listeners read, and in root's enrolment
list, which alone the root helper trusts. Granting writes root's list first, revoking the row first:
after an interruption the row never grants what the helper does not, and the same command completes it.
"""

from __future__ import annotations

from typing import Any

from svc.actions.table import ADMIN_EDIT_USER
from svc.admin.actor import REQUEST_ID, note
from svc.admin.command import FOR_HELPER, for_database, settings_of, sudo_command, wrap_db_errors
from svc.admin.database import active_account, as_owner
from svc.admin.own_helper import own_helper
from svc.commandline import output
from svc.commandline.arguments import Argument, Arguments, Command
from svc.db.connect import write
from svc.domain.accounts import removal, user_edits, users
from svc.domain.accounts.users import Account
from svc.domain.quotas import policies
from svc.domain.quotas.quotas import DEFAULT
from svc.errors import Conflict, NotFound, SvcError, UsageError
from svc.settings import Settings

LAST = Argument("--last-administrator", "also the last one besides root", kind="flag")
PAIRS = (("enable", "disable"), ("superuser", "no_superuser"))
EXAMPLES = """\
sudo svc admin edit-user ada --disable
sudo svc admin edit-user ada --superuser
sudo svc admin edit-user ada --quota lab --display-name 'Ada Lovelace'"""


@wrap_db_errors
def edit_user(args: Arguments) -> int:
    """Change an account: who may use it, its role, its quota, its display name.

    --disable ends its sessions and revokes its tokens at once; nobody can use it
    until --enable. Its workspaces stay as they are, also running ones. A change of
    the role ends the sessions; a new superuser whose password is too short for one
    cannot log in until `svc admin set-password` or --no-superuser. The last
    administrator besides root is disabled or made an ordinary user only with
    --last-administrator.
    Running the command again completes a change that was interrupted.
    """
    changes = requested(args)
    superuser = changes.get("superuser")
    settings = settings_of(args, ("SVC_DB",) if superuser is None else FOR_HELPER)

    def begin() -> dict[str, bool]:
        user = active_account(args.name)
        found = facts(user)
        if changes.get("quota"):
            found["has_quota"] = policies.exists(changes["quota"])
        if not refusal(settings, args, changes, found):
            note(ADMIN_EDIT_USER, user.name, "begun", **changes)
        return found

    def change() -> dict[str, Any]:
        with write():
            user = active_account(args.name)
            ended = user_edits.apply(user, changes)
            note(ADMIN_EDIT_USER, user.name, "ok", **changes, ended=ended._asdict())
        return {
            "ended": list(ended),
            "closed": bool(users.get(args.name).password_closed),
            "running": removal.holdings(user.id).running,
        }

    error = refusal(settings, args, changes, as_owner(settings, begin))
    if error:
        raise error
    if superuser:
        mark(settings, args.name, administrator=True)
    show(settings, args.name, changes, as_owner(settings, change))
    if superuser is False:  # the row is changed already, whatever becomes of root's list
        mark(settings, args.name, administrator=False)
    return 0


def requested(args: Arguments) -> dict[str, Any]:
    """The changes, as columns of the row; raises UsageError for none and for opposite ones."""
    help_command = "svc admin edit-user --help"
    options = vars(args)
    for pair in PAIRS:
        if all(options[option] for option in pair):
            both = " and ".join(f"--{option.replace('_', '-')}" for option in pair)
            raise UsageError(f"{both} exclude each other", hint=help_command)
    changes: dict[str, Any] = {}
    if args.disable or args.enable:
        changes["disabled"] = args.disable
    if args.superuser or args.no_superuser:
        changes["superuser"] = args.superuser
    if args.quota is not None:
        changes["quota"] = None if args.quota == DEFAULT else args.quota
    if args.display_name is not None:
        changes["display_name"] = users.check_display_name(args.display_name)
    if not changes:
        raise UsageError("name at least one change", hint=help_command)
    return changes


def facts(user: Account) -> dict[str, bool]:
    """What decides whether an account may be changed; by the database's owner."""
    return {
        "is_root": user.uid == 0,
        "is_ready": user.provisioning == users.READY,
        "is_last": user_edits.is_last_administrator(user),
    }


def refusal(
    settings: Settings, args: Arguments, changes: dict[str, Any], untrusted: dict[str, bool]
) -> Exception | None:
    """Why these changes are refused, if they are; the hints are root's own, not the database's."""
    lowers = changes.get("disabled") or changes.get("superuser") is False
    if untrusted.get("is_root") and ("superuser" in changes or "disabled" in changes):
        return Conflict("the root account is always an administrator and cannot be disabled")
    if "superuser" in changes and not untrusted.get("is_ready"):
        hint = for_database(f"create-user {args.name}", settings)
        return Conflict(f"the setup of {args.name} is not complete", hint=hint)
    if not untrusted.get("has_quota", True):
        return NotFound(f"there is no quota {changes['quota']}", hint=for_database("quota list", settings))
    if lowers and untrusted.get("is_last") and not args.last_administrator:
        return last_administrator(args.name)
    return None


def last_administrator(name: str) -> Exception:
    """The error for the last administrator besides root."""
    return Conflict(
        f"{name} is the last administrator besides root", hint=sudo_command("--last-administrator")
    )


def show(settings: Settings, name: str, changes: dict[str, Any], untrusted: dict[str, Any]) -> None:
    """Print what was changed, and what follows from it."""
    sessions, tokens = map(int, untrusted["ended"])
    running = int(untrusted["running"])
    if "superuser" in changes:
        print(f"{name} is {'a superuser' if changes['superuser'] else 'an ordinary user'}")
    if "disabled" in changes:
        print(f"{name} is {'disabled' if changes['disabled'] else 'enabled'}")
    if "quota" in changes:
        print(f"{name} has the quota {changes['quota'] or 'default'}")
    if "display_name" in changes:
        print(output.visible(f"{name} has the display name {changes['display_name']!r}"))
    if sessions or tokens:
        ended = [output.plural(n, noun) for n, noun in ((sessions, "session"), (tokens, "token")) if n]
        output.note(f"{' and '.join(ended)} ended")
    if changes.get("superuser") and untrusted["closed"] is True:
        longer = for_database(f"set-password {name}", settings)
        output.note(f"the password is too short for a superuser: {longer}")
    if changes.get("disabled") and running:
        workspaces = output.plural(running, "workspace")
        output.note(f"{workspaces} of {name} still running; to list them: sudo svc ws list --owner {name}")


def mark(settings: Settings, name: str, *, administrator: bool) -> None:
    """Change root's list, through a helper of our own."""
    try:
        with own_helper(settings) as helper:
            helper.call("account.mark", name, {"administrator": administrator}, rid=REQUEST_ID)
    except SvcError as error:
        error.hint = sudo_command()  # the same command completes it
        raise


COMMANDS = (
    Command(
        "edit-user",
        edit_user,
        Argument("NAME", "the account"),
        Argument("--disable", "nobody can use it any more", kind="flag"),
        Argument("--enable", "it can be used again", kind="flag"),
        Argument("--superuser", "an administrator of the service", kind="flag"),
        Argument("--no-superuser", "an ordinary user", kind="flag"),
        Argument("--quota", "its quota policy; default: that of all others", metavar="QUOTA"),
        Argument("--display-name", "the person's name", metavar="TEXT"),
        LAST,
        examples=EXAMPLES,
        json=False,
    ),
)
