"""`svc ws delete`: workspaces, running ones too; the question says what runs in them."""

from __future__ import annotations

from svc.cli.ws.columns import as_hint, path_of
from svc.client import transport
from svc.client.requests import ask_when_free, for_each, query, show_ended
from svc.commandline import output
from svc.commandline.arguments import OWNER, WORKSPACES, YES_REMOVE, Arguments, Command
from svc.commandline.output import pick, text
from svc.errors import NotFound, SvcError

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

PROCESSES_NAMED = 5
COMMAND_WIDTH = 60  # characters
INIT = "/run/podman-init "  # before each workspace's own command


def delete(args: Arguments) -> int:
    """Delete workspaces; one that runs is stopped first.

    Software installed in them is lost; the files of /work stay. The processes of a
    running one get SIGTERM, and ten seconds later SIGKILL. Of one that is starting or
    stopping, the end of that is waited for, at most a minute. Asks for confirmation
    on a terminal, and says what runs; elsewhere --yes is required.
    """
    names = args.workspaces
    missing: dict[str, SvcError] = {}
    if not args.yes:
        found = _find_each(args, names, missing)
        listed = [name for name in dict.fromkeys(names) if name not in missing]
        question = f"Delete workspace{'s' if len(listed) > 1 else ''} {', '.join(listed)}?"
        command = output.again(args, "svc", "ws", "delete", *names)
        output.confirm(question, not listed, command, lambda: _running(found, args.owner))

    def one(name: str) -> int:
        try:
            if name in missing:
                raise missing[name]
            ask_when_free(args, "DELETE", path_of(name) + query(owner=args.owner), name)
        except NotFound as error:
            raise as_hint(error, "delete") from None
        return show_ended(args, f"{name} is deleted.", deleted=name)

    return for_each(args, names, one)


def _find_each(args: Arguments, names: list[str], missing: dict[str, SvcError]) -> dict[str, Any]:
    """The records of the named workspaces; the refusals of those that are not there go into `missing`."""
    found = {}
    for name in dict.fromkeys(names):
        answer = transport.request("GET", path_of(name) + query(owner=args.owner))
        if answer.ok:
            found[name] = answer.json()
        elif isinstance(error := answer.error(), NotFound):
            missing[name] = error
        elif len(names) == 1:
            raise error
    return found


def _running(found: dict[str, Any], owner: str | None) -> Iterator[str]:
    """A line for each of the workspaces that runs."""
    for name, record in found.items():
        if pick(record, "status") == "running":
            yield f"{name} is running{_processes(name, owner)}."


def _processes(name: str, owner: str | None) -> str:
    """What runs in it, the busiest first; empty where that cannot be told, as of another user's."""
    found = None if owner else transport.request("GET", path_of(name, "/monitor"))
    if found is None or not found.ok:
        return ""
    snapshot = found.json()
    listed = pick(snapshot, "processes")
    listed = [text(each, "command") for each in listed] if isinstance(listed, list) else []
    commands = [_format_command(command) for command in listed if not command.startswith(INIT)]
    if not commands:
        return ""
    unlisted = pick(snapshot, "more_processes")
    more = len(commands[PROCESSES_NAMED:]) + (unlisted if isinstance(unlisted, int) else 0)
    return f": {', '.join(commands[:PROCESSES_NAMED])}" + (f" and {more} more" if more > 0 else "")


def _format_command(command: str) -> str:
    return command if len(command) <= COMMAND_WIDTH else command[: COMMAND_WIDTH - 1] + "…"


COMMANDS = (
    Command(
        "delete",
        delete,
        WORKSPACES,
        YES_REMOVE,
        OWNER,
        examples="svc ws delete demo\nsvc ws delete demo paper --yes",
    ),
)
