"""`svc admin disk`: what each user's disks hold, as the user's own agent measured it."""

from __future__ import annotations

from time import monotonic, sleep
from typing import Any

from svc.actions.table import DISK_MEASURE
from svc.admin.actor import note
from svc.admin.command import settings_of, sudo_command, wrap_db_errors
from svc.admin.database import as_owner
from svc.client import transport
from svc.commandline import output
from svc.commandline.arguments import Argument, Arguments, Command
from svc.db.connect import write
from svc.domain.accounts import disk_usage
from svc.domain.pages import Page
from svc.errors import HostRefused, NotFound, Unreachable
from svc.settings import Settings
from svc_helper.wire.quick_json import dumps as as_json

COLUMNS = (
    ("NAME", "name", output.plain),
    ("TOTAL", "total_bytes", output.size),
    ("IMAGES", "images_bytes", output.size),
    ("COPIES", "mapped_bytes", output.size),
    ("CACHE", "cache_bytes", output.size),
    ("CONTAINERS", "containers_bytes", output.size),
    ("VOLUMES", "volumes_bytes", output.size),
    ("FILES", "files_bytes", output.size),
    ("IMAGE QUOTA", "quota_image_bytes", output.size),
    ("MEASURED", "measured_at", output.when),
)
ALL = 10_000  # users in one table
POLL_S, STILL_S = 1.0, 660.0  # a user has ten minutes
EXAMPLES = """\
sudo svc admin disk
sudo svc admin disk --measure
sudo svc admin disk --measure alice bob
sudo svc admin disk --json"""


@wrap_db_errors
def disk(args: Arguments) -> int:
    """Show what each user's disks hold: images, build cache, containers, volumes and files.

    The figures are cached; --measure has them renewed and waits: the running service
    asks each user's own agent, two at a time, and Ctrl-C leaves it at work. Images
    are layers with a name, shared ones once; copies are made for images that run as
    another id; the cache is what only builds need; containers is what was written in
    workspaces outside /work; files are the user's own file roots. Names after
    --measure are the users to measure, without it those to show.

    Columns: name, total, images, copies, cache, containers, volumes, files, quota of
    images, time of the measurement.
    """
    settings = settings_of(args, ("SVC_DB", "SVC_SOCKET") if args.measure else ("SVC_DB",))
    if args.measure:
        measure(settings, args.users or [])
    found = as_owner(settings, read)
    items = chosen(found["items"], args.users or [])
    if args.json:
        output.raw(dumps(found if not args.users else of_some(found, items)))
        return 0
    rows = list(items)
    if output.on_terminal() and not args.users and len(items) > 1:
        rows.append(found["sums"] | {"name": "(all)", "measured_at": found["oldest_measured_at"]})
    output.table(COLUMNS, rows, "No users: svc admin create-user")
    for item in items:
        explain(item)
    return 0


def chosen(items: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """The users of these names, all without one; raises NotFound."""
    if unknown := sorted(set(names) - {item["name"] for item in items}):
        raise NotFound(f"there is no user {unknown[0]}", hint="sudo svc admin list-users")
    return [item for item in items if not names or item["name"] in names]


def of_some(found: dict[str, Any], items: list[dict[str, Any]]) -> dict[str, Any]:
    """The reply of the API for these users alone, sums included."""
    measured = (item["measured_at"] for item in items if item["measured_at"])
    return found | {
        "items": items,
        "total": len(items),
        "sums": {key: sum(item[key] or 0 for item in items) for key in found["sums"]},
        "waiting": sum(item["waiting"] for item in items),
        "oldest_measured_at": min(measured, default=None),
    }


def read() -> dict[str, Any]:
    """All users with their figures, in a process of the database's owner."""
    return disk_usage.page_of(Page(limit=ALL))


def dumps(found: dict[str, Any]) -> bytes:
    """The reply of the API, as one line."""
    keys = ("items", "total", "sums", "waiting", "oldest_measured_at")
    return as_json({key: found[key] for key in keys}).encode() + b"\n"


def explain(item: dict[str, Any]) -> None:
    """Note what the figures of a user leave out."""
    if item["error"]:
        output.note(f"{item['name']} could not be measured: {item['error']}")
    if item["complete"] is False:
        output.note(f"{item['name']} has more than that: too many files to count, or closed ones")


def measure(settings: Settings, names: list[str]) -> None:
    """Have users measured, and wait for the service; raises Unreachable when it does not run."""

    def request() -> None:
        with write():
            count = disk_usage.request_all(names)
            note(DISK_MEASURE, ", ".join(names)[:200], "begun", users=count)

    try:
        transport.request("GET", "/api/version", socket=settings.socket)
    except Unreachable as error:
        raise Unreachable(
            f"the service measures, and it is not running: {error.message}", hint=error.hint
        ) from None
    as_owner(settings, request)
    left, since = -1, monotonic()
    while waiting := int(as_owner(settings, count_waiting)):
        if waiting != left:
            left, since = waiting, monotonic()
        elif monotonic() - since > STILL_S:
            raise HostRefused(
                f"{output.plural(left, 'user')} still not measured: its agents do not answer",
                hint=sudo_command().replace(" --measure", ""),
            )
        sleep(POLL_S)


def count_waiting() -> int:
    """How many users are still to be measured, in a process of the database's owner."""
    return len(disk_usage.waiting())


COMMANDS = (
    Command(
        "disk",
        disk,
        Argument("--measure", "renew the figures first", kind="flag"),
        Argument("USERS", "names of users (default: all)", metavar="USER", kind="list", optional=True),
        examples=EXAMPLES,
    ),
)
