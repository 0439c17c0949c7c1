"""`svc admin create-user`: a service account and the Linux account behind it.

First the row (incomplete), then the host (the helper's account.ensure), then the
row again (ready). Wherever this stops, the row says so, and running the command
again completes it. Root calls the helper; forked processes that have become the
database's owner change the rows.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from svc.admin.actor import REQUEST_ID
from svc.admin.checks import accounts
from svc.admin.command import FOR_HELPER, for_database, settings_of, sudo_command, wrap_db_errors
from svc.admin.doctor import host_of, run
from svc.admin.findings import Enrolled, read_enrolled
from svc.admin.own_helper import own_helper
from svc.admin.people import account_rows
from svc.admin.people.account_rows import linux_uid
from svc.admin.people.password_input import read_password
from svc.commandline import output
from svc.commandline.arguments import Argument, Arguments, Command
from svc.db.location import database_path
from svc.domain.accounts import passwords, users
from svc.errors import HostRefused, NameTaken, SvcError
from svc.host.owner import owner_of, run_as
from svc.settings import Settings
from svc_helper.provision import linux_account
from svc_helper.provision.verbs import Refusal
from svc_helper.root import pam

EXAMPLES = """\
sudo svc admin create-user demo
sudo svc admin create-user ada --display-name 'Ada Lovelace' --superuser
sudo svc admin create-user demo < password.txt"""


@wrap_db_errors
def create_user(args: Arguments) -> int:
    """Create an account; provisions a Linux account if there is none.

    The service password is asked for twice on a terminal, else read from
    standard input. Running the same command again completes an incomplete
    account; for a complete one it repairs only what the account needs on the
    host. A new Linux account has a locked Linux password; its name has a-z, 0-9,
    _ and -. One that is there already may have a name such as
    first.last@example.org, and any uid from UID_MIN on.
    """
    name = users.check_name(args.name)
    display_name = users.check_display_name(args.display_name or "")
    settings = settings_of(args, (*FOR_HELPER, "SVC_JWT_SECRET_FILE"))
    path = database_path(settings)
    if os.geteuid() != 0:
        raise HostRefused("creating accounts requires root", hint=sudo_command())
    found = run_as(owner_of(path), partial(account_rows.inspect, path, settings.secret_file, name))
    if found["whole"] is True:
        return repair(settings, name, display_name, args.superuser, found)
    require_eligible(name, settings)
    return create(settings, path, name, display_name, args.superuser, found)


def require_eligible(name: str, settings: Settings) -> None:
    """Raise HostRefused for whom the helper would refuse whatever the password: before that is asked for."""
    if name == "root":
        raise HostRefused(
            "create-user does not create the account root", hint=for_database("migrate", settings)
        )
    try:
        linux_account.require_eligible(name)
    except Refusal as refusal:
        if refusal.code == "refused":
            raise HostRefused(refusal.message, hint=_another(settings)) from None
        raise HostRefused(refusal.message, hint=f"fix that, then run: {sudo_command()}") from None


def _another(settings: Settings) -> str:
    return for_database("create-user another-name", settings)


def create(
    settings: Settings, path: str, name: str, display_name: str, superuser: bool, found: dict[str, Any]
) -> int:
    """Create or complete the account; reads the password before any change."""
    owner = owner_of(path)
    display_name = display_name or str(found["display_name"])
    password = passwords.check(read_password(name), user=name, display_name=display_name, superuser=superuser)
    note_retired(run_as(owner, partial(account_rows.begin, path, name, display_name, superuser)), name)
    try:
        uid = provision(settings, name, superuser)
    except SvcError as error:
        outcome = {"retryable": error.retryable, "refused": isinstance(error, HostRefused)}
        run_as(owner, partial(account_rows.abandon, path, name, error.message, **outcome))
        raise
    except KeyboardInterrupt:
        output.note(f"the account {name} is incomplete; to complete it: {sudo_command()}")
        raise
    note_retired(run_as(owner, partial(account_rows.finish, path, settings, name, uid, password)), name)
    return show_ready(settings, name, f"the account {name} (uid {uid}) is ready")


def repair(settings: Settings, name: str, display_name: str, superuser: bool, found: dict[str, Any]) -> int:
    """Repeat the host's part for a complete account; the row stays as it is.

    The helper's mark of an administrator is kept when the enrolment has it and set
    by --superuser; the database alone, which is not root's, never sets it.
    """
    if superuser and not found["superuser"]:
        raise NameTaken(
            f"the account {name} exists and is no superuser",
            hint=for_database(f"edit-user {name} --superuser", settings),
        )
    if display_name and display_name != found["display_name"]:
        raise NameTaken(
            f"the account {name} exists with another display name",
            hint=for_database(
                f"edit-user {name} --display-name {output.shell_quote(display_name)}", settings
            ),
        )
    if name != "root":
        entry = Enrolled(name, linux_uid(name) or 0, administrator=True)
        marked = entry in read_enrolled(settings.state_dir)
        provision(settings, name, superuser or marked)
        if found["superuser"] and not (superuser or marked):
            output.note(
                f"{name} is a superuser in the database but no administrator in root's enrolment; if you want"
                f" that: {sudo_command('--superuser')}"
            )
    code = show_ready(settings, name, f"the account {name} (uid {found['uid']}) was ready before")
    another = for_database(f"set-password {name}", settings)
    output.note(f"its password is unchanged; to set another: {another}")
    return code


def show_ready(settings: Settings, name: str, sentence: str) -> int:
    """Print the sentence, and what keeps the account or its Podman from use; then the exit code is 1.

    Podman itself is not started, whose pause process would stay: the doctor's check knows the causes. A
    stranger's file in place of its locks is none, since the service mends that at the first use.
    """
    if pam.expired(name):
        print(f"{sentence}, but its Linux account is expired: the service refuses it")
        output.remark(f"hint: sudo chage --expiredate -1 {output.shell_quote(name)}")
        return 1
    host = host_of(settings)
    host.enrolled = [entry for entry in host.enrolled if entry.name == name]
    found = [each for each in run((accounts.storage,), host) if each.level == "fail"]
    print(f"{sentence}, but Podman does not start" if found else sentence)
    for finding in found:
        output.note(finding.found)
        output.remark(f"hint: {output.visible(finding.remedy)}")
    return 1 if found else 0


def note_retired(names: Any, successor: str) -> None:
    """Print a note for each retired account."""
    for name in names:
        former = str(name).partition(":")[0]
        output.note(
            f"the service account {former} belonged to another Linux account and is now retired as {name};"
            f" {successor} inherits nothing from it: sudo svc admin list-users"
        )


def provision(settings: Settings, name: str, administrator: bool) -> int:
    """Create or repair the Linux account through a helper of our own; returns its uid."""
    try:
        with own_helper(settings) as helper:
            reply = helper.call("account.ensure", name, {"administrator": administrator}, rid=REQUEST_ID)
    except HostRefused as error:
        raise HostRefused(error.message, hint=_another(settings)) from None
    except SvcError as error:
        raise type(error)(error.message, hint=f"fix that, then run: {sudo_command()}") from None
    uid = reply.get("uid")
    if type(uid) is not int or uid < 1:
        raise SvcError(f"the helper created {name} but returned no uid", hint=sudo_command())
    return uid


COMMANDS = (
    Command(
        "create-user",
        create_user,
        Argument("NAME", "the account, and the Linux account of that name"),
        Argument("--display-name", "the person's name", metavar="TEXT"),
        Argument("--superuser", "an administrator of the service", kind="flag"),
        examples=EXAMPLES,
        json=False,
    ),
)
