"""`svc ws logs`: the output of a container or launcher."""

from __future__ import annotations

import sys

from svc.cli import output
from svc.cli.arguments import WORKSPACE, Argument, Arguments, Command, reference, whole
from svc.cli.client import ask, query, quote, show_raw
from svc.cli.ws.columns import path

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from svc.cli.streams import Event

EXAMPLES = """\
svc ws logs demo
svc ws logs demo --tail 20 --follow
svc ws logs demo --launcher jupyter"""
NOT_CAPTURED = "processes started by hand, also behind extra ports, are not captured"


def logs(args: Arguments) -> int:
    """Print what the container, or one of its launchers, has written to stdout and stderr.

    Works for a stopped workspace too. A launcher's newest output, one to two MiB,
    is kept over stops. Manually started processes and extra-app ports are not
    captured. --follow continues until the container or the launcher exits; with
    --json it prints one JSON object per piece.
    """
    if args.follow:
        return _follow(args)
    answer = ask(args, "GET", _path(args) + query(tail=args.tail))
    if args.json:
        return show_raw(answer)
    log = answer.json()
    text = output.text(log, "text")
    output.captured(text)
    if output.pick(log, "truncated") is True:
        output.note("older lines are omitted: an answer has the newest only")
    if not text:
        _note_nothing(args)
    return 0


def _path(args: Arguments) -> str:
    launcher = "" if args.launcher is None else f"/launchers/{quote(args.launcher)}"
    return path(args, f"{launcher}/logs")


def _note_nothing(args: Arguments) -> None:
    who = "the container" if args.launcher is None else args.launcher
    output.note(f"{who} has written nothing; {NOT_CAPTURED}")


def _follow(args: Arguments) -> int:
    """Print the output as it arrives; Ctrl-C ends this like `podman logs --follow`."""
    from svc.cli import streams  # imports an HTTP library, which short requests do not need

    printer = output.Captured()
    try:
        for event in streams.events(
            path(args, "/logs/stream") + query(tail=args.tail, launcher=args.launcher)
        ):
            if event.name == "log":
                _print_piece(args, event, printer)
    finally:
        printer.end()
    if not printer.printed and not args.json:
        _note_nothing(args)
    return 0


def _print_piece(args: Arguments, event: Event, printer: output.Captured) -> None:
    if args.json:
        printer.printed = True
        output.raw(event.data + b"\n")
    else:
        printer.write(output.text(event.json(), "text"))
    sys.stdout.flush()


COMMANDS = (
    Command(
        "logs",
        logs,
        WORKSPACE,
        Argument("--tail", "only the newest N lines", metavar="N", type=whole(0)),
        Argument("--launcher", "this launcher's output", metavar="NAME", type=reference),
        Argument("--follow", "print new output as it arrives", kind="flag"),
        examples=EXAMPLES,
    ),
)
