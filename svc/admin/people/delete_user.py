"""`svc admin delete-user`: end an account for good, whether its Linux account is still there or not.

First the row is closed, so that a running server does nothing for the account any more. Then the
enrolment ends, and the helper removes in the Linux account what the service has there. The row goes
last: wherever this stops, the row says so, and running the command again completes it.
"""

from __future__ import annotations

import os
import time
from typing import Any

from svc.actions.table import ADMIN_DELETE_USER
from svc.admin.actor import REQUEST_ID, note
from svc.admin.checks.service import server_of
from svc.admin.command import FOR_HELPER, settings_of, sudo_command, wrap_db_errors
from svc.admin.database import as_owner
from svc.admin.own_helper import own_helper
from svc.admin.people import linux_state
from svc.admin.people.edit_user import LAST, last_administrator
from svc.admin.people.linux_state import Linux
from svc.commandline import output
from svc.commandline.arguments import YES, Argument, Arguments, Command
from svc.db.connect import write
from svc.domain import configuration
from svc.domain.accounts import removal, user_edits, users
from svc.domain.templates import contexts
from svc.errors import Conflict, HostRefused, SvcError
from svc.host.secret import read_secret
from svc.settings import Settings
from svc_helper.wire.limits import IMAGES_AT_ONCE

WORKER_S = 15.0  # for a running server to end what it does for the account
POLL_S = 0.2
EXAMPLES = """\
sudo svc admin delete-user ada
sudo svc admin delete-user ada --yes && sudo userdel --remove ada
sudo userdel --remove ada && sudo svc admin delete-user ada --yes"""


@wrap_db_errors
def delete_user(args: Arguments) -> int:
    """Delete an account: its workspaces, images, private templates, tokens and sessions.

    Says first what goes and what stays, and asks on a terminal; elsewhere --yes is
    required. The Linux account stays with its home, also the files of the
    workspaces; `userdel` removes them, before or after. Audit rows keep the name.
    A later account of the same name is a new one. With --leave-storage containers
    and images stay in the Linux account, when Podman cannot remove them. Running
    the command again completes a deletion that was interrupted.
    """
    if os.geteuid() != 0:
        raise HostRefused("deleting accounts requires root", hint=sudo_command())
    settings = settings_of(args, (*FOR_HELPER, "SVC_JWT_SECRET_FILE"))
    found = Found(as_owner(settings, lambda: inspect(args.name)))
    if found.is_root:
        raise Conflict("the root account cannot be deleted")
    if found.is_last and not args.last_administrator:
        raise last_administrator(args.name)
    linux = linux_state.find_linux(settings, args.name, found.former, found.uid)
    for line in plan(args, found, linux):
        print(output.visible(line))
    output.confirm(f"Delete the account {args.name}?", args.yes, sudo_command())
    perform(settings, args, found, linux)
    print(f"the account {args.name} is deleted")
    for line in linux.next_commands:
        output.note(line)
    return 0


class Found:
    """The account as the database has it, checked: the result comes from an unprivileged process."""

    def __init__(self, untrusted: dict[str, Any]) -> None:
        self.uid = int(untrusted["uid"]) if untrusted["uid"] is not None else None
        self.is_root = self.uid == 0
        self.former = str(untrusted["former"])  # the Linux account that a retired account had, else its own
        self.is_last = bool(untrusted["is_last"])
        self.counts = {str(key): int(value) for key, value in untrusted["holdings"].items()}
        self.images = [str(image) for image in untrusted["images"]]


def inspect(name: str) -> dict[str, Any]:
    """By the database's owner: the account and what belongs to it."""
    user = users.get(name)
    former, uid = users.former_linux_account(user) or (name, user.uid)
    return {
        "uid": uid,
        "former": former,
        "is_last": user_edits.is_last_administrator(user),
        "holdings": removal.holdings(user.id)._asdict(),
        "images": removal.image_refs(user.id),
    }


def plan(args: Arguments, found: Found, linux: Linux) -> list[str]:
    """What goes and what stays, for a person to read before the question."""
    counts = found.counts
    store = linux.exists and not args.leave_storage
    workspaces = output.plural(counts["workspaces"], "workspace")
    workspaces += f" ({counts['running']} running)" if counts["running"] else ""
    goes = {
        f"{workspaces}{', with the containers' if store else ''}": counts["workspaces"],
        f"{output.plural(counts['images'], 'image')}{'' if store else ' on record'}": counts["images"],
        output.plural(counts["templates"], "private template"): counts["templates"],
        output.plural(counts["sessions"], "session"): counts["sessions"],
        output.plural(counts["tokens"], "token"): counts["tokens"],
        "the enrolment: the service does nothing for this Linux account any more": linux.is_enrolled,
        "the record of the account": True,
    }
    stays = [*linux.stays, f"audit rows, with the name {args.name}"]
    if linux.exists and args.leave_storage:
        stays.insert(0, "containers and images in the store, running ones too")
    uid = "" if linux.uid is None else f" (uid {linux.uid})"
    return [
        f"Deleting the account {args.name}{uid} removes",
        *(f"  {line}" for line, is_there in goes.items() if is_there),
        "and leaves",
        *(f"  {line}" for line in stays),
    ]


def perform(settings: Settings, args: Arguments, found: Found, linux: Linux) -> None:
    """Delete the account; each step may be repeated."""
    is_served = server_of(settings.socket) is not None

    def begin() -> None:
        close(args.name)

    def finish() -> None:
        configuration.configure_only(secret=read_secret(settings.secret_file))
        remove(args.name, WORKER_S if is_served else 0.0)

    as_owner(settings, begin)
    with own_helper(settings) as helper:
        if linux.is_enrolled:
            helper.call("account.forget", args.name, {}, rid=REQUEST_ID)
        if linux.exists and not args.leave_storage:
            for start in range(0, max(len(found.images), 1), IMAGES_AT_ONCE):
                images = found.images[start : start + IMAGES_AT_ONCE]
                if not start:
                    output.note(f"ends what runs as {args.name}, and removes its containers and images")
                try:
                    helper.call(
                        "account.clear", args.name, {"uid": linux.uid, "image_refs": images}, rid=REQUEST_ID
                    )
                except SvcError as error:
                    hint = f"fix that, or add --leave-storage, then run: {sudo_command()}"
                    raise type(error)(error.message, hint=hint) from None
    as_owner(settings, finish)


def close(name: str) -> None:
    """By the database's owner: nobody can use the account from now on."""
    with write():
        user = users.get(name)
        ended = removal.begin(user)
        note(ADMIN_DELETE_USER, name, "begun", uid=user.uid, ended=ended._asdict())


def remove(name: str, wait_s: float) -> None:
    """By the database's owner: delete the row and all that belongs to it.

    A running server has `wait_s` to end what it does for the account: its last report may be a row.
    """
    user = users.get(name)
    deadline = time.monotonic() + wait_s
    while removal.operations_running(user.id) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    with write():
        deleted = removal.holdings(user.id)
        removal.finish(user)
        contexts.delete_unused()
        note(ADMIN_DELETE_USER, name, "ok", uid=user.uid, **deleted._asdict())


COMMANDS = (
    Command(
        "delete-user",
        delete_user,
        Argument("NAME", "the account"),
        Argument("--leave-storage", "leave containers and images where they are", kind="flag"),
        LAST,
        YES,
        examples=EXAMPLES,
        json=False,
    ),
)
