"""`svc operation`: pulls, builds and set-ups, which the service runs in the background."""

from __future__ import annotations

import sys

from svc.client.requests import ask, query, quote, show_list, show_outcome, show_raw
from svc.commandline import output
from svc.commandline.arguments import QUIET, Argument, Arguments, Command, CommandGroup, reference, whole
from svc.commandline.output import pick, plain, state, when
from svc.errors import BadAnswer

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

KINDS = ("pull", "build", "setup")
STATUSES = ("queued", "running", "succeeded", "failed", "cancelled")
OPEN = STATUSES[:2]
FOLLOW_S = 1.0  # between two looks at a log that grows

DESCRIPTION = """\
Pulls, builds and set-ups in the background.

The service runs them: they go on when the command that began them ends, also over a restart of the
service. Ended ones stay in the list for 90 days."""


def _share(progress: Any, human: bool) -> str:
    """The done part of an operation in percent."""
    current, total = pick(progress, "current"), pick(progress, "total")
    if type(current) is not int or type(total) is not int or not 0 <= current <= total or not total:
        return ""
    return f"{100 * current // total}{'%' if human else ''}"


COLUMNS = (
    ("OPERATION", "id", plain),
    ("KIND", "kind", plain),
    ("STATUS", "status", state),
    ("PHASE", "phase", plain),
    ("DONE", "progress", _share),
    ("TEMPLATE", "template.name", plain),
    ("CREATED", "created_at", when),
    ("FINISHED", "finished_at", when),
    ("SUBJECT", "subject.name", plain),
    ("ERROR", "error.message", plain),
)


def list_(args: Arguments) -> int:
    """List your operations, newest first.

    Columns: operation, kind, status, phase, done (percent of the phase), template,
    created, finished, subject (the image or the workspace), error. --open leaves out
    those that have ended; --subject takes a workspace, a template or an image.
    """
    status = args.status or (",".join(OPEN) if args.open else None)
    filters = {"status": status, "kind": args.kind, "subject": args.subject}
    return show_list(args, "/api/operations", COLUMNS, "No operations.", **filters)


def watch(args: Arguments) -> int:
    """Wait for the end of an operation, with progress on standard error.

    Of a build, with the output of its steps, from its beginning; --quiet prints
    neither. Fails with the operation's own error. Ctrl-C ends the waiting only: the
    service continues, and the same command joins it again. --json prints
    {"operation": ...}, finished.
    """
    from svc.cli import waiting

    finished = waiting.follow(args, args.operation)
    if args.json:
        return waiting.show(finished)
    return show_outcome(args, finished, COLUMNS, "The {kind} of {subject.name} has succeeded.")


def cancel(args: Arguments) -> int:
    """Cancel an operation; what it has downloaded so far is removed.

    A queued one is cancelled at once, a running one within seconds. An operation
    that has ended stays as it is.
    """
    answer = ask(args, "POST", f"{_path(args)}/cancel", {})
    sentence = "{id} is {status}."
    if output.text(answer.json(), "status") in OPEN:
        sentence = "{id} is being cancelled: svc operation watch {id}"
    return show_outcome(args, answer, COLUMNS, sentence)


def log(args: Arguments) -> int:
    """Print the log of an operation.

    --after N leaves out the first N lines; --follow continues until the operation
    ends. The logs of your 50 newest operations are kept, of a very long one the
    first 1800 lines and the last 200. --json prints the lines with their numbers and
    times; with --follow an object for each part.
    """
    return show_log(args, args.operation)


def show_log(args: Arguments, operation: str) -> int:
    """Print the log of this operation, as args.after, args.follow and args.json say."""
    after = args.after or 0
    while True:
        answer = ask(args, "GET", f"/api/operations/{quote(operation)}/log{query(after=after or None)}")
        found = answer.json()
        lines, following = found.get("lines"), found.get("next")
        if not isinstance(lines, list) or type(following) is not int:
            raise BadAnswer("the service's answer is no log")
        if args.json:
            if lines or not args.follow:
                show_raw(answer)
        else:
            for line in lines:
                print(output.visible(output.text(line, "text")))
        if not args.follow or pick(found, "ended") is not False:
            return 0
        sys.stdout.flush()
        after = max(after, following)
        _pause()


def _pause() -> None:
    import time

    time.sleep(FOLLOW_S)


def _path(args: Arguments) -> str:
    return f"/api/operations/{quote(args.operation)}"


OPERATION = Argument("OPERATION", "its id, such as op-4k2m9x7p", type=reference)
LOG_OPTIONS = (
    Argument("--after", "only the lines after the first N", metavar="N", type=whole(0, 10**9)),
    Argument("--follow", "print new lines as they come, until the operation ends", kind="flag"),
)

COMMAND = CommandGroup(
    "operation",
    DESCRIPTION,
    Command(
        "list",
        list_,
        Argument("--open", "only queued and running ones", kind="flag"),
        Argument("--status", "only those with this status", choices=STATUSES),
        Argument("--kind", "only those of this kind", choices=KINDS),
        Argument("--subject", "only those of this workspace, template or image", metavar="SUBJECT"),
        examples="svc operation list\nsvc operation list --open --json\nsvc operation list --subject demo",
    ),
    Command("watch", watch, OPERATION, QUIET, examples="svc operation watch op-4k2m9x7p"),
    Command("cancel", cancel, OPERATION, examples="svc operation cancel op-4k2m9x7p"),
    Command(
        "log",
        log,
        OPERATION,
        *LOG_OPTIONS,
        examples="svc operation log op-4k2m9x7p\nsvc operation log op-4k2m9x7p --follow",
    ),
)
