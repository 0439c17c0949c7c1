"""`svc admin move-store`: copy a user's images and workspaces to the directory of SVC_STORE_DIR."""

from __future__ import annotations

import os
from functools import partial

from svc.actions.table import ADMIN_MOVE_STORE
from svc.admin.actor import REQUEST_ID, note
from svc.admin.checks.service import server_of
from svc.admin.command import FOR_HELPER, require_owner, settings_of, sudo_command, wrap_db_errors
from svc.admin.database import as_owner
from svc.admin.own_helper import own_helper
from svc.commandline import output
from svc.commandline.arguments import Argument, Arguments, Command
from svc.db.connect import database
from svc.db.location import database_path
from svc.db.lock import hold
from svc.domain.accounts import users
from svc.errors import Conflict, HostRefused
from svc.service_commands import start_command, stop_command
from svc.settings import Settings

EXAMPLES = """\
sudo svc admin move-store ada"""


@wrap_db_errors
def move_store(args: Arguments) -> int:
    """Move users' images and workspaces from their homes to the directory of SVC_STORE_DIR.

    For accounts that had workspaces before the setting was made; others use that
    directory from the beginning. The service must be stopped, and so must the workspaces.
    What was installed in a workspace goes with it. The former store stays as it is,
    and stays in use when the copy fails. Running the command again continues a copy
    that was interrupted; for a store that was moved already it does nothing.
    """
    if os.geteuid() != 0:
        raise HostRefused("moving stores requires root", hint=sudo_command())
    settings = settings_of(args, FOR_HELPER)
    if not settings.store_dir:
        example = "SVC_STORE_DIR=/var/lib/svc-stores/%u"
        raise Conflict("SVC_STORE_DIR is not set", hint=f"sudo editor /etc/svc/svc.env   (add: {example})")
    if (pid := server_of(settings.socket)) is not None:
        message = f"the service is running (pid {pid}), and would start workspaces"
        raise Conflict(message, hint=stop_command())
    database = database_path(settings)
    require_owner(database)
    # a copy takes long, and a server that started meanwhile would start workspaces in the former store
    with hold(database, holder="svc admin move-store"):
        for name in args.names:
            _move(settings, name)
    output.note("the former stores stay; what they hold is listed by `podman images` as the user")
    return 0


def _move(settings: Settings, name: str) -> None:
    """Copy the store of one account; the caller has the database's lock."""
    uid = as_owner(settings, partial(uid_of, name))
    running = [str(row) for row in as_owner(settings, partial(running_of, name))]
    if running:
        workspaces = ", ".join(output.visible(each) for each in running)
        raise Conflict(
            f"{name} has running workspaces: {workspaces}",
            hint=f"{start_command()}   (then svc ws stop, as an administrator)",
        )
    with own_helper(settings) as helper:
        reply = helper.call("account.move", name, {"uid": uid}, rid=REQUEST_ID)
    as_owner(settings, partial(note_moved, name))
    print(f"the store of {name} is in {output.visible(str(reply['store']))}")


def running_of(name: str) -> list[str]:
    """By the database's owner: the names of the account's workspaces that are not stopped."""
    rows = database.execute_sql(
        "SELECT name FROM workspaces WHERE owner_id = ? AND status IN ('starting', 'running', 'stopping')",
        (users.get(name).id,),
    )
    return [row[0] for row in rows]


def uid_of(name: str) -> int:
    """By the database's owner: the uid of the account."""
    return int(users.get(name).uid)


def note_moved(name: str) -> None:
    """By the database's owner: write the audit row."""
    note(ADMIN_MOVE_STORE, name, "ok")


COMMANDS = (
    Command(
        "move-store",
        move_store,
        Argument("NAME", "an account; several may be named", dest="names", kind="list"),
        examples=EXAMPLES,
        json=False,
    ),
)
