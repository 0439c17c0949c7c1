"""`svc admin create-user`: a service account and the Linux account behind it.

The row comes first (incomplete), then the host (the helper's account.ensure),
then the row is made ready: wherever it stops, the row says so and running the
command again finishes it. Root makes the call to the helper; what touches the
database is done by forked processes that have become its owner.
"""

from __future__ import annotations

import os
from functools import partial

from svc.admin.command import again_with_sudo, settings_of, wrap_db_errors
from svc.cli import output
from svc.cli.arguments import Argument, Arguments, Command

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

    from svc.settings import Settings

EXAMPLES = """\
sudo svc admin create-user demo
sudo svc admin create-user ada --display-name 'Ada Lovelace' --superuser
sudo svc admin create-user demo < password.txt"""


@wrap_db_errors
def create_user(args: Arguments) -> int:
    """Create an account; provisions a Linux account if there is none.

    The service password is asked for twice on a terminal, else read from
    standard input. An account that stayed incomplete is finished by running the
    same command again; of a complete one only what it needs on the host is seen
    to again. A new Linux account has a locked Linux password.
    """
    from svc.admin import account_rows
    from svc.db.location import database_path
    from svc.db.owner import owner_of, run_as
    from svc.domain.accounts import users
    from svc.errors import HostRefused

    name = users.check_name(args.name)
    display_name = users.check_display_name(args.display_name or "")
    settings = settings_of(args)
    path = database_path(settings)
    if os.geteuid() != 0:
        raise HostRefused("accounts are made by root", hint=again_with_sudo())
    found = run_as(owner_of(path), partial(account_rows.look, path, settings.secret_file, name))
    if found["whole"] is True:
        return see_to(settings, name, display_name, args.superuser, found)
    if name == "root":
        raise HostRefused("the account root is made by another command", hint="svc admin migrate")
    return make(settings, path, name, display_name, args.superuser, found)


def make(
    settings: Settings, path: str, name: str, display_name: str, superuser: bool, found: dict[str, Any]
) -> int:
    """Make the account, or finish it; the password is asked for before anything is made."""
    from svc.admin import account_rows
    from svc.admin.password_input import read_password
    from svc.db.owner import owner_of, run_as
    from svc.domain.accounts import passwords
    from svc.errors import HostRefused, SvcError

    owner = owner_of(path)
    display_name = display_name or str(found["display_name"])
    password = passwords.check(read_password(name), user=name, display_name=display_name, superuser=superuser)
    tell_retired(run_as(owner, partial(account_rows.begin, path, name, display_name, superuser)), name)
    try:
        uid = provision(settings, name, superuser)
    except SvcError as error:
        for_now, refused = error.retryable, isinstance(error, HostRefused)
        run_as(
            owner, partial(account_rows.leave, path, name, error.message, for_now=for_now, refused=refused)
        )
        raise
    except KeyboardInterrupt:
        output.note(f"the account {name} is not complete; to finish it: {again_with_sudo()}")
        raise
    tell_retired(run_as(owner, partial(account_rows.finish, path, settings, name, uid, password)), name)
    print(f"the account {name} (uid {uid}) is ready")
    return 0


def see_to(settings: Settings, name: str, display_name: str, superuser: bool, found: dict[str, Any]) -> int:
    """What running it on an account that is whole does: the host's part once more, the row as it is.

    The mark of an administrator is root's own word, from the enrolment or from
    the command line, never the database's.
    """
    from svc.admin.account_rows import linux_uid
    from svc.admin.findings import Enrolled, read_enrolled
    from svc.errors import NameTaken

    change = f"sudo svc api PATCH /api/users/{name} --body"
    if superuser and not found["superuser"]:
        raise NameTaken(
            f"there is an account {name}, and it is no superuser", hint=change + " '{\"superuser\": true}'"
        )
    if display_name and display_name != found["display_name"]:
        raise NameTaken(
            f"there is an account {name}, with another display name",
            hint=change + ' \'{"display_name": "..."}\'',
        )
    if name != "root":
        entry = Enrolled(name, linux_uid(name) or 0, administrator=True)
        marked = entry in read_enrolled(settings.state_dir)
        provision(settings, name, superuser or marked)
        if found["superuser"] and not (superuser or marked):
            output.note(
                f"the database calls {name} a superuser, root's own list does not; if that was your word:"
                f" {again_with_sudo()} --superuser"
            )
    print(f"the account {name} (uid {found['uid']}) was ready before")
    output.note(f"its password is as it was; another one: sudo svc admin set-password {name}")
    return 0


def tell_retired(names: Any, successor: str) -> None:
    """Say which accounts made way for this one."""
    for name in names:
        former = str(name).partition(".")[0]
        output.note(
            f"the service account {former} was another Linux account's; its records are {name}'s now and"
            f" {successor} has nothing of them: sudo svc admin list-users"
        )


def provision(settings: Settings, name: str, administrator: bool) -> int:
    """The Linux account with all it needs, by a helper of our own; returns its uid."""
    from svc.admin.actor import REQUEST_ID
    from svc.admin.own_helper import own_helper
    from svc.errors import HostRefused, SvcError

    try:
        with own_helper(settings) as helper:
            args = {"administrator": administrator}
            answer = helper.call("account.ensure", name, args, rid=REQUEST_ID)
    except HostRefused as error:
        raise HostRefused(error.message, hint="svc admin create-user another-name") from None
    except SvcError as error:
        raise type(error)(error.message, hint=f"see to that, then: {again_with_sudo()}") from None
    uid = answer.get("uid")
    if type(uid) is not int or uid < 1:
        raise SvcError(f"the helper made {name} but did not say its uid", hint=again_with_sudo())
    return uid


COMMAND = Command(
    "create-user",
    create_user,
    Argument("NAME", "the account, and the Linux account of that name"),
    Argument("--display-name", "the person's name", metavar="TEXT"),
    Argument("--superuser", "an administrator of the service", kind="flag"),
    examples=EXAMPLES,
    json=False,
)
