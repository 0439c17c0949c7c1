"""`svc admin create-user`: a service account and the Linux account behind it.

The row comes first (incomplete), then the host (the helper's account.ensure),
then the row is made ready: wherever it stops, the row says so and running the
command again finishes it. Root makes the call to the helper; what touches the
database is done by forked processes that have become its owner.
"""

from __future__ import annotations

import os
from functools import partial

from svc.admin.opening import add_word, again_with_sudo, settings_of

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    import argparse

    from svc.cli.parser import Words
    from svc.settings import Settings

EXAMPLES = """\
sudo svc admin create-user demo
sudo svc admin create-user ada --display-name 'Ada Lovelace' --superuser
sudo svc admin create-user demo < password.txt"""


def add_parser(words: Words) -> None:
    """Add the word `create-user`."""
    parser = add_word(words, "create-user", create_user, EXAMPLES)
    parser.add_argument("name", metavar="NAME", help="the account, and the Linux account of that name")
    parser.add_argument("--display-name", metavar="TEXT", default="", help="the person's name")
    parser.add_argument("--superuser", action="store_true", help="an administrator of the service")


def create_user(args: argparse.Namespace) -> int:
    """Create an account; provisions a Linux account if there is none.

    The service password is asked for twice on a terminal, else read from
    standard input. An account that stayed incomplete is finished by running the
    same command again.
    """
    from svc.admin import rows
    from svc.admin.password_input import read_password
    from svc.db.location import database_path
    from svc.db.owner import owner_of, run_as
    from svc.domain import passwords, users
    from svc.errors import HostRefused, SvcError

    name = users.check_name(args.name)
    display_name = users.check_display_name(args.display_name)
    settings = settings_of(args)
    path = database_path(settings)
    if os.geteuid() != 0:
        raise HostRefused("accounts are made by root", hint=again_with_sudo())
    owner = owner_of(path)
    run_as(owner, partial(rows.refuse_finished, path, settings.secret_file, name))
    password = passwords.check(
        read_password(name), user=name, display_name=display_name, superuser=args.superuser
    )
    run_as(owner, partial(rows.begin, path, name, display_name, args.superuser))
    try:
        uid = provision(settings, name, args.superuser)
    except SvcError as error:  # an interrupt leaves the row as `begin` wrote it
        for_now, refused = error.retryable, isinstance(error, HostRefused)
        run_as(owner, partial(rows.leave, path, name, error.message, for_now=for_now, refused=refused))
        raise
    run_as(owner, partial(rows.finish, path, settings.secret_file, name, uid, password))
    print(f"the account {name} (uid {uid}) is ready")
    return 0


def provision(settings: Settings, name: str, administrator: bool) -> int:
    """The Linux account with all it needs, by a helper of our own; returns its uid."""
    from svc.admin.host import own_helper
    from svc.errors import AdminOnly, HostRefused, NotFound

    try:
        with own_helper(settings) as helper:
            answer = helper.call("account.ensure", name, {"administrator": administrator}, rid="admin")
    except (AdminOnly, NotFound):  # what the client makes of the helper's `refused`
        raise HostRefused(
            f"{name} cannot be a user of the service: a system account, or one without a home directory",
            hint="svc admin create-user another-name",
        ) from None
    uid = answer.get("uid")
    if type(uid) is not int:
        raise HostRefused(
            f"the helper made {name} but did not say its uid", hint="run the same command again"
        )
    return uid
