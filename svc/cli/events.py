"""`svc events`: what has changed, and what changes."""

from __future__ import annotations

import sys

from svc.client.requests import ask, checked, items, query, show_raw
from svc.client.transport import request
from svc.commandline import output
from svc.commandline.arguments import Argument, Arguments, Command, whole
from svc.commandline.output import pick, plain, state, text, when
from svc.errors import BadAnswer, Unreachable
from svc.limits import LIST_LIMIT_MAX

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

    from svc.client.streams import Event

EXAMPLES = """\
svc events
svc events -n 20
svc events --follow
svc events --type workspace.status_changed,operation.finished --follow --json
svc events --after 0 --follow"""
PATIENCE_S, PAUSE_S = 60.0, 0.5  # without an answer; a stream survives a restart of the service
ID_MAX = 2**53 - 1


def _subject(record: Any, human: bool) -> str:
    """The name, or the id of what has none."""
    return plain(pick(record, "name") or pick(record, "id") or pick(record, "type"), human)


def _became(record: Any) -> str:
    """What the subject is now: a status, of an operation its kind too, else what was done to it."""
    data = pick(record, "data")
    status = text(data, "to") or text(data, "state") or text(data, "status")
    verb = text(record, "type").rpartition(".")[2].replace("_", " ")
    if verb == "progress":
        status = text(data, "phase") or status
    if verb not in ("status changed", "progress", "finished") or not status:
        return verb
    code = text(data, "exit_code")
    failed = f"({code})" if code not in ("", "0") else ""
    return " ".join(filter(None, [text(data, "kind"), status, failed]))


def _shortened(record: Any) -> Any:
    """The record with what a terminal has in two short columns: `workspace`, `running`."""
    more = {"kind": text(record, "type").partition(".")[0], "became": _became(record)}
    return record | more if isinstance(record, dict) else more


IN_PIPE = (
    ("ID", "id", plain),
    ("TIME", "ts", when),
    ("EVENT", "type", plain),
    ("SUBJECT", "subject", _subject),
    ("REASON", "reason", plain),
    ("BY", "actor.user", plain),
    ("BECAME", "became", plain),
)
ON_TERMINAL = (
    ("TIME", "ts", when),
    ("OF", "kind", plain),
    ("NAME", "subject", _subject),
    ("NOW", "became", state),
    ("REASON", "reason", plain),
    ("BY", "actor.user", plain),
    ("ID", "id", plain),
)


def events(args: Arguments) -> int:
    """Print what happened to your workspaces, images, templates and tokens: one line an event.

    Without options the newest 200 of the last 30 days, newest first. Columns: time, of
    (workspace, operation, image, ...), name, now (its status, or what was done), reason, by
    (who did it), id; in a pipe id, time, event (its type), subject, reason, by, now.
    --after leaves out those up to an id; --follow goes on with what happens from now on
    (or after that id), the oldest first, also over a restart of the service; Ctrl-C ends
    it. --tail prints only the newest, with --follow before what is to come. --json prints the page;
    with --follow one object a line. --all, for administrators: the events of
    all users.
    """
    filters = {"type": args.type, "after": args.after, "all": "true" if args.all else None}
    history = "/api/events/history" + query(limit=args.tail or LIST_LIMIT_MAX, **filters)
    if args.follow:
        newest = items(checked(args, request("GET", history)).json()) if args.tail else []
        oldest = pick(newest[-1], "id") if newest else None
        if type(oldest) is int:
            filters["after"] = oldest - 1
        return _follow(args, filters)
    answer = ask(args, "GET", history)
    if args.json:
        return show_raw(answer)
    page = answer.json()
    columns = ON_TERMINAL if output.on_terminal() else IN_PIPE
    output.table(columns, map(_shortened, items(page)), "No events.")
    total = pick(page, "total")
    if not args.tail and type(total) is int and total > LIST_LIMIT_MAX:
        output.note(
            f"{total - LIST_LIMIT_MAX} older events are not listed; all: svc events --after 0 --follow"
        )
    return 0


def _follow(args: Arguments, filters: dict[str, Any]) -> int:
    """Print events as they come; come back where a stream was interrupted."""
    import time

    from svc.client import streams  # imports an HTTP library, which the list does not need

    until = 0.0  # the first connection is not tried again
    while True:
        has_received = False
        try:
            for event in streams.events("/api/events" + query(**filters)):
                has_received = True
                filters["after"] = event.id or filters["after"]
                if event.name == "restarting":
                    break
                _print(args, event)
        except (Unreachable, BadAnswer):
            if not has_received and time.monotonic() > until:
                raise
        if has_received:  # for a long time nothing may have happened, and then it broke
            until = time.monotonic() + PATIENCE_S
        time.sleep(PAUSE_S)


def _print(args: Arguments, event: Event) -> None:
    if not event.name:
        return  # an id or a sign of life
    if event.name == "gap":
        output.note("some events are no longer kept; the next line is the oldest after them")
    elif args.json:
        output.raw(event.data + b"\n")
    else:
        record, human = _shortened(event.json()), output.on_terminal()
        columns = ON_TERMINAL if human else IN_PIPE
        cells = [show(pick(record, path), human) for _, path, show in columns]
        print(("  " if human else "\t").join(output.visible(cell) for cell in cells).rstrip(" "))
    sys.stdout.flush()


COMMAND = Command(
    "events",
    events,
    Argument("--follow", "print events as they happen", kind="flag"),
    Argument(
        "--after", "only the events after this id; 0: all that are kept", metavar="ID", type=whole(0, ID_MAX)
    ),
    Argument("--tail", "only the newest N", metavar="N", type=whole(1, LIST_LIMIT_MAX)),
    Argument("--type", "only these, separated by commas, such as operation.finished", metavar="TYPE"),
    Argument("--all", "as an administrator: the events of all users", kind="flag"),
    examples=EXAMPLES,
)
