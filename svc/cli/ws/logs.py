"""`svc ws logs`: the output of a container or launcher."""

from __future__ import annotations

import sys

from svc.cli.ws.columns import path
from svc.client import transport
from svc.client.requests import ask, query, quote, show_raw
from svc.commandline import output
from svc.commandline.arguments import WORKSPACE, Argument, Arguments, Command, reference, whole
from svc.errors import BadAnswer, Unreachable
from svc_helper.wire import quick_json

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Iterator

    from svc.client.streams import Event

EXAMPLES = """\
svc ws logs demo
svc ws logs demo --tail 20 --follow
svc ws logs demo > demo.log
svc ws logs demo --timestamps --tail 100
svc ws logs demo --launcher jupyter"""
PATIENCE_S, PAUSE_S = 60.0, 0.5  # without an answer; a stream survives a restart of the service
NOT_CAPTURED = "processes started by hand, also behind extra ports, are not captured"


def logs(args: Arguments) -> int:
    """Print what the container, or one of its launchers, has written to stdout and stderr.

    Byte for byte and all that is kept, also of a stopped workspace: the newest 64 MiB or
    more of a container's output, 8 MiB of a launcher's, on disk, where each line has its
    time too, which --timestamps prints. Remarks on standard error say when older output is
    gone, and when a launcher was started.
    Manually started processes and extra-app ports are not captured. --follow continues
    until the container or the launcher exits, also over a restart of the service. --json
    prints the newest 1 MiB in one object; with --follow one object per piece.
    """
    if args.follow:
        return _follow(args)
    if not args.json:
        return _print_all(args)
    launcher = "" if args.launcher is None else f"/launchers/{quote(args.launcher)}"
    return show_raw(
        ask(args, "GET", path(args, f"{launcher}/logs") + query(tail=args.tail, timestamps=_times(args)))
    )


def _times(args: Arguments) -> str | None:
    """`?timestamps=`, where it was asked for."""
    return "true" if args.timestamps else None


def _note_nothing(args: Arguments) -> None:
    who = "the container" if args.launcher is None else args.launcher
    output.note(f"{who} has written nothing; {NOT_CAPTURED}")


def _print_all(args: Arguments) -> int:
    """Print the raw output; what a slow reader has interrupted is continued where it stopped."""
    printer = _Printer(args)
    always: dict[str, object] = {"launcher": args.launcher, "timestamps": _times(args)}
    what: dict[str, object] = {"tail": args.tail} | always
    try:
        while True:
            with transport.Download(path(args, "/logs/raw") + query(**what)) as answer:
                before = printer.count
                printer.begin(answer.fields)
                for part in answer.parts():
                    printer.write(part)
                if answer.complete:
                    break
                if printer.count == before:
                    raise BadAnswer("the service's answer was cut short", hint=transport.remedy())
            what = always | {"start": printer.start, "skip": printer.count}
        printer.mark(last=True)
    finally:
        printer.end()
    if not printer.captured.printed and args.tail != 0:
        _note_nothing(args)
    return 0


class _Printer:
    """Prints raw output, and the markers between on standard error."""

    def __init__(self, args: Arguments) -> None:
        self.args = args
        self.captured = output.Captured()
        self.count = 0  # bytes printed
        self.start = ""
        self.markers: list[tuple[int, str]] = []

    def begin(self, fields: dict[str, str]) -> None:
        """Take the header fields of an answer."""
        if not self.start and fields.get("x-svc-log-older-gone") == "true":
            sizes = "64 MiB or more" if self.args.launcher is None else "8 MiB or more"
            output.note(f"older output is gone: the newest {sizes} are kept")
        self.start = fields.get("x-svc-log-start", "")
        self.markers = [marker for marker in _markers(fields) if marker[0] >= self.count]

    def write(self, part: bytes) -> None:
        """Print some output, and the markers in it."""
        while part:
            self.mark()
            until = self.markers[0][0] - self.count if self.markers else len(part)
            self.captured.write_bytes(part[:until])
            self.count += len(part[:until])
            part = part[until:]

    def mark(self, *, last: bool = False) -> None:
        """Print the markers whose turn it is."""
        while self.markers and (last or self.markers[0][0] <= self.count):
            self.captured.remark(f"{self.args.launcher}: {self.markers.pop(0)[1]}")

    def end(self) -> None:
        """On a terminal, end the last line."""
        if output.on_terminal():
            self.captured.end()


def _markers(fields: dict[str, str]) -> list[tuple[int, str]]:
    try:
        rows = quick_json.loads(fields.get("x-svc-log-markers", "[]"))
        found = [(int(row["offset"]), str(row["text"])) for row in rows]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise BadAnswer("the service's answer has unusable markers") from None
    return sorted(found)


def _follow(args: Arguments) -> int:
    """Print the output as it arrives; Ctrl-C ends this like `podman logs --follow`."""
    printer = output.Captured()
    try:
        for event in events(args):
            _print_piece(args, event, printer)
    finally:
        printer.end()
    if not printer.printed and not args.json:
        _note_nothing(args)
    return 0


def events(args: Arguments) -> Iterator[Event]:
    """What is written, to the end; a stream that was interrupted is gone on with after its last event."""
    import time

    from svc.client import streams  # imports an HTTP library, which short requests do not need

    what = {"tail": args.tail, "launcher": args.launcher, "timestamps": _times(args)}
    after, until = "", 0.0  # what has sent no id is not tried again
    while True:
        has_received = False
        try:
            for event in streams.events(path(args, "/logs/stream") + query(**what)):
                has_received = True
                if event.name in ("log", "marker"):
                    after = event.id or after
                    yield event
                if event.name == "restarting":
                    break
            else:
                return
            if not after:
                raise Unreachable("the service is stopping; try again in a moment")
        except (Unreachable, BadAnswer):
            if not (has_received and after) and time.monotonic() > until:
                raise
        if has_received:  # for a long time nothing may have been written, and then it broke
            until = time.monotonic() + PATIENCE_S
        time.sleep(PAUSE_S)
        what["after"] = after


def _print_piece(args: Arguments, event: Event, printer: output.Captured) -> None:
    text = output.text(event.json(), "text")
    if args.json:
        printer.printed = True
        piece = {"text" if event.name == "log" else "marker": text}
        output.raw(quick_json.dumps(piece).encode() + b"\n")
    elif event.name == "marker":
        printer.remark(f"{args.launcher or 'the container'}: {text}")
    else:
        printer.write(text)
    sys.stdout.flush()


COMMANDS = (
    Command(
        "logs",
        logs,
        WORKSPACE,
        Argument("--tail", "only the newest N lines", metavar="N", type=whole(0)),
        Argument("--launcher", "this launcher's output", metavar="NAME", type=reference),
        Argument("--timestamps", "print the time of its writing before each line", kind="flag"),
        Argument("--follow", "print new output as it arrives", kind="flag"),
        examples=EXAMPLES,
    ),
)
