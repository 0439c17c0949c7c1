"""`svc admin quota`: the named policies that limit what users may have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from svc.actions.table import ADMIN_QUOTA_DELETE, ADMIN_QUOTA_SET
from svc.admin.actor import note
from svc.admin.command import for_database, settings_of, sudo_command, wrap_db_errors
from svc.admin.database import as_owner
from svc.commandline import output
from svc.commandline.arguments import YES, Argument, Arguments, Command, CommandGroup, cores, size, whole
from svc.db.connect import write
from svc.domain.quotas import policies
from svc.domain.quotas.quotas import DEFAULT
from svc.errors import Conflict, UsageError
from svc_helper.wire.limits import SIZE_MAX

UNLIMITED = "unlimited"
COUNT_MAX = 1_000_000  # as the API's
EXAMPLES_LIST = "sudo svc admin quota list"
EXAMPLES_SET = """\
sudo svc admin quota set default --running 4 --gpus 2
sudo svc admin quota set lab --gpus 8 --memory 256g --images unlimited
sudo svc admin edit-user ada --quota lab"""
EXAMPLES_DELETE = "sudo svc admin quota delete lab --yes"


def limited(show: Callable[[Any, bool], str]) -> Callable[[Any, bool], str]:
    """A formatter for a limit, which may be absent."""
    return lambda value, human: UNLIMITED if human and value is None else show(value, human)


COLUMNS = (
    ("NAME", "name", output.plain),
    ("USERS", "users", output.plain),
    ("WORKSPACES", "max_workspaces", limited(output.plain)),
    ("RUNNING", "max_running", limited(output.plain)),
    ("GPUS", "max_gpus", limited(output.plain)),
    ("CPU", "max_cpu", limited(output.plain)),
    ("MEMORY", "max_memory_bytes", limited(output.size)),
    ("IMAGES", "max_image_bytes", limited(output.size)),
)
LIMITS = {  # option: the limit in the API's units
    "workspaces": "max_workspaces", "running": "max_running", "gpus": "max_gpus", "cpu": "max_cpu",
    "memory": "max_memory_bytes", "images": "max_image_bytes",
}  # fmt: skip


@wrap_db_errors
def quota_list(args: Arguments) -> int:
    """List the quota policies, each with the number of its accounts.

    The policy `default` applies to all accounts without another. Columns: name,
    users, workspaces, running, GPUs, CPU (cores), memory, images (bytes); in a
    pipe an unlimited one is empty.
    """
    settings = settings_of(args)
    records = as_owner(settings, policies.every)
    if args.json:
        output.items_json(records)
    else:
        output.listing(args, COLUMNS, records, f"No policies: {for_database('migrate', settings)}")
    return 0


@wrap_db_errors
def quota_set(args: Arguments) -> int:
    """Create a quota policy, or change the limits of one that exists.

    Limits that are not named stay as they are; those of a new policy are
    unlimited. A change applies from the next start on: what runs is not stopped.
    CPU, memory and GPUs count over all running workspaces of a user.
    """
    named = {key: value for option, key in LIMITS.items() if (value := vars(args)[option]) is not None}
    if not named:
        raise UsageError("name at least one limit", hint="svc admin quota set --help")
    changes = {key: None if value == UNLIMITED else value for key, value in named.items()}

    def change() -> dict[str, Any]:
        with write():
            before = policies.get(args.name) if policies.exists(args.name) else {}
            note(ADMIN_QUOTA_SET, args.name, "ok", **policies.store(args.name, before | changes))
        return policies.get(args.name)

    settings = settings_of(args)
    record = as_owner(settings, change)
    limits = [f"{heading.lower()} {show(record[key], True)}" for heading, key, show in COLUMNS[2:]]
    print(output.visible(f"the quota {args.name} is set: {', '.join(limits)}"))
    if not record["users"]:
        give = for_database(f"edit-user NAME --quota {args.name}", settings)
        output.note(f"nobody has it; to give it to somebody: {give}")
    return 0


@wrap_db_errors
def quota_delete(args: Arguments) -> int:
    """Delete a quota policy that no account has.

    Asks for confirmation on a terminal; elsewhere --yes is required. The policy
    `default` cannot be deleted: --NAME unlimited takes a limit from it.
    """

    def remove() -> str:
        with write():
            try:
                policies.remove(args.name)
            except Conflict as error:
                return error.message
            note(ADMIN_QUOTA_DELETE, args.name, "ok")
        return ""

    output.confirm(f"Delete the quota {args.name}?", args.yes, sudo_command())
    settings = settings_of(args)
    refused = str(as_owner(settings, remove))
    if refused:
        freed = "quota set --help" if args.name == DEFAULT else "edit-user NAME --quota default"
        raise Conflict(refused, hint=for_database(freed, settings))
    print(output.visible(f"the quota {args.name} is deleted"))
    return 0


def amount(text: str) -> int:
    """A size that the API takes as a limit."""
    return whole(0, SIZE_MAX)(str(size(text)))


def limit(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """The type of a limit: a value, 0, or `unlimited`."""

    def value(text: str) -> Any:
        if text in (UNLIMITED, "0"):
            return text if text == UNLIMITED else 0
        return read(text)

    return value


COMMANDS = (
    CommandGroup(
        "quota",
        "Limits of what users may have, as named policies.",
        Command(
            "list",
            quota_list,
            Argument("--json", "print the policies as JSON", kind="flag"),
            examples=EXAMPLES_LIST,
            json=False,
        ),
        Command(
            "set",
            quota_set,
            Argument("NAME", "the policy; default is that of all accounts without another"),
            Argument("--workspaces", "workspaces", metavar="N", type=limit(whole(0, COUNT_MAX))),
            Argument("--running", "running workspaces", metavar="N", type=limit(whole(0, COUNT_MAX))),
            Argument("--gpus", "GPUs of running workspaces", metavar="N", type=limit(whole(0, COUNT_MAX))),
            Argument("--cpu", "cores of running workspaces", metavar="CORES", type=limit(cores)),
            Argument("--memory", "memory of running workspaces", metavar="SIZE", type=limit(amount)),
            Argument("--images", "disk space of images", metavar="SIZE", type=limit(amount)),
            examples=EXAMPLES_SET,
            json=False,
        ),
        Command(
            "delete",
            quota_delete,
            Argument("NAME", "the policy"),
            YES,
            examples=EXAMPLES_DELETE,
            json=False,
        ),
    ),
)
